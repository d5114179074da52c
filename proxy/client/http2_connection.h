// Http2Connection: a client's connection that speaks HTTP/2. The session reads and writes its
// frames; each request becomes text, goes through the parser and the intake, and is answered by a
// work of its own: a reply, an exchange, or a wait. One that began as HTTP/1 hands it over
// (Http1Connection, docs/decisions/0475). Confined to its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/http1_services.h"
#include "proxy/client/http2_pending_stream.h"
#include "proxy/client/http2_responder.h"
#include "proxy/client/http2_responders.h"
#include "proxy/h2/server_session.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/client_identity.h"
#include "proxy/intake/intake.h"
#include "proxy/net/quiescence_detector.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"

namespace encore::server {

// The first bytes of a client that knows that HTTP/2 is spoken (RFC 9113 3.4).
inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class Http2Connection final : public ClientConnection,
                              private net::StreamHandler,
                              private h2::ServerHandler,
                              private Http2Carrier {
 public:
  // `services` and `listener` are borrowed and outlive it. The first bytes that come are the
  // preface.
  Http2Connection(const ClientServices& services, const ListenerContext& listener,
                  std::unique_ptr<net::Stream> stream, ClientIdentity&& identity);
  ~Http2Connection() override;
  Http2Connection(const Http2Connection&) = delete;
  Http2Connection& operator=(const Http2Connection&) = delete;

  // ClientConnection
  net::Stream& stream() override { return *stream_; }
  void begin() override;
  void check_timeouts(MonotonicTime now) override;
  void drain() override;
  void end_if_quiet() override;
  bool revoke() override;
  bool is_revoked() const override;
  void cut_revoked(const ClientGone& why) override;
  using ClientConnection::cut;
  void cut(const ClientGone& why) override { close(How::kGracefully, why); }
  bool may_be_given_up() const override;
  void give_up() override { close(How::kAtOnce); }
  void refuse_unfinished_head() override { close(How::kAtOnce); }
  void check_read_rate(MonotonicTime now) override;
  std::optional<SlowReader> slow_reader() const override;
  void cut_reader() override;

 private:
  enum class How : std::uint8_t { kGracefully, kAtOnce, kByReset };

  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;

  // h2::ServerHandler
  h2::StreamHandler* on_request(h2::StreamId stream, const h2::Request& request) override;
  h2::StreamHandler* on_connect(h2::StreamId stream, const h2::Connect& connect) override;
  void on_connection_end(const h2::ConnectionEnd& end) override;

  // Http2Carrier
  const Parts& parts() const override { return parts_; }
  bool is_blocked() const override { return is_blocked_; }
  void flush_later() override { later_.schedule(); }
  void resume_later(Http2Responder& work) override;
  ClientGone gone() const override;
  void on_responder_end(Http2Responder& work) override;
  void on_switched(Http2Stream& work, SwitchedConnection switched) override;
  void on_login(Http2PendingStream& work) override;
  void await_delivery() override { awaits_delivery_ = true; }

  bool is_draining() const {
    return services_.keeper.is_draining() || listener_.closed || is_revoked_;
  }
  // The verdict on a request: null: it is answered, or must wait (`waits`).
  struct Decided {
    Http2Responder* work = nullptr;
    bool waits = false;
  };
  Decided decide(h2::StreamId stream, std::string& text);
  Http2Responder* refuse(h2::StreamId stream, const Refusal& refusal, const RequestView* view);
  Http2PendingStream& wait(h2::StreamId stream, std::string& text);
  // A work of this stream may be followed by another.
  Http2Responder* put_in_front(h2::StreamId stream, std::string& text);
  void on_later();
  // Writes what there is, as far as the socket and the turn allow; closes what is finished.
  void flush();
  bool is_idle() const { return works_.empty() && session_.stream_count() == 0; }
  void close(How how, ClientGone why = {});

  const ClientServices& services_;
  const ListenerContext& listener_;
  std::unique_ptr<net::Stream> stream_;
  ClientIdentity identity_;
  h2::ServerSession session_;
  const Parts parts_;
  Http2Responders works_;
  std::vector<h2::StreamId> resumed_;  // that want to go on in this turn
  net::Deferred later_;
  ClientGone gone_{.detail = "reset"};  // for streams that the session ends
  MonotonicTime idle_since_;            // with no stream
  MonotonicTime drain_since_{};         // zero: it does not drain
  MonotonicTime stall_since_{};         // begin of the present stall of the socket
  std::uint64_t taken_ = 0;             // bytes of the connection at the last check
  std::size_t told_streams_ = 0;        // open ones, as in the gauge of the worker
  bool is_closed_ = false;
  bool is_blocked_ = false;
  bool is_revoked_ = false;  // its client; streams may be by themselves
  bool has_peer_ended_ = false;
  bool awaits_delivery_ = false;   // something has been written that has not left
  net::QuiescenceDetector quiet_;  // in a drain
};

}  // namespace encore::server
