#include "proxy/net/connector.h"

#include <event2/event.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "proxy/net/event.h"
#include "proxy/net/socket_options.h"
#include "proxy/net/syscalls.h"
#include "proxy/net/tls.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// A longer head is no proxy's that opens a tunnel.
constexpr std::size_t kAnswerBytesMax = std::size_t{16} * 1024;

ConnectOutcome outcome_of(int os_error) {
  switch (os_error) {
    case ECONNREFUSED:
      return ConnectOutcome::kRefused;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return ConnectOutcome::kUnreachable;
    case ETIMEDOUT:
      return ConnectOutcome::kTimeout;
    default:
      return ConnectOutcome::kError;
  }
}

ConnectFailure system_failure(const Connector::Options& options, const Address& address,
                              int os_error) {
  if (options.socket_file.empty()) {
    return {outcome_of(os_error), os_error, describe(address, os_error)};
  }
  return {outcome_of(os_error), os_error,
          "unix:" + options.socket_file + ": " + std::generic_category().message(os_error)};
}

// One that was connected to and failed behind that says more than others that are not there.
bool was_connected(ConnectOutcome outcome) {
  return outcome == ConnectOutcome::kTls || outcome == ConnectOutcome::kTlsVerify ||
         outcome == ConnectOutcome::kProxy;
}

}  // namespace

std::string_view to_string(ConnectOutcome outcome) {
  switch (outcome) {
    case ConnectOutcome::kRefused:
      return "refused";
    case ConnectOutcome::kUnreachable:
      return "unreachable";
    case ConnectOutcome::kTimeout:
      return "timeout";
    case ConnectOutcome::kTls:
      return "tls";
    case ConnectOutcome::kTlsVerify:
      return "tls-verify";
    case ConnectOutcome::kProxy:
      return "proxy";
    case ConnectOutcome::kError:
      return "error";
  }
  return "unknown";
}

std::string tunnel_request(const std::string& authority, std::string_view fields) {
  std::string text = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
  text += fields;
  text += "\r\n";
  return text;
}

int tunnel_status(std::string_view head) {
  constexpr std::string_view kVersion = "HTTP/1.";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool has_status = head.size() > 12 && head.starts_with(kVersion) && is_digit(head[7]) &&
                          head[8] == ' ' && is_digit(head[9]) && is_digit(head[10]) &&
                          is_digit(head[11]) && (head[12] == ' ' || head[12] == '\r');
  return has_status ? (head[9] - '0') * 100 + (head[10] - '0') * 10 + (head[11] - '0') : 0;
}

bool opens_tunnel(std::string_view head) { return tunnel_status(head) / 100 == 2; }

// One address: first the descriptor, then, under TLS, a stream that shakes hands.
class Connector::Attempt final : public StreamHandler {
 public:
  Attempt(Connector& owner, const Address& address) : owner_(owner), address_(address) {}

  // Returns 0, or the error that the system reported immediately.
  int start() {
    if (!owner_.options_.socket_file.empty()) return start_unix(owner_.options_.socket_file);
    socket_ = open_tcp(address_.family());
    if (!socket_) return errno;
    set_connection_options(socket_);
    if (syscalls.connect(socket_.get(), address_.data(), address_.size()) != 0 &&
        errno != EINPROGRESS && errno != EINTR) {
      return errno;
    }
    return wait();
  }

 private:
  int start_unix(const std::string& file) {
    const auto address = unix_address(file);
    if (!address) return ENAMETOOLONG;
    socket_ = open_tcp(AF_UNIX);
    if (!socket_) return errno;
    const auto* any = reinterpret_cast<const sockaddr*>(&*address);
    if (syscalls.connect(socket_.get(), any, sizeof *address) != 0 && errno != EINPROGRESS) {
      // No listener, or a full backlog: another server may be tried immediately.
      return errno == ENOENT || errno == EAGAIN ? ECONNREFUSED : errno;
    }
    return wait();
  }

  int wait() {
    event_.assign(owner_.loop_.base(), socket_.get(), EV_WRITE, &Attempt::on_event, this);
    return event_.add() ? 0 : errno;
  }

  static void on_event(int, short, void* context) { static_cast<Attempt*>(context)->connected(); }

