// A load of clients that each ask again as soon as they are answered, and the time that each answer
// took until its last byte. Each turn reads once of each connection that has something, so that the
// load itself prefers nobody: wrk reads one connection until it is empty, and a fast server fills
// it all the while.
//   fair_load --port=P --connections=N --milliseconds=M --warm=M [--pause=US] [--numbered=1]
//             [--keys=K] [--tls=1] TARGET HOST
// --pause: between an answer and the next request. --numbered: each request has a number of its own
// behind TARGET; --keys: a random one below K. Prints "RESULT requests bytes failures p50 p99 max",
// times in microseconds, of the requests that began after the first --warm milliseconds. One that
// is not answered at the end counts with its time so far where that is beyond the 99th percentile:
// otherwise those that are never served would not show.
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/canned.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 128 * 1024;
constexpr std::size_t kHeadBytesMax = 64 * 1024;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fair_load: %s\n", what);
  std::exit(1);
}

struct Options {
  std::uint16_t port = 0;
  std::size_t connections = 1;
  milliseconds duration{};
  milliseconds warm{};
  microseconds pause{};
  bool numbered = false;
  std::size_t keys = 0;
  std::string target;
  std::string host;
};

// Results of all connections.
struct Found {
  std::vector<std::uint32_t> microseconds;
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;
};

