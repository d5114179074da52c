// Interceptor: a CONNECT whose host may be decrypted ([intercept]), from its answer to the first
// byte that comes inside. First come the 200 and what the client says first, then either TLS with a
// certificate of ours, or a tunnel as it would be without us. It is the stream's handler meanwhile,
// and has read nothing of what goes on unread. Confined to its connection's worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "proxy/client/http1_stream.h"
#include "proxy/client/http1_writer.h"
#include "proxy/exchange/request_log.h"
#include "proxy/intake/client_counter.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/loop.h"
#include "proxy/net/stream.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_context.h"
#include "proxy/settings/interception.h"

namespace encore::server {

// The connection, as its interceptor sees it. It sets itself as the stream's handler again, and
// destroys the interceptor at the end of the turn.
class InterceptorOwner {
 public:
  // It is in the midst of its handshake: so much of what it has said waits for the rest.
  virtual void on_unfinished(std::size_t bytes) = 0;
  // Its handshake has ended, and it may ask for something. The connection may be closed by that.
  virtual void on_hands_shaken() = 0;
  // The client has its 200, of so many bytes: what it sends is for the origin, and none of it was
  // used.
  virtual void on_splice(std::shared_ptr<const RequestContext> connect,
                         std::uint64_t answer_bytes) = 0;
  // The client speaks TLS with us; its first bytes are kept by the stream.
  virtual void on_inside(InterceptedConnect inside) = 0;
  virtual void on_intercept_end(Http1Carrier::After after) = 0;

 protected:
  ~InterceptorOwner() = default;
};

// Services of their worker that interceptors use. All are borrowed and outlive them.
struct InterceptServices {
  net::Loop& loop;
  WorkerStats& stats;
  RequestLog& log;
  ClientCounter& handshakes;  // in progress, by client
};

class Interceptor final : public net::DeferredDeletable, private net::StreamHandler {
 public:
  // `connect` may be decrypted. `owner` and `stream` are borrowed and outlive it.
  Interceptor(const InterceptServices& services, InterceptorOwner& owner, net::Stream& stream,
              std::shared_ptr<const RequestContext> connect, InterceptHttp2 http2);
  ~Interceptor() override;
  Interceptor(const Interceptor&) = delete;
  Interceptor& operator=(const Interceptor&) = delete;

  // Answers the CONNECT.
  void start();
  void check_timeouts(MonotonicTime now);
  // The client's connection ends.
  void on_gone(const ClientGone& why) { record(why.outcome, why.detail); }
  // The client speaks TLS with us, and has asked for nothing so far.
  const RequestContext& connect() const { return *connect_; }
  bool is_unused() const { return step_ == Step::kUnused; }

 private:
  enum class Step : std::uint8_t {
    kAnswering,
    kListening,  // for what the client says first
    kShaking,    // hands, as a TLS server
    kUnused,
    kOver,
  };
  // net::StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  void on_ready(net::Stream& stream) override;

  void go(Step step);
  void pump_answer();
  void look_at_hello(std::string_view input);
  // Counts a handshake of the client, inside of CONNECTs or not. False: the client has too many,
  // and this one has ended.
  bool enter_handshakes();
  void leave_handshakes();
  void splice();
  void end(Outcome outcome, Http1Carrier::After after);
  // The meaning of the connection's end for our certificate.
  enum class Left : std::uint8_t { kOtherwise, kRejecting, kPerhapsRejecting };
  bool refuses_behind(const net::Stream& stream) const;
  Left left_at_once() const;
  Left left_handshake(const net::Stream& stream, net::CloseReason reason) const;
  Left beside_use(std::optional<MonotonicTime> used) const;
  void note(Left left);
  void record(Outcome outcome, std::string_view detail = {});
  const Interception& interception() const { return *connect_->runtime->interception; }

  const InterceptServices& services_;
  InterceptorOwner& owner_;
  net::Stream& stream_;
  const std::shared_ptr<const RequestContext> connect_;
  const std::string host_;  // lower case
  const InterceptHttp2 http2_;
  const MonotonicTime started_;
  const bool was_in_use_;  // the client had such a connection that it asked on, when this began
  MonotonicTime since_;    // begin of the present step
  std::uint64_t bytes_before_ = 0;  // bytes of the answer, written to the client
  Http1Writer answer_;
  ClientCounter::Seat seat_;  // while it is one of the client's handshakes
  Step step_ = Step::kAnswering;
  enum class Hello : std::uint8_t { kNone, kBegun } hello_ = Hello::kNone;
  enum class Handshake : std::uint8_t { kNone, kUnderWay } handshake_ = Handshake::kNone;
  enum class Record : std::uint8_t { kDue, kMade } record_ = Record::kDue;
};

}  // namespace encore::server
