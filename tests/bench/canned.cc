#include "tests/bench/canned.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace encore::bench {
namespace {

constexpr std::size_t kReadBytes = 16384;
constexpr int kBacklog = 16384;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void set_no_delay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// One client. The read event is registered once for the life of the connection; the write event
// is added only after a short write.
class Connection {
 public:
  Connection(event_base* base, int fd, Responder* responder) : fd_(fd), responder_(responder) {
    event_assign(&read_, base, fd, EV_READ | EV_PERSIST, on_readable, this);
    event_assign(&write_, base, fd, EV_WRITE, on_writable, this);
    event_add(&read_, nullptr);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

 private:
  ~Connection() {
    event_del(&read_);
    event_del(&write_);
    close(fd_);
  }

  static void on_readable(evutil_socket_t, short, void* self) {
    static_cast<Connection*>(self)->read_some();
  }
  static void on_writable(evutil_socket_t, short, void* self) {
    static_cast<Connection*>(self)->write_some();
  }

  void read_some() {
    static char buffer[kReadBytes];
    ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      delete this;
      return;
    }
    std::string_view bytes(buffer, static_cast<std::size_t>(got));
    if (!partial_.empty()) {
      partial_.append(bytes);
      bytes = partial_;
    }
    std::size_t used = 0;
    std::size_t end;
    while ((end = bytes.find("\r\n\r\n", used)) != std::string_view::npos) {
      std::string_view answer = responder_->respond(target_of(bytes.substr(used, end - used)));
      used = end + 4;
      if (pending_.empty()) {
        pending_ = answer;
      } else {
        std::string gathered(pending_);
        gathered.append(answer);
        gathered_.swap(gathered);
        pending_ = gathered_;
      }
    }
    std::string rest(bytes.substr(used));
    partial_.swap(rest);
    if (!pending_.empty()) write_some();
  }

  void write_some() {
    ssize_t put = write(fd_, pending_.data(), pending_.size());
    if (put < 0 && errno != EAGAIN && errno != EINTR) {
      delete this;
      return;
    }
    if (put > 0) pending_.remove_prefix(static_cast<std::size_t>(put));
    if (!pending_.empty()) event_add(&write_, nullptr);
  }

  int fd_;
  Responder* responder_;
  event read_{};
  event write_{};
  std::string partial_;       // a head of which the end has not come
  std::string_view pending_;  // the rest to write: canned bytes, or part of gathered_
  std::string gathered_;      // answers to requests that came pipelined
};

struct Server {
  event_base* base;
  Responder* responder;
  event accept{};
};

void on_acceptable(evutil_socket_t listener, short, void* argument) {
  auto* server = static_cast<Server*>(argument);
  for (int fd; (fd = accept_one(listener)) >= 0;) {
    new Connection(server->base, fd, server->responder);
  }
}

void on_signal(evutil_socket_t, short, void* base) {
  event_base_loopbreak(static_cast<event_base*>(base));
}

}  // namespace

int listen_on(std::uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address = loopback(port);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind");
  if (listen(fd, kBacklog) != 0) die("listen");
  return fd;
}

void fork_workers(std::size_t workers) {
  for (std::size_t i = 1; i < workers; ++i) {
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return;
  }
}

int accept_one(int listener) {
  int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) set_no_delay(fd);
  return fd;
}

int connect_to(std::uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
  set_no_delay(fd);
  evutil_make_socket_nonblocking(fd);
  return fd;
}

std::string canned_response(std::size_t body_bytes, std::string_view extra, std::size_t salt) {
  char date[64];
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  std::string response = "HTTP/1.1 200 OK\r\nDate: ";
  response.append(date).append("\r\nContent-Type: text/plain\r\nContent-Length: ");
  response.append(std::to_string(body_bytes)).append("\r\n").append(extra).append("\r\n");
  std::size_t head_bytes = response.size();
  response.resize(head_bytes + body_bytes);
  for (std::size_t i = 0; i < body_bytes; ++i) {
    response[head_bytes + i] = static_cast<char>('a' + (i + salt) % 26);
  }
  return response;
}

std::string_view target_of(std::string_view head) {
  std::size_t start = head.find(' ');
  if (start == std::string_view::npos) return {};
  std::size_t end = head.find(' ', start + 1);
  if (end == std::string_view::npos) return {};
  return head.substr(start + 1, end - start - 1);
}

void serve(event_base* base, std::uint16_t port, Responder* responder) {
  auto* server = new Server{base, responder, {}};  // lives as long as the program
  event_assign(&server->accept, base, listen_on(port), EV_READ | EV_PERSIST, on_acceptable, server);
  event_add(&server->accept, nullptr);
}

void run_until_signal(event_base* base) {
  std::signal(SIGPIPE, SIG_IGN);
  for (int number : {SIGTERM, SIGINT})
    event_add(evsignal_new(base, number, on_signal, base), nullptr);
  event_base_dispatch(base);
}

std::size_t number_argument(int argc, char** argv, std::string_view name, std::size_t fallback) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument(argv[i]);
    if (!argument.starts_with("--") || !argument.substr(2).starts_with(name)) continue;
    std::string_view text = argument.substr(2 + name.size());
    std::size_t value = 0;
    if (!text.starts_with('=') ||
        std::from_chars(text.data() + 1, text.data() + text.size(), value).ec != std::errc{}) {
      std::fprintf(stderr, "%s: expected --%s=NUMBER\n", argv[i], std::string(name).c_str());
      std::exit(2);
    }
    return value;
  }
  return fallback;
}

}  // namespace encore::bench
