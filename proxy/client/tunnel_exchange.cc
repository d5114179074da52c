#include "proxy/client/tunnel_exchange.h"

#include <algorithm>

#include "proxy/client/http1_text.h"
#include "proxy/net/quiescence_detector.h"

namespace encore::server {

using After = Http1Carrier::After;

TunnelExchange::TunnelExchange(const TunnelServices& services, Http1Carrier& carrier,
                               std::shared_ptr<const RequestContext> request)
    : services_(services),
      carrier_(carrier),
      request_(std::move(request)),
      started_(services.loop.now()) {}

TunnelExchange::~TunnelExchange() {
  if (record_ == Record::kDue) record(Outcome::kClientAborted, 0, 0);
  if (tunnel_ != nullptr) open_count().subtract();
}

Counter& TunnelExchange::open_count() {
  return is_switched() ? services_.stats.upgrades_open : services_.stats.tunnels_open;
}

void TunnelExchange::start() {
  // Bytes that the client sends before it was answered wait in the kernel.
  carrier_.stream().pause_reading();
  replies_bytes_ = carrier_.stream().bytes_written();
  connector_ = make_connector();
  const TunnelRefusal refusal = connector_->check();
  if (refusal.status != 0) return refuse(refusal);
  connector_->connect();
}

std::unique_ptr<TunnelOrigin> TunnelExchange::make_connector() {
  return std::make_unique<TunnelOrigin>(
      services_, *request_,
      [this](TunnelOrigin::Connected connected) { on_connected(std::move(connected)); });
}

void TunnelExchange::start_answered(std::uint64_t answer_bytes) {
  answer_ = Answer::kGiven;
  carrier_.stream().pause_reading();
  replies_bytes_ = carrier_.stream().bytes_written() - answer_bytes;
  connector_ = make_connector();
  connector_->connect();
}

void TunnelExchange::start_switched(Http1Writer writer, SwitchedConnection switched) {
  // Bytes that the client has sent behind its request are for the origin, once it has its 101.
  carrier_.stream().pause_reading();
  replies_bytes_ = carrier_.stream().bytes_written() - writer.sent_bytes();
  place_ = std::move(switched.place);
  origin_ = std::move(switched.origin);
  visit_.address = origin_->peer().to_string();
  head_ = std::move(writer);
  head_.add_text(std::move(switched.head));
  pump_head();
}

void TunnelExchange::on_connected(TunnelOrigin::Connected connected) {
  const auto connector = std::move(connector_);
  if (!connected) return refuse(connected.error());
  origin_ = std::move(*connected);
  visit_.address = origin_->peer().to_string();
  visit_.connect = connector->lasts();
  if (answer_ == Answer::kDue) head_.add_text("HTTP/1.1 200 Connection established\r\n\r\n");
  pump_head();
}

// The rest of the answer, which the client does not take yet, comes later.
void TunnelExchange::pump_head() {
  switch (head_.pump(carrier_.stream())) {
    case Http1Writer::Status::kDone:
      first_byte_ = services_.loop.now() - started_;
      if (origin_ != nullptr) {
        open();
      } else {
        carrier_.on_stream_end(After::kClose);
      }
      return;
    case Http1Writer::Status::kDead:
      record(Outcome::kClientAborted, 0, sent_bytes(), "reset");
      carrier_.on_stream_end(After::kAbort);
      return;
    case Http1Writer::Status::kBlocked:
    case Http1Writer::Status::kWaiting:
    case Http1Writer::Status::kMore:
    case Http1Writer::Status::kBroken:
      return;
  }
}

void TunnelExchange::on_writable() {
  if (head_.is_blocked()) pump_head();
}

void TunnelExchange::open() {
  (is_switched() ? services_.stats.upgrades : services_.stats.tunnels).add();
  open_count().add();
  origin_bytes_ = origin_->bytes_written();
  client_bytes_ = carrier_.stream().bytes_written();
  tunnel_ = std::make_unique<net::Tunnel>(
      carrier_.stream(), *origin_, [this](net::TunnelOutcome outcome) { on_ended(outcome); });
}

std::uint64_t TunnelExchange::sent_bytes() const {
  return replies_bytes_ ? carrier_.stream().bytes_written() - *replies_bytes_ : 0;
}

void TunnelExchange::on_ended(net::TunnelOutcome outcome) {
  if (is_switched()) {
    record(Outcome::kUpgrade, 101, sent_bytes());
  } else {
    record(Outcome::kTunnel, 200, sent_bytes());
  }
  if (outcome == net::TunnelOutcome::kFirstFailed) origin_->abort();
  carrier_.on_stream_end(outcome == net::TunnelOutcome::kSecondFailed ? after_cut()
                                                                      : After::kClose);
}

// A reset shows the client that something is missing, and takes with it what is still on its way:
// not replies that it asked for in front of its tunnel (RFC 9112 9.6).
After TunnelExchange::after_cut() const {
  if (!replies_bytes_) return After::kClose;
  const net::Stream& stream = carrier_.stream();
  return stream.bytes_written() < *replies_bytes_ + stream.bytes_in_kernel() ? After::kClose
                                                                             : After::kAbort;
}

void TunnelExchange::on_gone(const ClientGone& why) {
  const int answered = is_switched() ? 101 : 200;
  const bool is_answered = tunnel_ != nullptr || answer_ == Answer::kGiven;
  record(why.outcome, is_answered ? answered : 0, sent_bytes(), why.detail);
  connector_.reset();
  if (origin_ != nullptr && origin_->is_open()) origin_->close();
}

void TunnelExchange::refuse(const TunnelRefusal& refusal) {
  if (answer_ == Answer::kGiven) {
    // The client knows that it is connected: it can only learn that this is over.
    record(refusal.outcome, 200, sent_bytes());
    carrier_.on_stream_end(After::kAbort);
    return;
  }
  http::SyntheticReply reply = reply_to(refusal, *request_, services_.loop.http_date());
  reply.head += connection_field(http::Version::kHttp11, false);
  reply.head += kHeadEnd;
  reply.head += reply.body;
  refusal_bytes_ = reply.body.size();
  record(refusal.outcome, refusal.status, reply.head.size(), refusal.detail);
  head_.add_text(std::move(reply.head));
  pump_head();
}

void TunnelExchange::record(Outcome outcome, int status, std::uint64_t bytes,
                            std::string_view detail) {
  if (record_ == Record::kMade) return;
  record_ = Record::kMade;
  RequestRecord entry;
  entry.outcome = outcome;
  entry.started = started_;
  entry.status = status;
  entry.sent_bytes = bytes;
  entry.body_bytes = refusal_bytes_;
  if (!visit_.address.empty()) entry.visit = &visit_;
  if (origin_ != nullptr) entry.taken_bytes = origin_->bytes_written() - origin_bytes_;
  entry.first_byte = first_byte_;
  record_request(*request_, entry);
  entry.detail = detail;
  services_.log.record(entry);
  if (tunnel_ != nullptr) count_passed();
}

// The record counts the bytes to the client.
void TunnelExchange::count_passed() {
  const std::uint64_t to_origin = origin_->bytes_written() - origin_bytes_;
  services_.stats.bytes_from_clients.add(to_origin);
  services_.stats.bytes_to_origins.add(to_origin);
  services_.stats.bytes_from_origins.add(carrier_.stream().bytes_written() - client_bytes_);
  if (request_->counts != nullptr) request_->counts->received_bytes.add(to_origin);
}

std::uint64_t TunnelExchange::moved_bytes() const {
  return origin_ == nullptr ? 0 : net::moved_bytes(*origin_);
}

void TunnelExchange::check_timeouts(MonotonicTime now) {
  const config::Timeouts& timeouts = request_->runtime->config.timeouts;
  if (tunnel_ == nullptr) {
    if (timeouts.client_write.count() != 0 &&
        head_.stalled_for(now, carrier_.stream()) >= timeouts.client_write) {
      carrier_.on_stream_end(After::kAbort);
      return;
    }
    if (connector_ != nullptr) connector_->check_timeouts(now);
    return;
  }
  const MonotonicTime active =
      std::max(carrier_.stream().last_activity(), origin_->last_activity());
  const Nanoseconds idle = is_switched() ? timeouts.upgrade_idle : timeouts.tunnel_idle;
  if (idle.count() != 0 && now - active >= idle) {
    on_ended(net::TunnelOutcome::kClosed);
  }
}

}  // namespace encore::server
