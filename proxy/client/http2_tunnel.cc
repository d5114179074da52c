#include "proxy/client/http2_tunnel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

Http2Tunnel::Http2Tunnel(Http2Carrier& carrier, h2::StreamId id,
                         std::shared_ptr<const RequestContext> request, ClientCounter::Seat seat)
    : Http2Responder(carrier, id),
      services_(carrier.services().tunnel),
      request_(std::move(request)),
      seat_(std::move(seat)),
      started_(services_.loop.now()),
      connector_(services_, *request_, [this](TunnelOrigin::Connected connected) {
        if (state_ != State::kConnecting) return;
        if (!connected) return refuse(connected.error());
        visit_.connect = connector_.lasts();
        open(std::move(*connected), "HTTP/1.1 200 OK\r\n");
      }) {}

Http2Tunnel::~Http2Tunnel() = default;

Counter& Http2Tunnel::open_count() const {
  return is_switched() ? services_.stats.upgrades_open : services_.stats.tunnels_open;
}

void Http2Tunnel::start() {
  const TunnelRefusal refusal = connector_.check();
  if (refusal.status != 0) return refuse(refusal);
  connector_.connect();
}

void Http2Tunnel::start_switched(SwitchedConnection switched) {
  place_ = std::move(switched.place);
  // The fields of the 101, and its own two lines of a connection are left out.
  const std::size_t line = std::min(switched.head.find("\r\n"), switched.head.size() - 2);
  open(std::move(switched.origin), "HTTP/1.1 200 OK" + switched.head.substr(line));
}

void Http2Tunnel::open(std::unique_ptr<net::Stream> origin, std::string_view head) {
  state_ = State::kOpen;
  origin_ = std::move(origin);
  visit_.address = origin_->peer().to_string();
  origin_bytes_ = origin_->bytes_written();
  (is_switched() ? services_.stats.upgrades : services_.stats.tunnels).add();
  open_count().add();
  session().respond(id_, head, h2::ServerSession::Framing::kOpen, this);
  (void)sent_bytes();  // a stream that its client resets next is asked no more
  first_byte_ = services_.loop.now() - started_;
  origin_->set_handler(this);
  origin_->resume_reading();
  carrier_.resume_later(*this);
}

void Http2Tunnel::refuse(const TunnelRefusal& refusal) {
  refusal_detail_ = refusal.detail;
  http::SyntheticReply reply = reply_to(refusal, *request_, services_.loop.http_date());
  to_client_ = std::move(reply.body);
  body_bytes_ = to_client_.size();
  origin_side_ = Side::kEnded;
  session().respond(id_, reply.head, h2::ServerSession::Framing::kLength, this);
  leave(refusal.outcome, refusal.status, refusal_detail_);
  state_ = State::kRefused;
  carrier_.flush_later();
  if (session().status(id_) == h2::SendStatus::kDone) (void)end_if_done();
}

// --- to the client ---

std::size_t Http2Tunnel::on_data(net::Stream&, std::span<const std::byte> bytes) {
  const std::size_t used =
      std::min(bytes.size(), kBufferBytes - std::min(kBufferBytes, held_bytes()));
  to_client_.erase(0, std::exchange(to_client_sent_, 0));
  to_client_.append(reinterpret_cast<const char*>(bytes.data()), used);
  services_.stats.bytes_from_origins.add(used);
  if (used != bytes.size()) origin_->pause_reading();
  session().resume(id_);
  carrier_.flush_later();
  return used;
}

h2::ContentSource::Peeked Http2Tunnel::peek(std::span<iovec> room, std::size_t bytes_max) {
  const std::size_t bytes = std::min<std::size_t>(held_bytes(), bytes_max);
  if (bytes == 0) {
    const bool is_over = origin_side_ != Side::kOpen;
    return {.state = is_over ? ContentSource::State::kEnd : ContentSource::State::kWaiting};
  }
  room[0] = {to_client_.data() + to_client_sent_, bytes};
  return {.state = ContentSource::State::kReady, .parts = 1, .bytes = bytes};
}

void Http2Tunnel::advance(std::size_t bytes) { to_client_sent_ += bytes; }

void Http2Tunnel::on_writable(h2::StreamId) {
  (void)sent_bytes();
  if (state_ == State::kEnded || end_if_done()) return;
  account(request_->client);
  if (state_ == State::kOpen && origin_side_ == Side::kOpen && held_bytes() < kBufferBytes) {
    origin_->resume_reading();
  }
}

void Http2Tunnel::on_eof(net::Stream&) {
  // Bytes that are kept come first.
  origin_side_ = Side::kEnding;
  session().resume(id_);
  carrier_.flush_later();
}

