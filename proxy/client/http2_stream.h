// Http2Stream: one request on an HTTP/2 connection and its response, for the exchange that answers
// it. Content of the request that the exchange does not take is kept, and the client's window stays
// shut for it. Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/recycled.h"
#include "base/time.h"
#include "proxy/client/http2_responder.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange.h"
#include "proxy/h2/content_source.h"
#include "proxy/intake/client_counter.h"

namespace encore::server {

class Http2Stream final : public Http2Responder,
                          public ClientStream,
                          private h2::ContentSource,
                          public Recycled<Http2Stream> {
 public:
  // `carrier` is borrowed and outlives it. `seat`: of the request among its client's.
  Http2Stream(Http2Carrier& carrier, h2::StreamId id, std::shared_ptr<const RequestContext> request,
              CacheView found, ClientCounter::Seat seat);

  void start() { exchange_.start(); }

  // Bytes that have come for the protocol that it has gone over to.
  struct Early {
    std::string content;
    bool has_ended = false;
  };
  Early take_early() { return {std::move(kept_), request_content_ != Content::kComing}; }
  std::shared_ptr<const RequestContext> share_request() const { return request_; }
  ClientCounter::Seat take_seat() { return std::move(seat_); }

  // Http2Responder
  void resume() override;
  void check_timeouts(MonotonicTime now) override;
  const RequestContext* request() const override { return request_.get(); }
  bool is_origin_active() const override { return exchange_.is_origin_active(); }
  std::uint64_t held_bytes() const override {
    return content_ == nullptr ? 0 : content_->held_bytes();
  }
  void cut() override;
  void end_by(const ClientGone& why) override;

  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override;
  void on_content_end(h2::StreamId stream, std::string_view trailers) override;
  void on_writable(h2::StreamId stream) override;
  void on_gone(h2::StreamId stream, h2::ErrorCode code) override;

  // ClientStream
  void send_interim(std::string_view head) override;
  void begin(Response response, BodyReader& content) override;
  Status pump() override;
  void end(End how) override;
  void switch_protocol(SwitchedConnection switched) override;
  void want_content() override;
  std::uint64_t sent_bytes() const override { return Http2Responder::sent_bytes(); }
  std::uint64_t unsent_bytes() const override { return Http2Responder::unsent_bytes(); }
  std::uint64_t taken_bytes() const override { return Http2Responder::taken_bytes(); }
  bool has_taken_all() const override;
  Nanoseconds round_trip() const override { return carrier_.connection_stream().round_trip(); }
  bool is_kept() const override { return true; }
  bool is_over_share() const override { return Http2Responder::is_over_share(); }

 private:
  // The way to the client.
  enum class State : std::uint8_t { kOpen, kBegun, kEnded };
  // The request's content.
  enum class Content : std::uint8_t { kComing, kEnded, kTold };

  // h2::ContentSource
  h2::ContentSource::Peeked peek(std::span<iovec> room, std::size_t bytes_max) override;
  void advance(std::size_t bytes) override { content_->advance(bytes); }
  const net::Address& client() const override { return request_->client; }
  // Gives it to the exchange as far as that takes it. Returns how much that is.
  std::size_t give(std::string_view bytes);
  // Bytes that come are for another protocol, once that is spoken.
  bool awaits_protocol() const { return request_->asks_upgrade() && state_ == State::kOpen; }
  void tell_end();
  // True if the response's content has more, or an end.
  bool has_more();

  const std::shared_ptr<const RequestContext> request_;
  ClientCounter::Seat seat_;
  BodyReader* content_ = nullptr;  // the response's; null: none yet
  std::string kept_;               // the request's content
  std::string trailers_;           // the request's
  State state_ = State::kOpen;
  Content request_content_ = Content::kComing;
  Exchange exchange_;
};

}  // namespace encore::server