class Connection {
 public:
  Connection(const Options& options, SSL_CTX* tls, Found& found, std::size_t& number)
      : options_(options), found_(found), number_(number) {
    descriptor_ = encore::bench::connect_to(options.port);
    if (tls == nullptr) return;
    ssl_ = SSL_new(tls);
    SSL_set_fd(ssl_, descriptor_);
    SSL_set_connect_state(ssl_);
  }
  ~Connection() {
    SSL_free(ssl_);
    ::close(descriptor_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const { return descriptor_; }
  bool is_idle() const { return idle_; }
  Clock::time_point idle_since() const { return idle_since_; }
  Clock::time_point began() const { return began_; }

  // Sends the next request; its time counts where it begins after `from`.
  void ask(Clock::time_point from) {
    std::string text = "GET " + options_.target;
    if (options_.numbered) text += std::to_string(number_++);
    if (options_.keys != 0) text += std::to_string(random_() % options_.keys);
    text += " HTTP/1.1\r\nHost: " + options_.host + "\r\n\r\n";
    began_ = Clock::now();
    counts_ = began_ >= from;
    idle_ = false;
    head_.clear();
    in_head_ = true;
    if (!write(text)) fail("a request does not fit its socket");
  }

  // Reads once. False: the server has ended the connection.
  bool read_once(std::vector<char>& room) {
    const long got = read(room);
    if (got == 0) return false;
    if (got < 0) return true;
    if (counts_) found_.bytes += static_cast<std::uint64_t>(got);
    take({room.data(), static_cast<std::size_t>(got)});
    return true;
  }
  // Bytes that OpenSSL has read do not make the descriptor readable.
  bool has_pending() const { return ssl_ != nullptr && SSL_has_pending(ssl_) == 1; }

 private:
  bool write(std::string_view text) {
    if (ssl_ == nullptr) {
      return ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(text.size());
    }
    // The first one shakes hands, on a socket that does not block.
    while (true) {
      const int sent = SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
      if (sent > 0) return true;
      const int why = SSL_get_error(ssl_, sent);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return false;
    }
  }
  // -1: nothing is there.
  long read(std::vector<char>& room) {
    if (ssl_ == nullptr) {
      const ssize_t got = ::recv(descriptor_, room.data(), room.size(), 0);
      return got < 0 && errno != EAGAIN ? 0 : got;
    }
    const int got = SSL_read(ssl_, room.data(), static_cast<int>(room.size()));
    if (got > 0) return got;
    return SSL_get_error(ssl_, got) == SSL_ERROR_WANT_READ ? -1 : 0;
  }
  void take(std::string_view bytes) {
    if (in_head_) {
      const std::size_t before = head_.size();
      head_ += bytes;
      const std::size_t end = head_.find("\r\n\r\n");
      if (end == std::string::npos) {
        if (head_.size() > kHeadBytesMax) fail("a head without an end");
        return;
      }
      in_head_ = false;
      left_ = content_length(std::string_view(head_).substr(0, end + 2));
      bytes.remove_prefix(end + 4 - before);
    }
    if (bytes.size() > left_) fail("more than was announced");
    left_ -= bytes.size();
    if (left_ == 0) finish();
  }
  std::size_t content_length(std::string_view head) {
    if (!head.starts_with("HTTP/1.1 200")) ++found_.failures;
    std::string lower(head);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    constexpr std::string_view kName = "\r\ncontent-length:";
    const std::size_t at = lower.find(kName);
    if (at == std::string::npos) fail("a response without Content-Length");
    std::size_t begin = at + kName.size();
    while (lower[begin] == ' ') ++begin;
    std::size_t length = 0;
    std::from_chars(lower.data() + begin, lower.data() + lower.size(), length);
    return length;
  }
  void finish() {
    idle_since_ = Clock::now();
    idle_ = true;
    if (!counts_) return;
    const auto took = std::chrono::duration_cast<microseconds>(idle_since_ - began_);
    found_.microseconds.push_back(static_cast<std::uint32_t>(took.count()));
  }

  const Options& options_;
  Found& found_;
  std::size_t& number_;
  int descriptor_ = -1;
  SSL* ssl_ = nullptr;
  std::minstd_rand random_{1};
  Clock::time_point began_{};
  Clock::time_point idle_since_{};
  bool counts_ = false;
  bool idle_ = false;
  bool in_head_ = true;
  std::string head_;
  std::size_t left_ = 0;
};

SSL_CTX* make_tls() {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  return context;
}

std::uint32_t quantile(const std::vector<std::uint32_t>& sorted, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

// Sorts, and counts those that still wait.
void count_waiting(const std::vector<std::unique_ptr<Connection>>& all, Found& found) {
  std::ranges::sort(found.microseconds);
  if (found.microseconds.empty()) return;
  const std::uint32_t beyond = quantile(found.microseconds, 0.99);
  const Clock::time_point now = Clock::now();
  for (const auto& connection : all) {
    if (connection->is_idle()) continue;
    const auto age = std::chrono::duration_cast<microseconds>(now - connection->began()).count();
    if (age > beyond) found.microseconds.push_back(static_cast<std::uint32_t>(age));
  }
  std::ranges::sort(found.microseconds);
}

Found run(const Options& options, SSL_CTX* tls) {
  Found found;
  found.microseconds.reserve(1U << 20U);
  std::size_t number = 0;
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Connection>> all;
  for (std::size_t i = 0; i < options.connections; ++i) {
    all.push_back(std::make_unique<Connection>(options, tls, found, number));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = all.back().get()}};
    if (::epoll_ctl(poll, EPOLL_CTL_ADD, all.back()->descriptor(), &event) != 0) fail("epoll");
  }
  const Clock::time_point from = Clock::now() + options.warm;
  const Clock::time_point end = from + options.duration;
  for (const auto& connection : all) connection->ask(from);
  std::vector<char> room(kReadBytes);
  std::vector<epoll_event> events(options.connections);
  while (Clock::now() < end) {
    // With a pause nothing wakes it for the next request.
    const int timeout = options.pause.count() == 0 ? 100 : 1;
    const int ready = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      do {
        if (!connection.read_once(room)) fail("the server has closed a connection");
      } while (connection.has_pending());
      if (connection.is_idle() && options.pause.count() == 0) connection.ask(from);
    }
    if (options.pause.count() == 0) continue;
    for (const auto& connection : all) {
      if (connection->is_idle() && Clock::now() - connection->idle_since() >= options.pause) {
        connection->ask(from);
      }
    }
  }
  ::close(poll);
  count_waiting(all, found);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  const auto number = [&](std::string_view name, std::size_t otherwise) {
    return number_argument(argc, argv, name, otherwise);
  };
  if (argc < 3 || std::string_view(argv[argc - 1]).starts_with("--")) fail("TARGET HOST");
  const Options options{.port = static_cast<std::uint16_t>(number("port", 0)),
                        .connections = number("connections", 1),
                        .duration = milliseconds(number("milliseconds", 1000)),
                        .warm = milliseconds(number("warm", 0)),
                        .pause = microseconds(number("pause", 0)),
                        .numbered = number("numbered", 0) != 0,
                        .keys = number("keys", 0),
                        .target = argv[argc - 2],
                        .host = argv[argc - 1]};
  SSL_CTX* tls = number("tls", 0) != 0 ? make_tls() : nullptr;
  Found found = run(options, tls);
  SSL_CTX_free(tls);
  if (found.microseconds.empty()) fail("no request was answered");
  std::printf("RESULT %zu %llu %llu %u %u %u\n", found.microseconds.size(),
              static_cast<unsigned long long>(found.bytes),
              static_cast<unsigned long long>(found.failures), quantile(found.microseconds, 0.5),
              quantile(found.microseconds, 0.99), found.microseconds.back());
  return 0;
}
