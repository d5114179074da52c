#include "tests/net/net_test_support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "proxy/net/listening.h"
#include "proxy/net/timer.h"
#include "tests/catch.h"

namespace encore::net {
namespace {

// Far more than any test takes, under a sanitizer on a busy machine too.
constexpr Nanoseconds kHangs = std::chrono::seconds(60);

struct Plan {
  FailCalls::Call call = FailCalls::Call::kReceive;
  int skip = 0;
  int os_error = 0;
  int times = 0;
  bool failed = false;
};
Plan plan;
Syscalls real = syscalls;

bool fails(FailCalls::Call call) {
  if (plan.times == 0 || plan.call != call) return false;
  if (plan.skip-- > 0) return false;
  --plan.times;
  plan.skip = 0;
  plan.failed = true;
  errno = plan.os_error;
  return true;
}

}  // namespace

TestLoop::TestLoop() {
  auto loop = Loop::create();
  REQUIRE(loop);
  loop_ = std::move(*loop);
}

void TestLoop::run_until(const std::function<bool()>& done) {
  bool hangs = false;
  Timer watchdog(*loop_, [&] { hangs = true; });
  watchdog.start(kHangs);
  Timer look(*loop_, [&] {
    if (hangs || done()) loop_->stop();
  });
  look.start_periodic(std::chrono::microseconds(100));
  loop_->run();
  REQUIRE_FALSE(hangs);
}

void TestLoop::run_turns(int turns) {
  for (int i = 0; i < turns; ++i) {
    loop_->stop();
    loop_->run();
  }
}

SocketPair::SocketPair() {
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Address address = Address::loopback_v4(0);
  REQUIRE(::bind(listener.get(), address.data(), address.size()) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  far = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(far.get(), reinterpret_cast<sockaddr*>(&bound), sizeof bound) == 0);
  near = Socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  REQUIRE(near);
  REQUIRE(::fcntl(far.get(), F_SETFL, O_NONBLOCK) == 0);
  REQUIRE(::getsockname(far.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  far_address = Address(bound);
}

std::unique_ptr<Listener> listen(Loop& loop, const Address& address, Listener::OnAccept on_accept,
                                 Listener::OnOverload on_overload) {
  auto socket = open_listening(address);
  REQUIRE(socket);
  return Listener::take(loop, std::move(*socket), std::move(on_accept), std::move(on_overload));
}

bool send_all(const Socket& socket, std::string_view bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

std::string receive_now(const Socket& socket) {
  std::string all;
  char buffer[65536];
  for (ssize_t got; (got = ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

std::size_t Recorder::on_data(Stream& stream, std::span<const std::byte> bytes) {
  ++data_calls;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (data) return data(stream, text);
  received += text;
  return bytes.size();
}
void Recorder::on_writable(Stream& stream) {
  ++writable_calls;
  if (writable) writable(stream);
}
void Recorder::on_eof(Stream& stream) {
  ++eofs;
  if (eof) eof(stream);
}
void Recorder::on_error(Stream& stream, CloseReason why, int system) {
  ++errors;
  reason = why;
  os_error = system;
  if (error) error(stream);
}
void Recorder::on_ready(Stream& stream) {
  ++readies;
  if (ready) ready(stream);
}
std::span<std::byte> Recorder::read_buffer(Stream& stream) {
  return buffer ? buffer(stream) : std::span<std::byte>();
}

FailCalls::FailCalls(Call call, int nth, int os_error, int times) : saved_(syscalls) {
  plan = {.call = call, .skip = nth, .os_error = os_error, .times = times};
  real = saved_;
  syscalls.recv = [](int fd, void* bytes, std::size_t size, int flags) -> ssize_t {
    return fails(Call::kReceive) ? -1 : real.recv(fd, bytes, size, flags);
  };
  syscalls.send = [](int fd, const void* bytes, std::size_t size, int flags) -> ssize_t {
    return fails(Call::kSend) ? -1 : real.send(fd, bytes, size, flags);
  };
  syscalls.sendmsg = [](int fd, const msghdr* message, int flags) -> ssize_t {
    return fails(Call::kSend) ? -1 : real.sendmsg(fd, message, flags);
  };
  syscalls.accept4 = [](int fd, sockaddr* peer, socklen_t* size, int flags) {
    return fails(Call::kAccept4) ? -1 : real.accept4(fd, peer, size, flags);
  };
  syscalls.connect = [](int fd, const sockaddr* address, socklen_t size) {
    return fails(Call::kConnect) ? -1 : real.connect(fd, address, size);
  };
  syscalls.socket = [](int family, int type, int protocol) {
    return fails(Call::kSocket) ? -1 : real.socket(family, type, protocol);
  };
}

FailCalls::~FailCalls() {
  syscalls = saved_;
  plan = {};
}

bool FailCalls::failed() const { return plan.failed; }

}  // namespace encore::net
