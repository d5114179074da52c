#include "proxy/fleet/redis_link.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace encore::fleet {
namespace {

std::string system_text(int error) { return std::strerror(error); }

int left_ms(MonotonicTime end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - monotonic_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void append(std::string& out, const Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string& each : command) {
    words.push_back(each.data());
    sizes.push_back(each.size());
  }
  char* text = nullptr;
  const int bytes =
      redisFormatCommandArgv(&text, static_cast<int>(words.size()), words.data(), sizes.data());
  if (bytes > 0) out.append(text, static_cast<std::size_t>(bytes));
  redisFreeCommand(text);
}

// Returns the code alone: the error may repeat the words of the command ("unknown command").
std::string refusal_of_password(std::string_view error) {
  const std::string_view code = error.substr(0, error.find(' '));
  const bool is_code = std::ranges::all_of(code, [](char c) { return c >= 'A' && c <= 'Z'; });
  return "the engine refuses user and password" +
         (is_code && !code.empty() ? " (" + readable(code) + ")" : std::string());
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

}  // namespace

StopSignal::StopSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StopSignal::stop() {
  is_stopped_.store(true);
  const std::uint64_t one = 1;
  if (event_) (void)!::write(event_.get(), &one, sizeof one);
}

void StopSignal::wait(Nanoseconds time) const {
  const MonotonicTime end = monotonic_now() + time;
  pollfd waited{.fd = event_.get(), .events = POLLIN, .revents = 0};
  while (!is_stopped() && monotonic_now() < end) ::poll(&waited, 1, left_ms(end));
}

std::unexpected<Error> RedisLink::broken(std::string why) {
  close();
  return fail(std::move(why));
}

void RedisLink::close() {
  socket_.reset();
  reader_.reset();
}

Result<bool> RedisLink::wait_for(short events, MonotonicTime end) const {
  for (;;) {
    if (stop_.is_stopped()) return fail("this process is exiting");
    std::array<pollfd, 2> waited = {
        pollfd{.fd = socket_.get(), .events = events, .revents = 0},
        pollfd{.fd = stop_.descriptor(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(waited.data(), waited.size(), left_ms(end));
    if (ready < 0 && errno != EINTR) return fail(system_text(errno));
    if (ready > 0 && waited[0].revents != 0) return true;
    if (monotonic_now() >= end) return false;
  }
}

Result<void> RedisLink::open(MonotonicTime end) {
  const auto try_one = [&](int family, const sockaddr* address, socklen_t bytes) -> Result<void> {
    socket_ = net::Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return fail(system_text(errno));
    if (::connect(socket_.get(), address, bytes) != 0) {
      if (errno != EINPROGRESS) return fail(system_text(errno));
      const auto ready = wait_for(POLLOUT, end);
      if (!ready) return std::unexpected(ready.error());
      if (!*ready) return fail("no connection in time");
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return fail(system_text(error));
    }
    const int on = 1;
    if (family != AF_UNIX) ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return {};
  };
  if (!url_.socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    url_.socket.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    return try_one(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int status =
      ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  if (status != 0) return fail(::gai_strerror(status));
  Result<void> last = fail("no address");
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    last = try_one(each->ai_family, each->ai_addr, each->ai_addrlen);
    if (last) return last;
  }
  return last;
}

Result<void> RedisLink::connect(Nanoseconds patience) {
  close();
  const MonotonicTime end = monotonic_now() + patience;
  const std::string where = config::shown(url_);
  if (auto opened = open(end); !opened) {
    return broken("cannot connect to " + where + ": " + opened.error().message);
  }
  reader_.emplace();
  std::vector<Command> commands;
  if (!url_.password.empty()) {
    commands.push_back(url_.user.empty() ? Command{"AUTH", url_.password}
                                         : Command{"AUTH", url_.user, url_.password});
  }
  commands.push_back({"SELECT", std::to_string(url_.database)});
  const auto replies = call(commands, end - monotonic_now());
  if (!replies) return broken(where + ": " + replies.error().message);
  if (replies->size() > 1 && replies->front().is_error()) {
    return broken(where + ": " + refusal_of_password(replies->front().text));
  }
  if (replies->back().is_error()) return broken(where + ": " + readable(replies->back().text));
  return {};
}

Result<void> RedisLink::send(std::string_view bytes, MonotonicTime end) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return fail(system_text(errno));
    const auto ready = wait_for(POLLOUT, end);
    if (!ready) return std::unexpected(ready.error());
    if (!*ready) return fail("the engine does not read");
  }
  return {};
}

// False: the time is over.
Result<bool> RedisLink::read_some(MonotonicTime end) {
  std::array<char, 65536> buffer;
  for (;;) {
    const auto ready = wait_for(POLLIN, end);
    if (!ready || !*ready) return ready;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) return fail("the engine closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return fail(system_text(errno));
    if (got < 0) continue;
    auto fed = reader_->feed({buffer.data(), static_cast<std::size_t>(got)});
    if (!fed) return std::unexpected(fed.error());
    return true;
  }
}

Result<std::vector<Reply>> RedisLink::call(std::span<const Command> commands,
                                           Nanoseconds patience) {
  if (!socket_) return fail("not connected");
  const MonotonicTime end = monotonic_now() + patience;
  was_too_large_ = false;
  front_ = {};
  std::string bytes;
  for (const Command& each : commands) append(bytes, each);
  if (auto sent = send(bytes, end); !sent) return broken(sent.error().message);
  std::vector<Reply> replies;
  while (replies.size() < commands.size()) {
    auto reply = receive(end - monotonic_now());
    if (!reply) return std::unexpected(reply.error());
    if (!*reply) return broken("no reply of the engine in time");
    replies.push_back(std::move(**reply));
  }
  return replies;
}

Result<Reply> RedisLink::call(const Command& command, Nanoseconds patience) {
  auto replies = call(std::span(&command, 1), patience);
  if (!replies) return std::unexpected(replies.error());
  return std::move(replies->front());
}

Result<void> RedisLink::post(const Command& command, Nanoseconds patience) {
  if (!socket_) return fail("not connected");
  std::string bytes;
  append(bytes, command);
  auto sent = send(bytes, monotonic_now() + patience);
  return sent ? Result<void>() : broken(sent.error().message);
}

Result<std::optional<Reply>> RedisLink::receive(Nanoseconds patience) {
  if (!socket_) return fail("not connected");
  const MonotonicTime end = monotonic_now() + patience;
  for (;;) {
    auto reply = reader_->next();
    if (reply && *reply) return reply;
    auto more = reply ? read_some(end) : Result<bool>(std::unexpected(reply.error()));
    if (!more) {
      was_too_large_ = reader_->was_too_large();
      if (was_too_large_) front_ = reader_->take_front();
      return broken(more.error().message);
    }
    if (!*more) return std::optional<Reply>();
  }
}

}  // namespace encore::fleet
