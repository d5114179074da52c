// OriginLink: gets a request its connection to an origin, and another one where an attempt has
// failed before an answer began (upstream.retries, upstream.set_aside).
//
//   kIdle -> acquire() -> kInLine (as many connections as there may be) -> kOpen (one from the
//   pool)
//                      -> kResolving -> kConnecting -> kOpen
//                      -> kResolving (the name of idle connections) -> kOpen, or as above
//
// No function but check_timeouts() calls the handler before it returns; the other callbacks come
// from the loop. A callback may release the link, and not destroy it. Confined to its worker.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "proxy/net/connector.h"
#include "proxy/net/resolver.h"
#include "proxy/net/stream.h"
#include "proxy/origin/connection_count.h"
#include "proxy/origin/origin_http2_choice.h"
#include "proxy/origin/origin_http2_stream.h"
#include "proxy/origin/origin_pool.h"
#include "proxy/origin/origin_queues.h"
#include "proxy/origin/origin_stream.h"
#include "proxy/origin/services.h"
#include "proxy/request/parent.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

class OriginLinkHandler {
 public:
  // A connection is open: its stream has no handler yet and does not read.
  virtual void on_link_open() = 0;
  // There is none to be had, nor any other way to go on.
  virtual void on_link_failed(const TransferFailure& failure) = 0;

 protected:
  ~OriginLinkHandler() = default;
};

class OriginLink final : private OriginQueues::Waiter::Owner {
 public:
  // Which connections will do.
  enum class Need : std::uint8_t {
    kAny,
    kNew,  // for what cannot be sent twice: none that is about to be closed by its origin
  };
  // How far acquiring one has come when the call returns.
  enum class Progress : std::uint8_t {
    kOpen,     // stream() is there
    kPending,  // the handler is called
    kNone,     // there is none to be had, nor will be: OriginLink::busy_failure()
  };
  // Why an attempt failed.
  enum class AttemptFailure : std::uint8_t {
    kNotConnected,    // no such name, refused, unreachable, TLS
    kConnectTimeout,  // no connection, or no address, in time
    kClosed,          // the connection ended before an answer began
    kReset,           // over HTTP/2: its server ended the stream before that
    kRefused,         // over HTTP/2: its server has not worked on the request (RFC 9113 8.7)
    kSilent,          // no answer in time
    kBusy,            // as many connections as there may be: nothing was tried
    kShare,           // the client has its share of those: likewise
  };
  // Result of the request on the open connection.
  struct Attempt {
    AttemptFailure failure = AttemptFailure::kClosed;
    std::string_view why;
    bool answered = false;    // some of an answer has come
    bool repeatable = false;  // RFC 9110 9.2.2, and all of it is still there
    // Set if more is known than `failure` says.
    std::optional<ServerFailure> kind = {};
  };

  // All is borrowed. Chooses the server whose turn it is.
  OriginLink(OriginServices& services, const RequestContext& request, OriginLinkHandler& handler);
  ~OriginLink();
  OriginLink(const OriginLink&) = delete;
  OriginLink& operator=(const OriginLink&) = delete;

  // REQUIRES: idle.
  [[nodiscard]] Progress acquire(Need need);
  bool waits_for_share() const;
  // After Progress::kNone: why. That its client has its share, which is no fault of the server's
  // and does not hold for others, or that the server has as many connections as it may.
  TransferFailure busy_failure() const;
  // Drops the connection and asks for a new one to the same server, in its place.
  // REQUIRES: open.
  [[nodiscard]] Progress reconnect();
  // Tries another server, another address or another connection, whichever there is. Nothing where
  // the request may not be sent again, or there is nowhere left to go: the connection is as it was.
  // REQUIRES: open.
  [[nodiscard]] std::optional<Progress> try_again(const Attempt& attempt);
  // Lets go of what there is, whatever the state. The pool gets the connection where it is in step.
  enum class Fate : std::uint8_t { kDrop, kKeep };
  void release(Fate fate);
  // Gives the connection away, with its place in its server's number; the link is idle then.
  // REQUIRES: open.
  SwitchedConnection hand_over();

