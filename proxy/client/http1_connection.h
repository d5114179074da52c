// Http1Connection: a client's connection that speaks HTTP/1. It parses requests, answers plain hits
// on the spot, and gives everything that takes longer to an Http1Stream (one at a time, so that
// replies keep the order of requests) or, for CONNECT, to a tunnel. Confined to its worker.
//
// Replies that the client does not take at once are pending: what comes behind them waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/client_handshake.h"
#include "proxy/client/http1_stream.h"
#include "proxy/client/http1_writer.h"
#include "proxy/client/interceptor.h"
#include "proxy/client/reply_batch.h"
#include "proxy/client/tunnel_exchange.h"
#include "proxy/exchange/request_log.h"
#include "proxy/http/parser.h"
#include "proxy/intake/client_counter.h"
#include "proxy/intake/client_gate.h"
#include "proxy/net/quiet.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/view_maker.h"
#include "proxy/transfer/transfer_memory.h"

namespace encore::server {

struct Http1Pending;

// What the connections of a worker use one after the other.
struct Http1Scratch {
  Http1Scratch() { head.fields.reserve(64); }
  http::RequestHead head;
  ReplyBatch batch;
};

// What connections use of their worker. All are borrowed and outlive them.
struct ClientServices {
  net::Loop& loop;
  net::Retired& retired;
  const std::shared_ptr<const Runtime>& runtime;  // the present one
  WorkerStats& stats;
  TransferMemory& transfer_memory;
  ClientCounter& clients;     // connections of each
  ClientCounter& transfers;   // requests of each that are under way
  ClientCounter& handshakes;  // of TLS
  PasswordChecks& passwords;
  ConnectionKeeper& keeper;
  CacheLookup& cache;
  RequestLog& log;
  ViewMaker& views;
  RequestIds& ids;
  Http1Scratch& http1;
  const ExchangeServices& exchange;
  const TunnelServices& tunnel;
  const InterceptServices& intercept;
};

class Http1Connection final : public ClientConnection,
                              private net::StreamHandler,
                              private Http1Carrier,
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
  void end_if_quiet() override;
  bool revoke() override;
  bool is_revoked() const override { return revoked_; }
  using ClientConnection::cut;
  void cut(const ClientGone& why) override;
  bool may_be_given_up() const override;
  void give_up() override { close(After::kDrop); }
  void refuse_unfinished_head() override;
  void look_at_reader(MonotonicTime now) override;
  std::optional<SlowReader> slow_reader() const override;
  void cut_reader() override;

  // Http1Carrier
  bool is_draining() const override {
    return services_.keeper.is_draining() || listener_.closed || revoked_;
  }
  bool has_peer_ended() const override { return peer_ == Peer::kEnded; }
  void resume() override;
  void account(const Http1Writer& writer) override;
  bool is_over_share() const override;
  void on_stream_end(After after) override;
  void on_switched(std::shared_ptr<const RequestContext> request, Http1Writer writer,
                   Switched switched) override;

  // InterceptorOwner
  void on_unfinished(std::size_t bytes) override;
  void on_hands_shaken() override;
  void on_splice(std::shared_ptr<const RequestContext> connect) override;
  void on_inside(Inside inside) override;
  void on_intercept_end(After after) override;

 private:
  // How far requests are read.
  enum class Phase : std::uint8_t {
    kOpen,
    kLast,    // no further request is read
    kClosed,  // it ends at the end of the turn
  };
  // Whether input is being looked at.
  enum class Input : std::uint8_t { kKept, kPresented };
  enum class Peer : std::uint8_t { kSending, kEnded };

  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  bool shake_hands();
  // Reading (http1_connection.cc).
  std::size_t take_header(std::string_view input);
  bool is_closed() const { return phase_ == Phase::kClosed; }
  bool is_idle() const {
    return request_ == nullptr && tunnel_ == nullptr && pending_ == nullptr &&
           (interceptor_ == nullptr || interceptor_->is_unused());
  }
  std::size_t handle_input(std::string_view input);
  std::optional<std::size_t> parse(std::string_view input);
  bool handle_request(std::string_view head_bytes);
  void start_request(RequestView& view, std::string_view head_bytes, CacheView found);
  void end_unfinished_head();
  void next_request();
  net::Deferred& later();
  void close(After how, ClientGone why = {});

  // Plain hits, refusals and what the client does not take at once (http1_replies.cc).
  // `view` is of the request that is refused; null: there is none, and the connection ends.
  void refuse(const Refusal& refusal, const RequestView* view = nullptr);
  void reply_hit(const RequestView& view, std::string_view head_bytes, CacheView& found,
                 HitForm form);
  struct HitTail {
    HitCount count;
    std::string_view text;  // what the stored head ends with, in the batch's room
  };
  void reply_hit_recorded(const RequestView& view, std::string_view head_bytes, CacheView& found,
                          const HitTail& tail);
  bool flush_batch();
  Http1Pending& pending();
  void pump_pending();
  void end_pending(const ClientGone& how);
  void after_pending();
  Http1Writer* writer() const;

  const ClientServices& services_;
  const ListenerContext& listener_;
  net::Stream stream_;
  std::unique_ptr<ClientGate> gate_;  // null: not needed so far
  net::Address client_;               // who sends the request that is looked at
  http::ParseProgress progress_;
  std::unique_ptr<Http1Stream> request_;
  std::unique_ptr<TunnelExchange> tunnel_;
  std::unique_ptr<Interceptor> interceptor_;
  std::unique_ptr<const Inside> inside_;  // null: requests come as they are
  std::uint64_t named_by_ = 0;  // the runtime that has said of its host that it is decrypted
  std::unique_ptr<Http1Pending> pending_;  // to be sent before anything else
  std::unique_ptr<net::Deferred> later_;   // made when first needed
  TransferMemory::Holding holding_;
  ClientCounter::Seat transfer_;                // of the request under way
  std::unique_ptr<ClientHandshake> handshake_;  // null: there is none, or no more
  std::shared_ptr<const ClientTls> tls_;        // null: nothing is kept of it
  MonotonicTime head_since_{};                  // when the first byte of a head came; zero: none
  Phase phase_ = Phase::kOpen;
  Input input_ = Input::kKept;
  Peer peer_ = Peer::kSending;
  std::uint8_t refusals_in_row_ = 0;
  bool is_last_read_ = false;  // nothing was read behind the head that is looked at
  bool revoked_ = false;       // the present configuration does not allow what is under way
  net::Quiet quiet_;           // in a drain
};

}  // namespace encore::server
