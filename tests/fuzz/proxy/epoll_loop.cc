#include "tests/fuzz/proxy/epoll_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

namespace encore::proxyfuzz {
namespace {

int check(int result, const char* what) {
  if (result >= 0) return result;
  std::perror(what);
  std::exit(2);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int bound_socket(std::uint16_t port) {
  const int descriptor =
      check(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  const int one = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const sockaddr_in address = loopback(port);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

}  // namespace

std::int64_t wall_seconds() noexcept { return std::time(nullptr); }

double now() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

EpollLoop::EpollLoop() : epoll_(check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}

EpollLoop::~EpollLoop() { close(epoll_); }

void EpollLoop::add(int descriptor, Handler& handler, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  check(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  handlers_[descriptor] = &handler;
}

void EpollLoop::modify(int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  check(epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event), "epoll_ctl");
}

void EpollLoop::remove(int descriptor) {
  handlers_.erase(descriptor);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void EpollLoop::turn() {
  const int wait = static_cast<int>(std::clamp((first_due() - now()) * 1000 + 0.999, 0.0, 1000.0));
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait);
  if (count < 0 && errno != EINTR) check(count, "epoll_wait");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    // One that was removed by another's event of this turn is gone; one that took its number gets
    // an event too many, which non-blocking calls bear.
    const auto found = handlers_.find(event.data.fd);
    if (found != handlers_.end()) found->second->on_ready(event.events);
  }
  end_turn();
}

int listen_on_loopback(std::uint16_t& port) {
  port = free_port();
  const int descriptor = check(bound_socket(port), "bind");
  check(listen(descriptor, 4096), "listen");
  return descriptor;
}

int accept_connection(int listener) {
  return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int connect_to_loopback(std::uint16_t port, int receive_buffer) {
  return connect_from(nullptr, port, receive_buffer);
}

int connect_from(const char* address_text, std::uint16_t port, int receive_buffer) {
  const int descriptor =
      check(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  if (receive_buffer != 0) {
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (address_text != nullptr) {
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    sockaddr_in from = loopback(0);
    inet_pton(AF_INET, address_text, &from.sin_addr);
    check(bind(descriptor, reinterpret_cast<const sockaddr*>(&from), sizeof from), "bind");
  }
  const sockaddr_in address = loopback(port);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    check(-1, "connect");
  }
  return descriptor;
}

std::uint16_t free_port() {
  std::random_device device;
  while (true) {
    const auto port = static_cast<std::uint16_t>(10240 + device() % 21000);
    const int descriptor = bound_socket(port);
    if (descriptor < 0) continue;
    close(descriptor);
    return port;
  }
}

void close_with_reset(int descriptor) {
  const linger option{.l_onoff = 1, .l_linger = 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, sizeof option);
  close(descriptor);
}

bool had_read_all(int) { return false; }

bool was_broken(int) { return false; }

bool was_heard(int) { return true; }

std::optional<std::vector<OtherEnding>> other_endings(int) { return std::nullopt; }

std::optional<double> other_moved_before(int, std::uint64_t) { return std::nullopt; }

}  // namespace encore::proxyfuzz