  bool is_open() const { return std::holds_alternative<Open>(state_); }
  // REQUIRES: open.
  OriginStream stream() const;
  // Tells the present connection from others that it has had; 0: it is not open.
  std::uint64_t number() const { return is_open() ? opened_ : 0; }
  // The server that is asked; null: the one that a forward client names.
  const OriginServer* server() const { return server_; }
  // Key in the pool for connections to the present server.
  const std::string& pool_key() const {
    return server_ != nullptr ? server_->pool_key : forward_pool_key_;
  }
  // It is another proxy that is sent the request, and not through a tunnel: the target is said
  // whole.
  bool asks_proxy() const { return tls_ == nullptr && parent_of(request_) != nullptr; }
  // Through the open connection, as net::moved_bytes() counts them; 0 where there is none.
  std::uint64_t moved_bytes() const;
  // How long getting the present connection has taken; below 0: it was there already.
  Nanoseconds connect_time() const { return connect_time_; }
  // Returns the counters of the results of that server's requests; empty where there is none.
  ServerTally tally() const;
  // It answers: nothing is held against its server any more.
  void note_answer();
  // The request is done: its server works on it no more.
  void end_lease() { lease_ = {}; }
  // Ends what has taken too long. May call the handler.
  void check_timeouts(MonotonicTime now);

 private:
  struct Idle {};
  struct InLine {
    MonotonicTime since{};
  };
  // A name is asked for to connect, or to know whether idle connections are still its own.
  enum class Lookup : std::uint8_t { kToConnect, kToConfirm };
  struct Resolving {
    std::unique_ptr<net::Resolver::Query> query;
    MonotonicTime since{};
    Lookup what = Lookup::kToConnect;
  };
  struct Connecting {
    std::unique_ptr<net::Connector> connector;
    MonotonicTime since{};
  };
  struct Open {
    std::unique_ptr<net::Stream> stream;
    bool reused = false;  // it has carried another request
    // In place of a connection; its own has the count and the times.
    std::unique_ptr<OriginHttp2Stream> http2;
    ConnectionCount count;
    MonotonicTime made{};
    MonotonicTime named_until{};  // PooledConnection::named_until
  };

  // OriginQueues::Waiter::Owner
  bool on_turn() override;
  void on_ousted() override { tell(end_wait(AttemptFailure::kShare)); }

  void choose_destination();
  enum class LastResort : std::uint8_t { kYes, kNo };
  ServerLease next_server(LastResort last_resort) const;
  void choose_server(ServerLease lease);
  const std::string& host() const { return server_ != nullptr ? server_->host : forward_host_; }
  Progress acquire_here();
  bool take_connection();
  bool take_stream();
  void open_stream(OriginHttp2Connection& connection);
  bool take_idle(const std::function<bool(const PooledConnection&)>& is_named);
  bool take_confirmed(const std::expected<net::Resolved, net::ResolveFailure>& result);
  Progress end_wait(AttemptFailure why);
  void resolve(Lookup what = Lookup::kToConnect);
  void on_resolved(std::expected<net::Resolved, net::ResolveFailure> result);
  void connect(std::vector<net::Address> addresses);
  void on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result);
  void go_on_after(const Attempt& attempt, const TransferFailure& otherwise);
  void tell(Progress progress);
  bool move_on(const Attempt& attempt);
  void note_failure(const Attempt& attempt);
  void count_busy(AttemptFailure why);
  bool choose_other_server(AttemptFailure failure, bool was_kept);
  void prefer_untried(std::vector<net::Address>& addresses);
  void warn(const std::string& why);

  OriginServices& services_;
  const RequestContext& request_;
  OriginLinkHandler& handler_;

  const OriginServer* server_ = nullptr;  // belongs to the request's runtime
  ServerLease lease_;                     // held as long as the request may be with that server
  std::uint64_t place_ = 0;               // ServerGroup::Choice::hash
  bool is_hot_ = false;                   // ServerGroup::Choice::is_hot
  std::string forward_host_;              // set if there is no server
  std::string forward_pool_key_;
  std::uint16_t port_ = 0;
  const net::TlsContext* tls_ = nullptr;

  Need need_ = Need::kAny;
  AttemptFailure busy_ = AttemptFailure::kBusy;  // why there was no connection: this, or kShare
  const OriginQueues::Party party_;
  OriginQueues::Share share_;  // the client's, from before it has a connection
  OriginQueues::Slot slot_;    // the connection's, from before it is made
  OriginHttp2Choice http2_;
  std::variant<Idle, InLine, Resolving, Connecting, Open> state_;
  OriginQueues::Waiter waiter_;

  MonotonicTime looked_up_{};    // the name, at the last attempt
  MonotonicTime named_until_{};  // the addresses that were found then
  Nanoseconds connect_time_{-1};
  std::uint32_t retries_ = 0;
  std::uint64_t opened_ = 0;                   // connections that it has had
  std::vector<const OriginServer*> tried_;     // those that failed
  std::vector<net::Address> tried_addresses_;  // addresses of the present server
  bool other_address_ = false;                 // it has one that was not tried
};

}  // namespace encore::server
