// Carries bytes both ways between each client and the port of a proxy, unread, so that a load
// program that knows no proxies can be used behind CONNECT:
//   connect_relay --port=P --proxy=P [--for=PORT]
// With --for it sends CONNECT localhost:PORT first, and relays the bytes after the 200. For short
// requests and responses that a loopback socket takes in one call.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "tests/bench/canned.h"

namespace {

constexpr std::size_t kReadBytes = 65536;
char buffer[kReadBytes];
std::uint16_t proxy_port = 0;
std::string connect_request;  // empty: none

// One client and its connection to the proxy; each end closes both.
class Pair {
 public:
  Pair(event_base* base, int client)
      : client_(client), proxy_(encore::bench::connect_to(proxy_port)) {
    event_assign(&from_client_, base, client_, EV_READ | EV_PERSIST, on_client, this);
    event_assign(&from_proxy_, base, proxy_, EV_READ | EV_PERSIST, on_proxy, this);
    event_add(&from_proxy_, nullptr);
    if (!connect_request.empty()) {
      // The connection completes a moment later: this is loopback.
      is_connecting_ = true;
      if (!write_all(proxy_, connect_request)) is_broken_ = true;
    } else {
      event_add(&from_client_, nullptr);
    }
    if (is_broken_) delete this;
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

 private:
  ~Pair() {
    event_del(&from_client_);
    event_del(&from_proxy_);
    close(client_);
    close(proxy_);
  }

  static bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = write(fd, bytes.data(), bytes.size());
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

  // Returns the bytes that can be read; nothing: not now, or not any more (then it is broken).
  std::string_view take(int fd) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got > 0) return {buffer, static_cast<std::size_t>(got)};
    is_broken_ = got == 0 || (errno != EAGAIN && errno != EINTR);
    return {};
  }

  static void on_client(evutil_socket_t, short, void* argument) {
    auto* self = static_cast<Pair*>(argument);
    const std::string_view bytes = self->take(self->client_);
    if (self->is_broken_ || !write_all(self->proxy_, bytes)) delete self;
  }

  static void on_proxy(evutil_socket_t, short, void* argument) {
    auto* self = static_cast<Pair*>(argument);
    const std::string_view bytes = self->take(self->proxy_);
    if (self->is_broken_) return delete self;
    if (!self->is_connecting_) {
      if (!write_all(self->client_, bytes)) delete self;
      return;
    }
    self->head_ += bytes;
    if (!self->head_.ends_with("\r\n\r\n")) return;
    if (!self->head_.starts_with("HTTP/1.1 200")) return delete self;
    self->is_connecting_ = false;
    event_add(&self->from_client_, nullptr);
  }

  const int client_;
  const int proxy_;
  bool is_connecting_ = false;
  bool is_broken_ = false;
  std::string head_;  // head of the response to CONNECT
  event from_client_{};
  event from_proxy_{};
};

void on_acceptable(evutil_socket_t listener, short, void* base) {
  for (int fd; (fd = encore::bench::accept_one(listener)) >= 0;) {
    new Pair(static_cast<event_base*>(base), fd);  // ends itself
  }
}

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  event_base* base = event_base_new();
  const auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  proxy_port = static_cast<std::uint16_t>(number_argument(argc, argv, "proxy", 0));
  if (const std::size_t to = number_argument(argc, argv, "for", 0); to != 0) {
    const std::string authority = "localhost:" + std::to_string(to);
    connect_request = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  }
  event accept{};
  event_assign(&accept, base, encore::bench::listen_on(port), EV_READ | EV_PERSIST, on_acceptable,
               base);
  event_add(&accept, nullptr);
  encore::bench::run_until_signal(base);
  return 0;
}