void Http2Tunnel::on_error(net::Stream&, net::CloseReason, int) {
  fail(h2::ErrorCode::kConnectError, is_switched() ? Outcome::kUpgrade : Outcome::kTunnel);
}

// --- to the origin ---

void Http2Tunnel::on_content(h2::StreamId, std::string_view bytes) {
  if (state_ == State::kRefused) return session().consume(id_, bytes.size());
  to_origin_ += bytes;
  if (state_ == State::kOpen) pump_to_origin();
}

void Http2Tunnel::on_content_end(h2::StreamId, std::string_view) {
  client_side_ = Side::kEnding;
  if (state_ == State::kOpen) pump_to_origin();
}

void Http2Tunnel::pump_to_origin() {
  if (!to_origin_.empty()) {
    const net::WriteResult result = origin_->write(to_origin_);
    session().consume(id_, result.bytes);
    services_.stats.bytes_to_origins.add(result.bytes);
    to_origin_.erase(0, result.bytes);
    if (result.status == net::WriteStatus::kError) {
      return fail(h2::ErrorCode::kConnectError,
                  is_switched() ? Outcome::kUpgrade : Outcome::kTunnel);
    }
    carrier_.flush_later();
  }
  if (!to_origin_.empty() || client_side_ != Side::kEnding) return;
  client_side_ = Side::kEnded;
  origin_->shutdown_write();
  (void)end_if_done();
}

void Http2Tunnel::on_writable(net::Stream&) {
  if (state_ == State::kOpen) pump_to_origin();
}

void Http2Tunnel::resume() {
  if (state_ == State::kOpen) pump_to_origin();
}

// --- ends ---

bool Http2Tunnel::end_if_done() {
  if (state_ == State::kEnded) return true;
  if (session().status(id_) != h2::SendStatus::kDone) return false;
  const bool is_refused = state_ == State::kRefused;
  if (!is_refused && client_side_ != Side::kEnded) return false;
  if (is_refused) {
    state_ = State::kEnded;
  } else {
    leave(is_switched() ? Outcome::kUpgrade : Outcome::kTunnel, is_switched() ? 101 : 200);
  }
  session().release(id_);
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
  return true;
}

void Http2Tunnel::fail(h2::ErrorCode code, Outcome outcome, std::string_view detail) {
  if (state_ == State::kEnded) return;
  if (state_ != State::kRefused) leave(outcome, is_switched() ? 101 : 200, detail);
  state_ = State::kEnded;
  session().reset(id_, code);
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
}

void Http2Tunnel::on_gone(h2::StreamId, h2::ErrorCode) {
  ENCORE_CHECK(state_ != State::kEnded, "the session forgets a stream that ends");
  if (state_ != State::kRefused) {
    const bool is_open = state_ == State::kOpen;
    const ClientGone why = carrier_.gone();
    leave(why.outcome, is_open ? (is_switched() ? 101 : 200) : 0, why.detail);
  }
  state_ = State::kEnded;
  carrier_.on_responder_end(*this);
}

void Http2Tunnel::end_by(const ClientGone& why) {
  fail(h2::ErrorCode::kCancel, why.outcome, why.detail);
}

void Http2Tunnel::cut() { fail(h2::ErrorCode::kCancel, Outcome::kSlowReader); }

// The last of it: one record, and the origin's connection is let go.
void Http2Tunnel::leave(Outcome outcome, int status, std::string_view detail) {
  ENCORE_CHECK(state_ != State::kEnded, "a tunnel ends once");
  if (state_ == State::kOpen) open_count().subtract();
  state_ = State::kEnded;
  RequestRecord entry;
  entry.outcome = outcome;
  entry.started = started_;
  entry.status = status;
  // A refusal is recorded before its body is sent.
  entry.sent_bytes = sent_bytes() + framed_bytes(body_bytes_);
  entry.body_bytes = body_bytes_;
  entry.connection = ClientConnectionEnd::kKept;
  if (!visit_.address.empty()) entry.visit = &visit_;
  if (origin_ != nullptr) entry.taken_bytes = origin_->bytes_written() - origin_bytes_;
  entry.first_byte = first_byte_;
  record_request(*request_, entry);
  entry.detail = detail;
  services_.log.record(entry);
  if (origin_ != nullptr && origin_->is_open()) origin_->close();
  place_.reset();
}

void Http2Tunnel::check_timeouts(MonotonicTime now) {
  if (state_ == State::kConnecting) return connector_.check_timeouts(now);
  if (state_ != State::kOpen) return;
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  const Nanoseconds idle = is_switched() ? timeouts.upgrade_idle : timeouts.tunnel_idle;
  if (idle.count() == 0 || now - origin_->last_activity() < idle) return;
  fail(h2::ErrorCode::kCancel, is_switched() ? Outcome::kUpgrade : Outcome::kTunnel);
}

}  // namespace encore::server
