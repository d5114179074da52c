#include "proxy/client/interceptor.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/http1_text.h"

namespace encore::server {
namespace {

using After = Http1Carrier::After;

// A client that verifies only when the handshake is done leaves immediately then. One that connects
// in advance stays longer than that.
constexpr Nanoseconds kSoon = std::chrono::seconds(1);
// If the pair of client and host has taken it before. A client that verifies behind the handshake
// does it immediately; a connection that a browser opened in advance stays open for longer.
constexpr Nanoseconds kAtOnce = std::chrono::milliseconds(150);

}  // namespace

Interceptor::Interceptor(const InterceptServices& services, InterceptorOwner& owner,
                         net::Stream& stream, std::shared_ptr<const RequestContext> connect,
                         InterceptHttp2 http2)
    : services_(services),
      owner_(owner),
      stream_(stream),
      connect_(std::move(connect)),
      host_(lower_ascii(connect_->target.authority.host)),
      http2_(http2),
      started_(services.loop.now()),
      was_in_use_(interception().is_in_use(connect_->client, host_)),
      since_(started_) {}

Interceptor::~Interceptor() {
  leave_handshakes();
  record(Outcome::kClientAborted);
}

void Interceptor::go(Step step) {
  step_ = step;
  since_ = services_.loop.now();
  if (step == Step::kUnused || step == Step::kOver) leave_handshakes();
}

void Interceptor::start() {
  stream_.pause_reading();
  stream_.set_handler(this);
  bytes_before_ = stream_.bytes_written();
  answer_.add_text("HTTP/1.1 200 Connection established\r\n\r\n");
  pump_answer();
}

// The rest of the answer, which the client does not take yet, comes later.
void Interceptor::pump_answer() {
  switch (answer_.pump(stream_)) {
    case Http1Writer::Status::kDone:
      go(Step::kListening);
      stream_.resume_reading();
      return;
    case Http1Writer::Status::kDead:
      end(Outcome::kClientAborted, After::kAbort);
      return;
    case Http1Writer::Status::kBlocked:
    case Http1Writer::Status::kWaiting:
    case Http1Writer::Status::kMore:
    case Http1Writer::Status::kBroken:
      return;
  }
}

void Interceptor::on_writable(net::Stream&) {
  if (step_ == Step::kAnswering && answer_.is_blocked()) pump_answer();
}

std::size_t Interceptor::on_data(net::Stream&, std::span<const std::byte> bytes) {
  if (step_ == Step::kListening) {
    look_at_hello({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else if (step_ == Step::kUnused) {
    go(Step::kOver);
    const ListenerPolicy* const policy = connect_->policy;
    owner_.on_inside({.host = host_,
                      .port = connect_->target.authority.port,
                      .has_logged_in = policy != nullptr && policy->credentials != nullptr,
                      .login = connect_->login,
                      .use = interception().use(connect_->client, host_, services_.loop.now())});
  }
  // All of it is for the next handler: TLS, the origin, or the one that answers requests.
  return 0;
}

void Interceptor::look_at_hello(std::string_view input) {
  tls::ClientHello hello;
  const tls::HelloStatus status = tls::parse_client_hello(input, hello);
  if (status == tls::HelloStatus::kIncomplete) {
    if (hello_ == Hello::kNone) since_ = services_.loop.now();
    hello_ = Hello::kBegun;
    if (enter_handshakes()) owner_.on_unfinished(input.size());
    return;
  }
  if (InterceptRules::at_hello(host_, status, hello) != Splice::kNone) return splice();
  if (!enter_handshakes()) return;
  if (!services_.loop.take_handshake()) {
    // No time for its certificate in this turn.
    owner_.on_unfinished(input.size());
    stream_.resume_reading();
    return;
  }
  const MonotonicTime begun = monotonic_now();
  net::TlsSessionPointer session = interception().session(host_, http2_, services_.loop.wall_now());
  services_.loop.spend_on_handshakes(monotonic_now() - begun);
  if (session == nullptr) return splice();
  if (!stream_.start_tls(std::move(session))) {
    return end(Outcome::kNoMemory, After::kAbort);
  }
  go(Step::kShaking);
  owner_.on_unfinished(0);
}

bool Interceptor::enter_handshakes() {
  if (handshake_ == Handshake::kUnderWay) return true;
  const ListenerPolicy* const policy = connect_->policy;
  const bool counted = policy == nullptr || !policy->trusts(connect_->client);
  const std::uint32_t limit = connect_->runtime->config.limits.tls_handshakes_per_client;
  if (counted && limit != 0 && !seat_.take(services_.handshakes, connect_->client, limit)) {
    services_.stats.tls_refused.add();
    record(Outcome::kDenied, "too-many-handshakes");
    end(Outcome::kDenied, After::kAbort);
    return false;
  }
  handshake_ = Handshake::kUnderWay;
  services_.stats.tls_handshaking.add();
  return true;
}

void Interceptor::leave_handshakes() {
  if (handshake_ == Handshake::kNone) return;
  handshake_ = Handshake::kNone;
  services_.stats.tls_handshaking.subtract();
  seat_.leave();
}

void Interceptor::splice() {
  go(Step::kOver);
  services_.stats.intercepts_spliced.add();
  record_ = Record::kMade;  // by the tunnel
  owner_.on_splice(connect_, answer_.sent_bytes());
}

void Interceptor::on_ready(net::Stream&) {
  go(Step::kUnused);
  services_.stats.intercepts.add();
  record(Outcome::kIntercepted);
  owner_.on_hands_shaken();
}

void Interceptor::on_eof(net::Stream&) {
  note(left_at_once());
  end(Outcome::kClientAborted, After::kClose);
}

void Interceptor::on_error(net::Stream& stream, net::CloseReason reason, int) {
  if (step_ == Step::kShaking) {
    note(left_handshake(stream, reason));
  } else {
    note(refuses_behind(stream) ? Left::kRejecting : left_at_once());
  }
  end(Outcome::kClientAborted, After::kAbort);
}

// By an alert: who verifies behind the handshake says it so, sooner or later.
bool Interceptor::refuses_behind(const net::Stream& stream) const {
  return step_ == Step::kUnused && stream.is_tls_refused_by_peer();
}

Interceptor::Left Interceptor::left_at_once() const {
  const MonotonicTime now = services_.loop.now();
  if (step_ != Step::kUnused) return Left::kOtherwise;
  const auto used = interception().last_use(connect_->client, host_, now);
  return now - since_ < (used ? kAtOnce : kSoon) ? beside_use(used) : Left::kOtherwise;
}

Interceptor::Left Interceptor::left_handshake(const net::Stream& stream,
                                              net::CloseReason reason) const {
  if (stream.is_tls_refused_by_peer()) return Left::kRejecting;
  // The origin may speak what it does.
  if (stream.has_tls_nothing_in_common()) return Left::kRejecting;
  const bool has_left = reason == net::CloseReason::kReset || stream.has_tls_peer_left();
  if (!has_left) return Left::kOtherwise;
  return beside_use(interception().last_use(connect_->client, host_, services_.loop.now()));
}

// A browser that ends leaves what it had opened in advance, as one does that rejects us.
Interceptor::Left Interceptor::beside_use(std::optional<MonotonicTime> used) const {
  // A client that has sent a request meanwhile had opened this connection in advance.
  if (used && *used >= started_) return Left::kOtherwise;
  return was_in_use_ ? Left::kPerhapsRejecting : Left::kRejecting;
}

void Interceptor::note(Left left) {
  const MonotonicTime now = services_.loop.now();
  if (left == Left::kPerhapsRejecting &&
      interception().note_doubt(connect_->client, host_, started_, now)) {
    left = Left::kRejecting;
  }
  if (left == Left::kRejecting) {
    services_.stats.intercepts_rejected.add();
    interception().note_reject(connect_->client, host_, now);
  } else if (step_ == Step::kShaking) {
    services_.stats.intercepts_failed.add();
  }
}

void Interceptor::end(Outcome outcome, After after) {
  if (step_ == Step::kOver) return;
  go(Step::kOver);
  record(outcome);
  owner_.on_intercept_end(after);
}

void Interceptor::record(Outcome outcome, std::string_view detail) {
  if (record_ == Record::kMade) return;
  record_ = Record::kMade;
  RequestRecord entry;
  entry.outcome = outcome;
  entry.started = started_;
  entry.status = answer_.sent_bytes() == 0 ? 0 : 200;
  entry.sent_bytes = stream_.bytes_written() - bytes_before_;
  entry.detail = detail;
  record_request(*connect_, entry);
  services_.log.record(entry);
}

void Interceptor::check_timeouts(MonotonicTime now) {
  const config::Timeouts& timeouts = connect_->runtime->config.timeouts;
  const auto fail = [this] {
    services_.stats.intercepts_failed.add();
    end(Outcome::kClientAborted, After::kAbort);
  };
  switch (step_) {
    case Step::kAnswering:
      if (has_passed(answer_.stalled_for(now, stream_), timeouts.client_write)) {
        end(Outcome::kClientAborted, After::kAbort);
      }
      return;
    case Step::kListening:
      // If something has begun, its rest is due as that of a head is.
      if (hello_ == Hello::kNone) {
        if (has_passed(now - since_, interception().hello_wait())) splice();
        return;
      }
      if (has_passed(now - since_, timeouts.client_header)) fail();
      return;
    case Step::kShaking:
      if (has_passed(now - since_, timeouts.tls_handshake)) fail();
      return;
    case Step::kUnused:
      if (has_passed(now - since_, timeouts.client_idle))
        end(Outcome::kClientAborted, After::kClose);
      return;
    case Step::kOver:
      return;
  }
}

}  // namespace encore::server
