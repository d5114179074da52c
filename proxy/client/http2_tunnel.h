// Http2Tunnel: a tunnel in a stream of HTTP/2 (RFC 9113 8.5): a CONNECT from the check of its
// destination to its end, or a request that has gone over to another protocol (RFC 8441). Each side
// waits for the other by windows and by reading no more. Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/client/http2_responder.h"
#include "proxy/client/tunnel_origin.h"
#include "proxy/h2/content_source.h"
#include "proxy/intake/client_counter.h"
#include "proxy/net/stream.h"
#include "proxy/transfer/switched_connection.h"

namespace encore::server {

class Http2Tunnel final : public Http2Responder,
                          private h2::ContentSource,
                          private net::StreamHandler {
 public:
  // `carrier` is borrowed and outlives it.
  Http2Tunnel(Http2Carrier& carrier, h2::StreamId id, std::shared_ptr<const RequestContext> request,
              ClientCounter::Seat seat);
  ~Http2Tunnel() override;

  // One of these, once.
  void start();
  void start_switched(SwitchedConnection switched);

  // Http2Responder
  void resume() override;
  void check_timeouts(MonotonicTime now) override;
  const RequestContext* request() const override { return request_.get(); }
  const net::Address* origin_address() const override {
    return origin_ == nullptr ? nullptr : &origin_->peer();
  }
  std::uint64_t held_bytes() const override { return to_client_.size() - to_client_sent_; }
  void cut() override;
  void end_by(const ClientGone& why) override;

  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override;
  void on_content_end(h2::StreamId stream, std::string_view trailers) override;
  void on_writable(h2::StreamId stream) override;
  void on_gone(h2::StreamId stream, h2::ErrorCode code) override;

 private:
  enum class State : std::uint8_t {
    kConnecting,
    kOpen,
    kRefused,  // the answer is on its way
    kEnded,
  };
  // One direction.
  enum class Side : std::uint8_t { kOpen, kEnding, kEnded };
  static constexpr std::size_t kBufferBytes = std::size_t{64} * 1024;

  // h2::ContentSource
  h2::ContentSource::Peeked peek(std::span<iovec> room, std::size_t bytes_max) override;
  void advance(std::size_t bytes) override;
  // net::StreamHandler, of the origin
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;

  const net::Address& client() const override { return request_->client; }
  bool is_switched() const { return place_ != nullptr; }
  Counter& open_count() const;
  void open(std::unique_ptr<net::Stream> origin, std::string_view head);
  void refuse(const TunnelRefusal& refusal);
  // Writes what the client has sent.
  void pump_to_origin();
  bool end_if_done();
  // The stream ends with a reset.
  void fail(h2::ErrorCode code, Outcome outcome, std::string_view detail = {});
  void leave(Outcome outcome, int status, std::string_view detail = {});

  const TunnelServices& services_;
  const std::shared_ptr<const RequestContext> request_;
  ClientCounter::Seat seat_;
  const MonotonicTime started_;
  TunnelOrigin connector_;
  std::shared_ptr<void> place_;          // held by one that has gone over; null: CONNECT
  std::unique_ptr<net::Stream> origin_;  // null: there is none yet
  std::string to_origin_;                // not yet written
  std::string to_client_;
  std::size_t to_client_sent_ = 0;
  std::string refusal_detail_;
  std::uint64_t body_bytes_ = 0;
  std::uint64_t origin_bytes_ = 0;  // that were written to the origin before the client's
  OriginVisit visit_;
  Nanoseconds first_byte_{-1};
  State state_ = State::kConnecting;
  Side client_side_ = Side::kOpen;
  Side origin_side_ = Side::kOpen;
};

}  // namespace encore::server
