// The simulated system compared with the real one: random scripts of calls on the two ends of a
// loopback connection, where what the kernel returns is determined.
#include "tests/catch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

enum class Call : std::uint8_t {
  kSend,
  kRecv,
  kPeek,
  kUnread,
  kShutdown,
  kClose,
  kReset,
  kError,
  kReady
};

struct Step {
  Call call = Call::kSend;
  std::size_t end = 0;
  std::size_t bytes = 0;
};

std::vector<Step> random_script(Random& random) {
  std::vector<Step> script;
  for (std::uint64_t left = random.between(4, 30); left > 0; --left) {
    const auto call = random.pick({Call::kSend, Call::kSend, Call::kSend, Call::kRecv, Call::kRecv,
                                   Call::kPeek, Call::kUnread, Call::kError, Call::kReady,
                                   Call::kReady, Call::kShutdown, Call::kClose, Call::kReset});
    script.push_back({call, random.below(2), random.between(1, 3000)});
  }
  return script;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Microseconds after each call to the real kernel, for what happens by itself.
useconds_t real_pause = 300;

// All that happens by itself has happened when it returns.
void settle(System* system) {
  if (system == nullptr) {
    ::usleep(real_pause);
    return;
  }
  while (system->step()) {
  }
}

struct Pair {
  std::array<int, 2> ends{-1, -1};
};

// Connected by the calls of whatever system is current.
Pair connect_pair(System* system) {
  Pair pair;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address = loopback(system == nullptr ? 0 : 1234);
  socklen_t size = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(listener, 4) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  pair.ends[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  (void)::connect(pair.ends[0], reinterpret_cast<sockaddr*>(&address), size);
  settle(system);
  pair.ends[1] = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
  REQUIRE(pair.ends[1] >= 0);
  ::close(listener);
  for (const int each : pair.ends) {
    const int on = 1;
    ::setsockopt(each, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // Nagle waits for answers
  }
  return pair;
}

std::string with_errno(ssize_t result) {
  return result >= 0 ? std::to_string(result) : "-" + std::to_string(errno);
}

std::string ready(System* system, int descriptor) {
  if (system != nullptr) {
    const std::uint8_t found = system->readiness(descriptor);
    return std::string((found & kReadable) != 0 ? "r" : "") + ((found & kWritable) != 0 ? "w" : "");
  }
  pollfd asked{.fd = descriptor, .events = POLLIN | POLLOUT, .revents = 0};
  ::poll(&asked, 1, 0);
  return std::string((asked.revents & POLLIN) != 0 ? "r" : "") +
         ((asked.revents & POLLOUT) != 0 ? "w" : "");
}

std::string do_call(System* system, const Step& step, int& descriptor) {
  std::array<char, 4096> room{};
  switch (step.call) {
    case Call::kSend:
      return "send " + with_errno(::send(descriptor, room.data(), step.bytes, MSG_NOSIGNAL));
    case Call::kRecv:
      return "recv " + with_errno(::recv(descriptor, room.data(), step.bytes, 0));
    case Call::kPeek:
      return "peek " + with_errno(::recv(descriptor, room.data(), step.bytes, MSG_PEEK));
    case Call::kUnread: {
      int bytes = -1;
      ::ioctl(descriptor, FIONREAD, &bytes);
      return "unread " + std::to_string(bytes);
    }
    case Call::kShutdown:
      return "shutdown " + with_errno(::shutdown(descriptor, SHUT_WR));
    case Call::kReset: {
      const linger option{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, sizeof option);
      [[fallthrough]];
    }
    case Call::kClose:
      ::close(std::exchange(descriptor, -1));
      return "close";
    case Call::kError: {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
      return "error " + std::to_string(error);
    }
    case Call::kReady:
      return "ready " + ready(system, descriptor);
  }
  return {};
}

std::vector<std::string> play(System* system, const std::vector<Step>& script) {
  std::vector<std::string> out;
  Pair pair = connect_pair(system);
  for (const Step& step : script) {
    int& descriptor = pair.ends[step.end];
    if (descriptor < 0) continue;
    out.push_back((step.end == 0 ? "a " : "b ") + do_call(system, step, descriptor));
    settle(system);
  }
  for (const int each : pair.ends) {
    if (each >= 0) ::close(each);
  }
  return out;
}

}  // namespace

TEST_CASE("The simulated kernel returns what the real one does", "[simulate]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::vector<Step> script = random_script(random);
    real_pause = 300;
    std::vector<std::string> real = play(nullptr, script);
    std::vector<std::string> simulated;
    {
      System system(seed, Adversity::none());
      simulated = play(&system, script);
      CHECK(system.descriptors() == 0);
    }
    if (simulated != real) {
      // On a machine with other work some of it may not have happened yet.
      real_pause = 30000;
      real = play(nullptr, script);
    }
    INFO("seed " << seed);
    REQUIRE(simulated == real);
  }
}

}  // namespace encore::simulate
