// Http1Stream: one request on an HTTP/1 connection and its response, for the exchange that answers
// it: the chunked coding of both, Connection, and whether another request may follow. The
// connection has one of them at a time. Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/recycled.h"
#include "base/time.h"
#include "proxy/client/http1_request_body.h"
#include "proxy/client/http1_writer.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange.h"
#include "proxy/net/deferred_deleter.h"

namespace encore::server {

// The connection, as its streams see it.
class Http1Carrier {
 public:
  // Decision about the connection. kDrop closes immediately, if nothing is in progress: its
  // descriptor is needed.
  enum class After : std::uint8_t { kNext, kClose, kAbort, kDrop };

  virtual net::Stream& stream() = 0;
  // True if the process wants to end.
  virtual bool is_draining() const = 0;
  // The client will send no more; what it has sent may still be kept.
  virtual bool has_peer_ended() const = 0;
  // Kept request bytes shall be looked at again, from the loop.
  virtual void resume() = 0;
  // Counts what the client makes the writer hold.
  virtual void account(const Http1Writer& writer) = 0;
  virtual bool is_over_share() const = 0;
  // The request has its response, or never will. The stream is destroyed at the end of the turn.
  virtual void on_stream_end(After after) = 0;
  // The same, where the connection goes over to another protocol. `writer` may still have something
  // to send before.
  virtual void on_switched(std::shared_ptr<const RequestContext> request, Http1Writer writer,
                           SwitchedConnection switched) = 0;

 protected:
  ~Http1Carrier() = default;
};

// Returns the fate of unsent bytes if a connection ends this way.
constexpr ClientGone::Unsent unsent_after(Http1Carrier::After how) {
  return how == Http1Carrier::After::kClose ? ClientGone::Unsent::kSent : ClientGone::Unsent::kLost;
}

class Http1Stream final : public ClientStream,
                          public net::DeferredDeletable,
                          public Recycled<Http1Stream> {
 public:
  using After = Http1Carrier::After;

  // `carrier` and `services` are borrowed and outlive it.
  Http1Stream(Http1Carrier& carrier, const ExchangeServices& services,
              std::shared_ptr<const RequestContext> request, CacheView found);
  ~Http1Stream() override = default;

  // --- from the connection; none of it after on_stream_end() ---
  void start() { exchange_.start(); }
  // Bytes behind the head. Returns how many were used; the rest comes again after resume().
  std::size_t on_data(std::string_view bytes);
  void on_writable() { exchange_.on_writable(); }
  // The client has ended its side of the connection, and all that it sent was looked at: ends the
  // connection where the request cannot become whole any more.
  void on_peer_end();
  // The connection ends. Nothing of the carrier is called from here on.
  void on_gone(const ClientGone& why);
  // The client takes its response too slowly: it ends here.
  void cut() { exchange_.cut(); }
  void check_timeouts(MonotonicTime now);
  bool is_origin_active() const { return exchange_.is_origin_active(); }
  // How to end the connection before the response has ended.
  After after_cut() const;

  Http1Writer& writer() { return writer_; }
  const RequestContext& request() const { return *request_; }

  // ClientStream
  void send_interim(std::string_view head) override;
  void begin(Response response, BodyReader& content) override;
  Status pump() override;
  void end(End how) override;
  void switch_protocol(SwitchedConnection switched) override;
  void want_content() override;
  std::uint64_t sent_bytes() const override { return writer_.sent_bytes(); }
  std::uint64_t unsent_bytes() const override;
  std::uint64_t taken_bytes() const override;
  bool has_taken_all() const override;
  Nanoseconds round_trip() const override;
  bool is_kept() const override { return keeps_alive_; }
  bool is_over_share() const override { return carrier_.is_over_share(); }

 private:
  // State of the path to the client.
  enum class State : std::uint8_t { kOpen, kBegun, kEnded };
  // How the client sees where the response ends.
  enum class Shown : std::uint8_t { kByItself, kByConnection };

  bool may_go_on() const;
  bool is_request_taken() const;
  bool has_client_gone();

  Http1Carrier& carrier_;
  const std::shared_ptr<const RequestContext> request_;
  Http1RequestBody body_;
  Http1Writer writer_;
  State state_ = State::kOpen;
  Shown shown_ = Shown::kByItself;
  bool keeps_alive_;      // as far as it depends on the request and what was said
  bool knocked_ = false;  // the response's first bytes went ahead of it
  Exchange exchange_;
};

}  // namespace encore::server
