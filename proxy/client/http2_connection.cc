#include "proxy/client/http2_connection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "proxy/client/http1_writer.h"
#include "proxy/client/http2_reply.h"
#include "proxy/client/http2_stream.h"
#include "proxy/client/http2_tunnel.h"
#include "proxy/client/websocket_key.h"
#include "proxy/http/parser.h"
#include "proxy/intake/revocation.h"

namespace encore::server {
namespace {

constexpr std::size_t kVectorsMax = 64;
// The second step of a drain waits no longer for a client that does not acknowledge the first.
constexpr Nanoseconds kDrainPatience = std::chrono::seconds(1);

h2::Options options_of(const Runtime& runtime, const ListenerContext& listener,
                       const ClientIdentity& identity) {
  const config::Timeouts& timeouts = runtime.config.timeouts;
  h2::Options options;
  options.limit_heads(runtime.head_limits.head_bytes_max, runtime.head_limits.fields_max);
  options.stall_time = h2::time_limit(timeouts.client_write);
  options.head_time = h2::time_limit(timeouts.client_header);
  options.has_absolute_form =
      listener.mode == config::Mode::kForward && identity.inside() == nullptr;
  return options;
}

// Brings the worker's counters up to what its sessions have counted.
void tell_counters(const ClientServices& services) {
  WorkerStats& stats = services.stats;
  stats.http2.set(services.http2);
  stats.http2_streams_reset.add(services.http2.streams_reset - stats.http2_streams_reset.get());
}

// Moves a gauge of the worker by what has become of the connection's part of it.
void move_gauge(Counter& gauge, std::size_t& told, std::size_t now) {
  gauge.add(now - told);  // unsigned: the sum comes out right where it is less
  told = now;
}

}  // namespace

Http2Connection::Http2Connection(const ClientServices& services, const ListenerContext& listener,
                                 std::unique_ptr<net::Stream> stream, ClientIdentity&& identity)
    : services_(services),
      listener_(listener),
      stream_(std::move(stream)),
      identity_(std::move(identity), [] {}),
      session_(options_of(*services.runtime, listener, identity_), services.http2, *this),
      parts_{.services = services,
             .listener = listener,
             .identity = identity_,
             .session = session_,
             .stream = *stream_},
      works_(services.retired),
      later_(services.loop, [this] { on_later(); }),
      idle_since_(services.loop.now()) {
  services_.stats.http2_connections.add();
  services_.stats.http2_open.add();
}

Http2Connection::~Http2Connection() = default;

void Http2Connection::begin() {
  stream_->set_handler(this);
  stream_->resume_reading();
  if (is_draining()) return drain();
  flush_later();
}

// --- bytes ---

std::size_t Http2Connection::on_data(net::Stream&, std::span<const std::byte> bytes) {
  ENCORE_CHECK(!is_closed_, "a closed connection reads nothing");
  const std::size_t used = session_.receive(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, services_.loop.now());
  services_.stats.bytes_from_clients.add(used);
  listener_.counts->received_bytes.add(used);
  tell_counters(services_);
  if (session_.is_within_block()) {
    services_.keeper.note_unfinished_head(*this, session_.block_bytes_max());
  } else {
    services_.keeper.drop_unfinished_head(*this);
  }
  flush();
  return used;
}

void Http2Connection::on_writable(net::Stream&) {
  if (is_closed_) return;
  is_blocked_ = false;
  if (std::exchange(awaits_delivery_, false)) {
    works_.for_each([](Http2Responder& work) {
      if (work.is_written()) work.on_writable(work.id());
    });
  }
  flush();
}

// A client that has only ended its side of the connection still reads, as far as its windows go;
// one that has gone answers the GOAWAY with a reset (check_timeouts).
void Http2Connection::on_eof(net::Stream&) {
  if (is_closed_) return;
  has_peer_ended_ = true;
  works_.for_each([this](Http2Responder& work) {
    if (session_.is_received(work.id())) return;
    work.end_by({.detail = "unfinished-request", .unsent = ClientGone::Unsent::kSent});
  });
  session_.finish_drain();
  flush_later();
}

void Http2Connection::on_error(net::Stream&, net::CloseReason reason, int) {
  close(How::kByReset, {.detail = net::to_string(reason)});
}

void Http2Connection::on_later() {
  if (is_closed_) return;
  for (const h2::StreamId id : std::exchange(resumed_, {})) works_.resume(id);
  flush();
}

void Http2Connection::resume_later(Http2Responder& work) {
  resumed_.push_back(work.id());
  later_.schedule();
}

void Http2Connection::flush() {
  if (is_closed_) return;
  const std::uint64_t cost = stream_->is_tls() ? net::TurnShares::kTlsCost : 1;
  const std::size_t share = services_.loop.shares().allowance() / cost;
  const std::size_t bytes_max = std::max(share, Http1Writer::kLittleBytes);
  const bool was_paused = session_.is_paused();
  std::size_t bytes = 0;
  while (!is_blocked_ && session_.has_output()) {
    if (bytes >= bytes_max) {
      later_.wait_for_share();
      break;
    }
    std::array<iovec, kVectorsMax> parts;
    const h2::Batch batch = session_.gather(parts, bytes_max - bytes);
    net::WriteResult result;
    if (batch.parts != 0) result = stream_->write(std::span(parts).first(batch.parts));
    session_.sent(result.bytes, services_.loop.now());
    bytes += result.bytes;
    if (result.status == net::WriteStatus::kError) {
      return close(How::kByReset, {.detail = net::to_string(result.reason)});
    }
    is_blocked_ = result.status == net::WriteStatus::kBlocked;
    if (bytes != 0 || stall_since_ == MonotonicTime{}) stall_since_ = services_.loop.now();
  }
  move_gauge(services_.stats.http2_streams_open, told_streams_, session_.stream_count());
  works_.for_each([](Http2Responder& work) { work.account_held(); });
  const bool is_over = session_.is_finished() && works_.empty();
  // A client that reads opens windows. To a closed socket they are a reason for a reset, and what
  // the kernel has not sent is lost by it.
  if (is_over && !session_.is_ended() && !has_peer_ended_) awaits_delivery_ = true;
  if (awaits_delivery_ && !is_blocked_) {
    switch (stream_->await_sent()) {
      case net::Stream::Sent::kAll:
        if (is_over) return close(How::kGracefully);
        on_writable(*stream_);
        return;
      case net::Stream::Sent::kNotYet:
        break;
      case net::Stream::Sent::kNever:
        return close(How::kByReset, {.detail = "reset"});
    }
  }
  if (is_over && !awaits_delivery_) return close(How::kGracefully);
  // Bytes of a client that takes nothing wait.
  if (was_paused && !session_.is_paused()) stream_->resume_reading();
}

// --- requests ---

h2::StreamHandler* Http2Connection::on_request(h2::StreamId stream, const h2::Request& request) {
  services_.stats.http2_streams.add();
  if (is_draining() && !session_.is_draining()) drain();
  const Decided decided = decide(stream, request.text);
  return decided.waits ? &wait(stream, request.text) : decided.work;
}

h2::StreamHandler* Http2Connection::on_connect(h2::StreamId stream, const h2::Connect& connect) {
  if (connect.protocol.empty()) {
    const h2::Request request{.text = connect.text,
                              .scheme = connect.scheme,
                              .authority = connect.authority,
                              .has_content = connect.has_content};
    return on_request(stream, request);
  }
  services_.stats.http2_streams.add();
  if (is_draining() && !session_.is_draining()) drain();
  if (http::equals_lower(connect.protocol, "websocket")) {
    // In front of the empty line.
    connect.text.insert(connect.text.size() - 2, make_websocket_key_line());
  }
  return put_in_front(stream, connect.text);
}

Http2Responder* Http2Connection::put_in_front(h2::StreamId stream, std::string& text) {
  std::string kept = std::move(text);
  const Decided decided = decide(stream, kept);
  if (!decided.waits && decided.work == nullptr) return nullptr;
  Http2PendingStream& front = wait(stream, kept);
  if (decided.work != nullptr) front.set_work(decided.work);
  return &front;
}

void Http2Connection::on_switched(Http2Stream& work, SwitchedConnection switched) {
  ENCORE_CHECK(work.front != nullptr, "what asks for another protocol may be followed by it");
  Http2PendingStream& front = *std::exchange(work.front, nullptr);
  auto* const tunnel = new Http2Tunnel(*this, work.id(), work.share_request(), work.take_seat());
  const Http2Stream::Early early = work.take_early();
  works_.keep(std::unique_ptr<Http2Responder>(tunnel));
  works_.retire(work);
  front.set_work(tunnel);
  tunnel->start_switched(std::move(switched));
  if (!early.content.empty()) tunnel->on_content(work.id(), early.content);
  if (early.has_ended) tunnel->on_content_end(work.id(), {});
}

void Http2Connection::on_connection_end(const h2::ConnectionEnd&) {}

ClientGone Http2Connection::gone() const {
  ClientGone why = gone_;
  if (!is_closed_ && session_.is_ended()) why.detail = session_.end()->why;
  return why;
}

Http2Connection::Decided Http2Connection::decide(h2::StreamId stream, std::string& text) {
  http::RequestHead& head = services_.http1.head;
  http::ParseProgress progress;
  http::ParseError error;
  std::string encoded;
  const auto status =
      http::parse_lax_request(text, services_.runtime->head_limits, progress, head, error, encoded);
  if (status != http::ParseStatus::kComplete) {
    // Its end is there, so that nothing else is missing than a sound head.
    if (status == http::ParseStatus::kIncomplete) error = {.status = 400};
    return {.work = refuse(stream, malformed(error), nullptr)};
  }
  head.version = http::Version::kHttp2;
  const std::string_view sent = encoded.empty() ? std::string_view(text) : encoded;
  RequestView view;
  CacheView found;
  ClientCounter::Seat place;
  Intake::Outcome outcome = services_.intake.take({.head = head,
                                                   .text = sent,
                                                   .listener = listener_,
                                                   .identity = identity_,
                                                   .seat = place,
                                                   .is_tls = stream_->is_tls()},
                                                  view, found);
  if (std::holds_alternative<Intake::Wait>(outcome)) return {.waits = true};
  if (const auto* refused = std::get_if<Intake::Refuse>(&outcome)) {
    return {.work = refuse(stream, refused->refusal, &view)};
  }
  if (const auto* hit = std::get_if<Intake::Hit>(&outcome)) {
    std::unique_ptr<Http2Reply> reply(new Http2Reply(*this, stream));
    reply->send_hit(view, sent, hit->form, found);
    return {.work = reply->is_done() ? nullptr : works_.keep(std::move(reply))};
  }
  if (auto* tunnel = std::get_if<Intake::Tunnel>(&outcome)) {
    // In a stream nothing is decrypted, as within TLS.
    auto* const made = new Http2Tunnel(*this, stream, std::move(tunnel->request), std::move(place));
    Http2Tunnel& work = *made;
    works_.keep(std::unique_ptr<Http2Responder>(made));
    work.start();
    return {.work = session_.status(stream) == h2::SendStatus::kGone ? nullptr : &work};
  }
  auto* const start = std::get_if<Intake::Start>(&outcome);
  auto* const made =
      new Http2Stream(*this, stream, std::move(start->request), std::move(found), std::move(place));
  Http2Stream& work = *made;
  works_.keep(std::unique_ptr<Http2Responder>(made));
  work.start();
  // It is retired where it has its answer already.
  return {.work = session_.status(stream) == h2::SendStatus::kGone ? nullptr : &work};
}

Http2Responder* Http2Connection::refuse(h2::StreamId stream, const Refusal& refusal,
                                        const RequestView* view) {
  std::unique_ptr<Http2Reply> reply(new Http2Reply(*this, stream));
  reply->send_refusal(refusal, view);
  return reply->is_done() ? nullptr : works_.keep(std::move(reply));
}

Http2PendingStream& Http2Connection::wait(h2::StreamId stream, std::string& text) {
  auto* const made = new Http2PendingStream(*this, stream, std::move(text));
  works_.keep(std::unique_ptr<Http2Responder>(made));
  made->take_logins(identity_);
  return *made;
}

// The session is not on the stack: a login comes from the loop.
void Http2Connection::on_login(Http2PendingStream& waiting) {
  if (is_closed_ || session_.is_ended() || waiting.is_gone()) return;
  waiting.bring_logins(identity_);
  const Decided decided = decide(waiting.id(), waiting.text());
  if (decided.waits) {
    waiting.take_logins(identity_);
  } else if (decided.work == nullptr) {
    on_responder_end(waiting);
  } else {
    waiting.set_work(decided.work);
  }
  flush_later();
}

// --- works ---

void Http2Connection::on_responder_end(Http2Responder& work) {
  if (work.front != nullptr) {
    work.front->set_work(nullptr);
    works_.retire(*work.front);
  }
  works_.retire(work);
  if (works_.empty()) idle_since_ = services_.loop.now();
}

// --- the connection ---

void Http2Connection::close(How how, ClientGone why) {
  if (is_closed_) return;
  is_closed_ = true;
  why.unsent = how == How::kGracefully ? ClientGone::Unsent::kSent : ClientGone::Unsent::kLost;
  gone_ = why;
  later_.cancel();
  services_.keeper.drop_unfinished_head(*this);
  session_.drop();
  move_gauge(services_.stats.http2_streams_open, told_streams_, 0);
  ENCORE_CHECK(works_.empty(), "no stream is left behind its connection");
  tell_counters(services_);
  if (stream_->is_open()) {
    if (how == How::kByReset) {
      stream_->abort();
    } else if (how == How::kAtOnce) {
      stream_->close();
    } else {
      stream_->close_gracefully();
    }
  }
  services_.stats.http2_open.subtract();
  services_.keeper.retire(*this);
}

void Http2Connection::check_timeouts(MonotonicTime now) {
  if (is_closed_) return;
  const config::Timeouts& timeouts = services_.runtime->config.timeouts;
  session_.check_timeouts(now);
  works_.for_each([&](Http2Responder& work) { work.check_timeouts(now); });
  tell_counters(services_);
  if (has_peer_ended_ && stream_->was_reset()) return close(How::kByReset, {.detail = "reset"});
  if (is_blocked_ || awaits_delivery_) {
    // The kernel has megabytes for the client, which takes them while nothing more is written.
    const std::uint64_t taken_before = std::exchange(taken_, stream_->bytes_taken());
    if (taken_ != taken_before) stall_since_ = now;
    if (has_passed(now - stall_since_, timeouts.client_write)) {
      return close(How::kByReset, {.detail = "client-write"});
    }
  }
  if (drain_since_ != MonotonicTime{} && now - drain_since_ >= kDrainPatience) {
    session_.finish_drain();
  }
  if (is_idle() && has_passed(now - idle_since_, timeouts.client_idle)) session_.finish_drain();
  flush();
}

void Http2Connection::drain() {
  if (is_closed_ || session_.is_draining()) return;
  drain_since_ = services_.loop.now();
  session_.drain();
  flush_later();
}

void Http2Connection::end_if_quiet() {
  if (is_closed_) return;
  const bool is_quiet = quiet_.look(net::moved_bytes(*stream_));
  if (!is_quiet) return;
  // Bytes from an origin may reach the client later.
  if (works_.has([](const Http2Responder& work) { return work.is_origin_active(); })) return;
  cut();
}

// Each stream is checked by itself: behind a proxy they are of many clients.
bool Http2Connection::revoke() {
  if (is_closed_) return false;
  if (listener_.closed) return is_revoked();
  const bool was_revoked = is_revoked();
  const auto is_allowed = [this](const RequestContext* request, const net::Address* origin) {
    return why_revoked(*services_.runtime, listener_,
                       {.identity = identity_, .request = request, .origin = origin})
        .empty();
  };
  // Others in progress do not depend on the login of the last request.
  if (!works_.empty()) identity_.logins().clear();
  is_revoked_ = !is_allowed(nullptr, nullptr);
  works_.for_each([&](Http2Responder& work) {
    const RequestContext* const request = work.request();
    work.is_revoked = request != nullptr && !is_allowed(request, work.origin_address());
  });
  if (is_revoked() && !was_revoked) services_.stats.connections_revoked.add();
  if (is_revoked_) drain();
  return is_revoked();
}

bool Http2Connection::is_revoked() const {
  return is_revoked_ || works_.has([](const Http2Responder& work) { return work.is_revoked; });
}

void Http2Connection::cut_revoked(const ClientGone& why) {
  if (is_closed_) return;
  if (is_revoked_) return close(How::kGracefully, why);
  ClientGone how = why;
  how.unsent = ClientGone::Unsent::kSent;
  works_.for_each([&](Http2Responder& work) {
    if (work.is_revoked) work.end_by(how);
  });
}

bool Http2Connection::may_be_given_up() const {
  return !is_closed_ && is_idle() && !awaits_delivery_ && stream_->kept_bytes() == 0;
}

void Http2Connection::check_read_rate(MonotonicTime now) {
  if (is_closed_) return;
  works_.for_each([&](Http2Responder& work) { work.check_read_rate(now); });
}

std::optional<SlowReader> Http2Connection::slow_reader() const {
  return is_closed_ ? std::nullopt : works_.slow_reader();
}

// Only this stream is slow: others hold nothing that anybody waits for.
void Http2Connection::cut_reader() {
  if (is_closed_) return;
  works_.for_each([](Http2Responder& work) {
    if (work.is_slow()) work.cut();
  });
}

}  // namespace encore::server