  void connected() {
    int os_error = 0;
    socklen_t size = sizeof os_error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &os_error, &size);
    if (os_error != 0)
      return owner_.attempt_failed(*this, system_failure(owner_.options_, address_, os_error));
    if (!owner_.options_.tunnel_to.empty()) return ask_for_tunnel();
    established();
  }

  // A new connection always accepts so few bytes in one call.
  void ask_for_tunnel() {
    const std::string text =
        tunnel_request(owner_.options_.tunnel_to, owner_.options_.tunnel_fields);
    const ssize_t sent = syscalls.send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(text.size())) return tunnel_failed("accepts no request");
    event_.remove();
    event_.assign(owner_.loop_.base(), socket_.get(), EV_READ | EV_PERSIST, &Attempt::on_answer,
                  this);
    if (!event_.add())
      owner_.attempt_failed(*this, system_failure(owner_.options_, address_, errno));
  }

  static void on_answer(int, short, void* context) { static_cast<Attempt*>(context)->answered(); }

  // Bytes behind the head belong to the tunnel: they are peeked at, and stay in the socket.
  void answered() {
    std::array<char, 4096> room;
    const ssize_t seen = syscalls.recv(socket_.get(), room.data(), room.size(), MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (seen <= 0) return tunnel_failed("ends the connection");
    const std::size_t before = answer_.size();
    answer_.append(room.data(), static_cast<std::size_t>(seen));
    const std::size_t end = answer_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end != std::string::npos) answer_.resize(end + 4);
    const std::size_t taken = answer_.size() - before;
    if (syscalls.recv(socket_.get(), room.data(), taken, 0) != static_cast<ssize_t>(taken)) {
      return tunnel_failed("ends the connection");
    }
    if (end == std::string::npos) {
      if (answer_.size() > kAnswerBytesMax) tunnel_failed("sends too long a response");
      return;
    }
    if (!opens_tunnel(answer_)) {
      return tunnel_failed("answers \"" +
                           answer_.substr(0, std::min<std::size_t>(answer_.find('\r'), 64)) + "\"");
    }
    event_.remove();
    established();
  }

  void tunnel_failed(const std::string& why) {
    owner_.attempt_failed(*this, {.outcome = ConnectOutcome::kProxy,
                                  .message = "the proxy " + address_.to_string() + " " + why,
                                  .proxy_status = tunnel_status(answer_)});
  }

  void established() {
    const Options& options = owner_.options_;
    if (options.tls == nullptr) {
      return owner_.finish(
          std::make_unique<Stream>(owner_.loop_, std::move(socket_), address_, nullptr));
    }
    auto session = options.tls->session(
        options.tls_host, options.tunnel_to.empty()
                              ? options.tls_host + ":" + std::to_string(address_.port())
                              : options.tunnel_to);
    if (session == nullptr) return tls_failed("no TLS for \"" + options.tls_host + "\"");
    stream_ = std::make_unique<Stream>(owner_.loop_, std::move(socket_), address_, this,
                                       std::move(session));
    stream_->resume_reading();
  }

  void tls_failed(const std::string& why) {
    owner_.attempt_failed(*this, {ConnectOutcome::kTls, 0, address_.to_string() + ": " + why});
  }

  void on_ready(Stream& stream) override {
    stream.pause_reading();
    stream.set_handler(nullptr);
    owner_.finish(std::move(stream_));
  }
  void on_error(Stream& stream, CloseReason reason, int os_error) override {
    if (os_error != 0)
      return owner_.attempt_failed(*this, system_failure(owner_.options_, address_, os_error));
    std::string why(stream.tls_error());
    // OpenSSL's words for a record that is none.
    if (why == "wrong version number") why += ": the server sends no TLS; is its URL http?";
    if (const std::string fault(stream.certificate_fault()); !fault.empty()) {
      return owner_.attempt_failed(
          *this, {ConnectOutcome::kTlsVerify, 0, address_.to_string() + ": " + why, fault});
    }
    tls_failed(why.empty() ? std::string(to_string(reason)) : why);
  }
  // Nothing of the application comes before on_ready, and there it goes to another handler.
  std::size_t on_data(Stream&, std::span<const std::byte>) override { return 0; }
  void on_writable(Stream&) override {}
  void on_eof(Stream&) override { tls_failed("the peer ended the connection"); }

  Connector& owner_;
  Address address_;
  Socket socket_;
  Event event_;
  std::string answer_;  // response of a proxy, to the end of its head
  std::unique_ptr<Stream> stream_;
};

Connector::Connector(Loop& loop, Options options, OnDone on_done)
    : loop_(loop),
      options_(std::move(options)),
      on_done_(std::move(on_done)),
      stagger_(loop, [this] { start_next(); }),
      timeout_(loop, [this] { time_is_up(); }),
      step_(loop, [this] { start_next(); }) {
  ENCORE_CHECK(!options_.addresses.empty(), "a connector has an address to connect to");
  timeout_.start(options_.timeout);
  start_next();
}

Connector::~Connector() = default;

void Connector::start_next() {
  if (next_ == options_.addresses.size()) {
    if (attempts_.empty()) finish(std::unexpected(last_failure_));
    return;
  }
  const Address& address = options_.addresses[next_++];
  auto attempt = std::make_unique<Attempt>(*this, address);
  if (const int os_error = attempt->start(); os_error != 0) {
    if (!was_connected(last_failure_.outcome)) {
      last_failure_ = system_failure(options_, address, os_error);
    }
    step_.schedule();
    return;
  }
  attempts_.push_back(std::move(attempt));
  if (next_ < options_.addresses.size()) stagger_.start(options_.stagger);
}

void Connector::attempt_failed(Attempt& attempt, ConnectFailure failure) {
  if (!was_connected(last_failure_.outcome)) last_failure_ = std::move(failure);
  std::erase_if(attempts_, [&](const auto& each) { return each.get() == &attempt; });
  stagger_.cancel();
  step_.schedule();
}

void Connector::time_is_up() {
  if (last_failure_.message.empty()) {
    const std::size_t tried = std::max<std::size_t>(next_, 1) - 1;
    last_failure_ = {ConnectOutcome::kTimeout, ETIMEDOUT,
                     describe(options_.addresses[tried], ETIMEDOUT)};
  } else {
    last_failure_.outcome = ConnectOutcome::kTimeout;
  }
  finish(std::unexpected(last_failure_));
}

void Connector::finish(std::expected<std::unique_ptr<Stream>, ConnectFailure> result) {
  stagger_.cancel();
  timeout_.cancel();
  step_.cancel();
  attempts_.clear();
  // Called from here: it may destroy the connector.
  OnDone on_done = std::move(on_done_);
  on_done(std::move(result));
}

}  // namespace encore::net
