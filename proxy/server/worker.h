// Worker: one thread with its event loop, listeners, connections, origin pool and timers. Workers
// share only what is in Shared. Confined to its thread but for the functions that say otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cache/types.h"
#include "proxy/http/message.h"
#include "proxy/net/listener.h"
#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/net/timer.h"
#include "proxy/server/access_log.h"
#include "proxy/server/origin_line.h"
#include "proxy/server/origin_pool.h"
#include "proxy/server/origin_warnings.h"
#include "proxy/server/reply_batch.h"
#include "proxy/server/request_view.h"
#include "proxy/server/runtime.h"
#include "proxy/server/shared.h"
#include "proxy/server/unfinished_heads.h"
#include "proxy/server/variant_hints.h"

namespace encore::server {

class ClientConnection;
class Exchange;
class Fetch;
struct RequestContext;
class Relief;

// What a connection knows of the listener that accepted it.
struct ListenerContext {
  config::Mode mode = config::Mode::kForward;
};

// What a request came to, for counters and log.
struct RequestRecord {
  Outcome outcome = Outcome::kInternal;
  MonotonicTime started{};
  int status = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::string_view origin;
  std::string_view content_type;
};

class Worker {
 public:
  // Errors: no loop, a resolver that cannot be set up. `shared` and `stats` are borrowed.
  static Result<std::unique_ptr<Worker>> create(Shared& shared, WorkerStats& stats,
                                                std::shared_ptr<const Runtime> runtime);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The worker whose thread this is; null on others.
  static Worker* current();

  // Before start(). Answers the bound address.
  Result<net::Address> listen(const net::Address& address, config::Mode mode);
  // `on_end` is the last that its thread calls, when a drain is over.
  void start(net::Loop::Function on_end = [] {});
  // Any thread: uses another configuration from now on.
  void set_runtime(std::shared_ptr<const Runtime> runtime);
  // Any thread: accepts no more, closes what is idle, ends when all is done or `limit` has passed.
  void drain(Nanoseconds limit);
  // Any thread: calls back on the loop.
  void post(net::Loop::Function function) { loop_->post(std::move(function)); }
  void join();
  // After join(): ends what a drain that ran out of time has left, on the caller's thread. To be
  // called of all workers before the first is destroyed: their connections read each other's
  // transfers.
  void end_all();

  net::Loop& loop() { return *loop_; }
  const Runtime& runtime() const { return *runtime_; }
  const std::shared_ptr<const Runtime>& runtime_pointer() const { return runtime_; }
  Shared& shared() { return shared_; }
  WorkerStats& stats() { return stats_; }
  OriginPool& pool() { return pool_; }
  OriginLines& origin_lines() { return origin_lines_; }
  // What a worker may have of upstream.connections_per_server and waiting_per_server.
  OriginLines::Limits origin_limits() const;
  OriginWarnings& origin_warnings() { return origin_warnings_; }
  net::Resolver& resolver() { return *resolver_; }
  // To be called before what others have stored or shared is looked at: by this turn's clock, none
  // of it has happened later.
  void catch_up() { loop_->catch_up(shared_.latest_moment.get()); }
  ReplyBatch& batch() { return batch_; }
  http::RequestHead& request_head() { return request_head_; }
  http::ResponseHead& response_head() { return response_head_; }
  Relief& relief() { return *relief_; }
  // The first of its connections, and its fetches, for looks at all of them.
  ClientConnection* connections() const { return connections_; }
  std::span<const std::unique_ptr<Fetch>> fetches() const { return fetches_; }
  bool logs_requests() const { return access_log_.enabled(); }
  bool is_draining() const { return draining_; }

  // Resolves target, route and key of a parsed request. The key lies in the worker's key buffer
  // until the next call. 0, or the status to refuse with (and why, in the view's outcome).
  struct ViewFault {
    int status = 0;
    Outcome outcome = Outcome::kBadRequest;
    std::string_view detail;
  };
  ViewFault make_view(const http::RequestHead& head, const ListenerContext& listener,
                      const net::Address& client, RequestView& view);
  // Asks the kernel for the variant that answers the request of a client. What is stored from where
  // the client may not go is not there for it.
  CacheView lookup(std::string_view key, const filter::Hash128& hash, const http::Fields& fields,
                   const http::VaryOptions& vary, const net::Address& client);
  CacheView lookup(const RequestContext& request);

  // Counts and logs a request that has ended. `head` may be null where none could be parsed.
  void record(const RequestRecord& record, const http::RequestHead* head,
              const net::Address& client);

  // Closes the client connections that have been idle for longest: one, or of very many a share.
  // False where none is idle.
  bool give_up_idle();
  // A connection keeps so many bytes of a head that has not ended; whichever came first where there
  // are too many of them is refused at the end of the turn.
  void note_unfinished_head(ClientConnection& connection, std::size_t bytes);
  void drop_unfinished_head(ClientConnection& connection);

  // Ownership of what lives by itself. Retired things end at the end of the turn.
  void add_fetch(std::unique_ptr<Fetch> fetch);
  void retire_fetch(Fetch& fetch);
  void retire_exchange(std::unique_ptr<Exchange> exchange);
  void retire_connection(ClientConnection& connection);

 private:
  Worker(Shared& shared, WorkerStats& stats, std::shared_ptr<const Runtime> runtime);
  void run(net::Loop::Function on_end);

  // Clients that come, and what gives way to them (worker_accept.cc).
  enum class Entry : std::uint8_t { kIn, kCountedIn, kFull, kClientFull };
  struct Arrival;
  Entry enter(const net::Address& peer);
  void accept(net::Socket socket, const net::Address& peer, const ListenerContext& context);
  void admit(net::Socket socket, const net::Address& peer, const ListenerContext& context,
             Entry entry);
  void ask_others(std::shared_ptr<Arrival> arrival);
  void resume_arrival(const std::shared_ptr<Arrival>& arrival, bool room);
  bool are_heads_over() const;
  void trim_heads();

  void tick();
  void begin_drain(Nanoseconds limit);
  void end_if_drained();
  void drop_retired();

  Shared& shared_;
  WorkerStats& stats_;
  std::shared_ptr<const Runtime> runtime_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<net::Deferred> wake_origin_lines_;
  OriginLines origin_lines_;
  OriginPool pool_;
  OriginWarnings origin_warnings_;
  LogBuffer access_log_;
  ReplyBatch batch_;
  VariantHints variant_hints_;
  http::RequestHead request_head_;
  http::ResponseHead response_head_;
  std::vector<char> key_buffer_;
  std::vector<std::unique_ptr<ListenerContext>> contexts_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::unique_ptr<net::Timer> tick_timer_;
  std::unique_ptr<net::Timer> drain_timer_;
  std::unique_ptr<net::Deferred> drop_retired_;
  std::unique_ptr<Relief> relief_;
  std::unique_ptr<net::Deferred> trim_heads_;
  UnfinishedHeads unfinished_heads_;
  std::size_t arrivals_waiting_ = 0;         // for another worker's idle connection
  MonotonicTime none_idle_until_{};          // a look at all has just found none
  ClientConnection* connections_ = nullptr;  // owned, an intrusive list
  std::vector<ClientConnection*> retired_connections_;
  std::vector<std::unique_ptr<Fetch>> fetches_;
  std::vector<std::unique_ptr<Fetch>> retired_fetches_;
  std::vector<std::unique_ptr<Exchange>> retired_exchanges_;
  bool draining_ = false;
  std::thread thread_;
};

}  // namespace encore::server
