// Http1Connection: a client's connection that speaks HTTP/1. It parses requests, which the intake
// decides about, and sends plain hits and refusals on the spot (Http1Replies). It gives everything
// that takes longer to an Http1Stream (one at a time, so that replies keep the order of requests)
// or, for CONNECT, to a tunnel. Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/client_handshake.h"
#include "proxy/client/http1_replies.h"
#include "proxy/client/http1_services.h"
#include "proxy/client/http1_stream.h"
#include "proxy/client/http1_writer.h"
#include "proxy/client/interceptor.h"
#include "proxy/client/tunnel_exchange.h"
#include "proxy/http/parser.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/client_identity.h"
#include "proxy/intake/intake.h"
#include "proxy/net/quiescence_detector.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"

namespace encore::server {

class Http1Connection final : public ClientConnection,
                              private net::StreamHandler,
                              private Http1Carrier,
                              private Http1Replies::Owner,
                              private InterceptorOwner {
 public:
  // `services` and `listener` are borrowed and outlive it. `tls` is null where the client begins
  // with plain bytes: of HTTP, or of a PROXY header.
  Http1Connection(const ClientServices& services, const ListenerContext& listener,
                  net::Socket socket, const net::Address& peer, net::TlsSessionPointer tls);
  ~Http1Connection() override;
  Http1Connection(const Http1Connection&) = delete;
  Http1Connection& operator=(const Http1Connection&) = delete;

  // ClientConnection
  net::Stream& stream() override { return stream_; }
  void begin() override;
  void check_timeouts(MonotonicTime now) override;
  void drain() override;
  void announce_drain() override {}
  bool is_tunnel() const override { return tunnel_ != nullptr; }
  void end_if_quiet() override;
  bool revoke() override;
  bool is_revoked() const override { return revoked_; }
  using ClientConnection::cut;
  void cut(const ClientGone& why) override;
  bool may_be_given_up() const override;
  void give_up() override { close(After::kDrop); }
  void refuse_unfinished_head() override;
  void check_read_rate(MonotonicTime now) override;
  std::optional<SlowReader> slow_reader() const override;
  void cut_reader() override;

  // Http1Carrier
  bool is_draining() const override {
    return services_.keeper.is_draining() || listener_.closed || revoked_;
  }
  bool closes_untold() const {
    return services_.keeper.closes_untold() || listener_.closed || revoked_;
  }
  bool has_peer_ended() const override { return peer_ == Peer::kEnded; }
  void resume() override;
  void account(const Http1Writer& writer) override { replies_.account(writer); }
  bool is_over_share() const override { return replies_.is_over_share(); }
  void on_stream_end(After after) override;
  void on_switched(std::shared_ptr<const RequestContext> request, Http1Writer writer,
                   SwitchedConnection switched) override;

  // Http1Replies::Owner
  void on_pumped(Http1Writer::Status status) override;

  // InterceptorOwner
  void on_unfinished(std::size_t bytes) override;
  void on_hands_shaken() override;
  void on_splice(std::shared_ptr<const RequestContext> connect,
                 std::uint64_t answer_bytes) override;
  void on_inside(InterceptedConnect inside) override;
  void on_intercept_end(After after) override;

 private:
  // How far requests are read.
  enum class Phase : std::uint8_t {
    kOpen,
    kLast,    // no further request is read
    kClosed,  // it ends at the end of the turn
  };
  // State of the input: being parsed, or not.
  enum class Input : std::uint8_t { kKept, kPresented };
  enum class Peer : std::uint8_t { kSending, kEnded };

  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  bool shake_hands();
  std::size_t take_header(std::string_view input);
  const ListenerPolicy* policy() const { return services_.runtime->policy(listener_.index); }
  bool is_closed() const { return phase_ == Phase::kClosed; }
  bool is_idle() const {
    return request_ == nullptr && tunnel_ == nullptr && !replies_.is_pending() &&
           (interceptor_ == nullptr || interceptor_->is_unused());
  }
  std::size_t handle_input(std::string_view input);
  // State of the preface of HTTP/2, with which the client may begin.
  enum class Preface : std::uint8_t { kNone, kBegun, kWhole };
  Preface look_at_preface(std::string_view input) const;
  // Hands the connection over. It ends as this one.
  void speak_http2();
  std::optional<std::size_t> parse(std::string_view input);
  bool handle_request(std::string_view head_bytes);
  void open(Intake::Tunnel& tunnel);
  // `view` is of the request that is refused; null: there is none, and the connection ends.
  void refuse(const Refusal& refusal, const RequestView* view = nullptr);
  void end_unfinished_head();
  void pump_replies();
  void start_next();
  void next_request();
  net::Deferred& later();
  Http1Writer* writer() const;
  void close(After how, ClientGone why = {});

  const ClientServices& services_;
  const ListenerContext& listener_;
  std::unique_ptr<net::Stream> own_stream_;  // null: it was handed over
  net::Stream& stream_;
  ClientIdentity identity_;
  Http1Replies replies_;  // sent before anything else
  http::ParseProgress progress_;
  std::unique_ptr<Http1Stream> request_;
  std::unique_ptr<TunnelExchange> tunnel_;
  std::unique_ptr<Interceptor> interceptor_;
  std::unique_ptr<net::Deferred> later_;        // made when first needed
  ClientCounter::Seat transfer_;                // for the request in progress
  std::unique_ptr<ClientHandshake> handshake_;  // null: there is none, or no more
  MonotonicTime head_since_{};                  // when the first byte of a head came; zero: none
  Phase phase_ = Phase::kOpen;
  Input input_ = Input::kKept;
  Peer peer_ = Peer::kSending;
  std::uint8_t refusals_in_row_ = 0;
  bool may_be_preface_ = true;     // nothing but a PROXY header has come before
  bool is_last_read_ = false;      // nothing was read behind the head that is parsed
  bool revoked_ = false;           // the present configuration does not allow what is in progress
  net::QuiescenceDetector quiet_;  // in a drain
};

}  // namespace encore::server
