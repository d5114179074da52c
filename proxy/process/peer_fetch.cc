#include "proxy/process/peer_fetch.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/http/framing.h"
#include "proxy/http/parser.h"
#include "proxy/net/connector.h"
#include "proxy/net/loop.h"
#include "proxy/net/signals.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/net/tls.h"

namespace encore::server {
namespace {

constexpr std::uint16_t kOk = 200;
constexpr std::uint16_t kUnavailable = 503;
// Time before a peer that is busy is asked again.
constexpr Nanoseconds kRetryInterval = std::chrono::seconds(1);
// Between two looks for an order to end: nobody else obeys one yet.
constexpr Nanoseconds kOrdersInterval = std::chrono::milliseconds(50);

std::string authority_of(const config::ServerUrl& url) {
  if (!url.socket.empty()) return "localhost";
  const bool is_ipv6 = url.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

// The place of a page, for messages: without its query.
std::string place_of(const config::ServerUrl& url, std::string_view target) {
  std::string place = url.socket.empty() ? (url.tls ? "https://" : "http://") + authority_of(url)
                                         : "unix:" + url.socket + " ";
  return place.append(target.substr(0, target.find('?')));
}

std::string in_seconds(Nanoseconds time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}

// Returns the last line of a page of a few lines, as it may stand in a log: printable and short.
std::string last_line(std::string_view body) {
  constexpr std::size_t kMax = 300;
  while (body.ends_with('\n')) body.remove_suffix(1);
  body.remove_prefix(body.rfind('\n') + 1);
  std::string line(body.substr(0, kMax));
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

// A request and its response, again if the peer is busy, on a loop of its own.
class Download final : private net::StreamHandler {
 public:
  Download(net::Loop& loop, net::Resolver& resolver, const net::TlsContext* tls,
           const PeerRequest& neighbour)
      : loop_(loop),
        neighbour_(neighbour),
        tls_(tls),
        silence_(loop, [this] { fail_silent(); }),
        end_(loop, [this] { fail_late(); }),
        orders_(loop, [this] { look_for_orders(); }),
        again_(loop, [this] { connect(); }) {
    silence_.start(neighbour.silence_max);
    end_.start(neighbour.time_max);
    orders_.start(kOrdersInterval);
    if (!neighbour.url.socket.empty()) {
      addresses_ = {net::Address::loopback_v4(0)};
      connect();
      return;
    }
    query_ = resolver.resolve({.host = neighbour.url.host, .port = neighbour.url.port},
                              [this](auto resolved) { take_addresses(std::move(resolved)); });
  }

  std::expected<std::string, FetchFailure> run() {
    loop_.run();
    return std::move(outcome_);
  }

 private:
  // The order stays where it is, for who serves then.
  void look_for_orders() {
    if (net::is_held({SIGTERM, SIGINT})) return fail_with("stopped");
    orders_.start(kOrdersInterval);
  }

  void take_addresses(std::expected<net::Resolved, net::ResolveFailure> resolved) {
    if (!resolved) return fail_with("the name is not found");
    addresses_ = std::move(resolved->addresses);
    connect();
  }

  void connect() {
    awaited_ = "a connection";
    stream_.reset();
    received_.clear();
    refusal_ = 0;
    progress_ = {};
    silence_.start(neighbour_.silence_max);
    connector_ = std::make_unique<net::Connector>(
        loop_,
        net::Connector::Options{.addresses = addresses_,
                                .timeout = neighbour_.silence_max,
                                .tls = tls_,
                                .tls_host = neighbour_.url.host,
                                .socket_file = neighbour_.url.socket},
        [this](auto connected) { send(std::move(connected)); });
  }

  // It saves its memory, or adopts one, or much else: that passes.
  void ask_again() {
    refused_ = true;
    stream_->close();
    silence_.cancel();
    again_.start(kRetryInterval);
  }

  void send(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> connected) {
    if (!connected) return fail_with(connected.error().message);
    awaited_ = "its response";
    stream_ = std::move(*connected);
    // HTTP/1.0: what comes is not chunked.
    request_ = neighbour_.method + " " + neighbour_.target +
               " HTTP/1.0\r\nHost: " + authority_of(neighbour_.url);
    if (neighbour_.method != "GET") {
      request_ += "\r\nContent-Length: " + std::to_string(neighbour_.content.size());
    }
    if (!neighbour_.authorization.empty()) {
      request_ += "\r\nAuthorization: " + neighbour_.authorization;
    }
    request_ += "\r\n\r\n" + neighbour_.content;
    stream_->set_handler(this);
    stream_->resume_reading();
    on_writable(*stream_);
  }

  void on_writable(net::Stream& stream) override {
    const net::WriteResult wrote = stream.write(request_);
    if (wrote.status == net::WriteStatus::kError) return fail_with("it closed the connection");
    request_.erase(0, wrote.bytes);
  }

  std::size_t on_data(net::Stream&, std::span<const std::byte> bytes) override {
    if (again_.is_running()) return bytes.size();
    silence_.start(neighbour_.silence_max);
    received_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!length_ && !read_head()) return bytes.size();
    if (refusal_ != 0 && received_.size() >= *length_) {
      received_.resize(*length_);
      finish_refusal();
    } else if (received_.size() > *length_) {
      fail_with("it sent more than announced");
    } else if (received_.size() == *length_) {
      finish(std::move(received_));
    }
    return bytes.size();
  }

  // False where more has to come, or nothing will.
  bool read_head() {
    http::ResponseHead head;
    http::ParseError error;
    const auto status = http::parse_response(received_, {}, progress_, head, error);
    if (status == http::ParseStatus::kIncomplete) return false;
    if (status == http::ParseStatus::kBad) {
      fail_with("its response is not HTTP (" + std::string(to_string(error.reason)) + ")");
      return false;
    }
    const http::Framing framing = http::response_framing(http::Method::kGet, head);
    if (head.status == kUnavailable) {
      ask_again();
    } else if (head.status != kOk) {
      refusal_ = head.status;
      const bool has_length = framing.kind == http::BodyKind::kLength;
      const std::uint64_t length = has_length ? framing.length : received_.size() - head.head_size;
      return begin_body(head.head_size, std::min(length, kRefusalBytesMax));
    } else if (framing.kind != http::BodyKind::kLength) {
      fail_with("it sent no Content-Length");
    } else if (framing.length > neighbour_.bytes_max) {
      fail_with("it has " + std::to_string(framing.length) + " bytes, accepted: at most " +
                std::to_string(neighbour_.bytes_max) + neighbour_.bound_by);
    } else {
      return begin_body(head.head_size, framing.length);
    }
    return false;
  }

  bool begin_body(std::size_t head_size, std::uint64_t length) {
    awaited_ = "the rest of its response";
    length_ = length;
    received_.erase(0, head_size);
    return true;
  }

  void finish_refusal() {
    const std::string said = last_line(received_);
    fail_with("it answers " + std::to_string(refusal_) + " " +
              std::string(http::reason_phrase(refusal_)) + (said.empty() ? "" : ": " + said));
  }

  void on_eof(net::Stream&) override { fail_with("it ended the response early"); }
  void on_error(net::Stream&, net::CloseReason reason, int) override {
    fail_with("the connection broke (" + std::string(to_string(reason)) + ")");
  }

  void fail_silent() {
    fail_with("nothing came for " + in_seconds(neighbour_.silence_max) + ", awaited: " + awaited_);
  }
  void fail_late() {
    fail_with("it takes more than " + in_seconds(neighbour_.time_max) +
              (refused_ ? ", and has answered 503 Service Unavailable" : ""));
  }
  void fail_with(const std::string& what) {
    finish(std::unexpected(
        FetchFailure{.status = static_cast<int>(refusal_),
                     .message = place_of(neighbour_.url, neighbour_.target) + ": " + what,
                     .body = refusal_ == 0 ? std::string() : std::move(received_)}));
  }
  // The first outcome counts.
  void finish(std::expected<std::string, FetchFailure> outcome) {
    if (done_) return;
    done_ = true;
    outcome_ = std::move(outcome);
    silence_.cancel();
    end_.cancel();
    orders_.cancel();
    again_.cancel();
    if (stream_ != nullptr) stream_->close();
    loop_.stop();
  }

  net::Loop& loop_;
  const PeerRequest& neighbour_;
  const net::TlsContext* tls_;
  net::Timer silence_;
  net::Timer end_;
  net::Timer orders_;
  net::Timer again_;
  const char* awaited_ = "the addresses of its name";
  bool refused_ = false;  // for a time, with 503
  std::vector<net::Address> addresses_;
  std::unique_ptr<net::Resolver::Query> query_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  std::string request_;
  std::string received_;
  http::ParseProgress progress_;
  std::optional<std::uint64_t> length_;  // the body's, once the head is there
  unsigned refusal_ = 0;                 // the status of a response that is none to be fetched
  std::expected<std::string, FetchFailure> outcome_;
  bool done_ = false;
};

}  // namespace

Result<std::string> fetch(const PeerRequest& neighbour) {
  auto fetched = ask(neighbour);
  return fetched ? Result<std::string>(*std::move(fetched)) : fail(fetched.error().message);
}

std::expected<std::string, FetchFailure> ask(const PeerRequest& neighbour) {
  const auto failed = [](const Error& error) {
    return std::unexpected(FetchFailure{.message = error.message});
  };
  std::optional<net::TlsContext> tls;
  if (neighbour.url.tls) {
    auto context = net::TlsContext::client({.ca_file = neighbour.ca_file});
    if (!context) return failed(context.error());
    tls = std::move(*context);
  }
  auto loop = net::Loop::create();
  if (!loop) return failed(loop.error());
  auto resolver = net::Resolver::create(**loop, neighbour.names);
  if (!resolver) return failed(resolver.error());
  return Download(**loop, **resolver, tls ? &*tls : nullptr, neighbour).run();
}

}  // namespace encore::server
