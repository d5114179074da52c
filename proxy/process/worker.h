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

#include "base/check.h"
#include "base/error.h"
#include "cache/types.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/unfinished_heads.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/request_log.h"
#include "proxy/http/message.h"
#include "proxy/net/deferred_deleter.h"
#include "proxy/net/listener.h"
#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/net/timer.h"
#include "proxy/observe/access_log.h"
#include "proxy/observe/origin_warnings.h"
#include "proxy/origin/origin_pool.h"
#include "proxy/origin/origin_queues.h"
#include "proxy/origin/services.h"
#include "proxy/process/graceful_drain.h"
#include "proxy/process/listeners.h"
#include "proxy/process/memory_reclaim.h"
#include "proxy/process/shared.h"
#include "proxy/process/worker_listeners.h"
#include "proxy/request/request_view_builder.h"
#include "proxy/settings/runtime.h"
#include "proxy/transfer/transfer_home.h"

namespace encore::server {

class Fetch;
class HealthChecks;
class PurgeExecutor;
class Revocations;
struct RequestServices;

class Worker final : private ConnectionKeeper,
                     private OriginFetcher,
                     private FetchKeeper,
                     private WorkerNow,
                     private ReclaimableMemory {
 public:
  // Errors: no loop, a resolver that cannot be set up. `shared` and `stats` are borrowed.
  static Result<std::unique_ptr<Worker>> create(Shared& shared, WorkerStats& stats,
                                                std::shared_ptr<const Runtime> runtime);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // On a thread of its own, which calls `on_end` last, when a drain is over.
  void start(net::Loop::Function on_end = [] {});
  // The same in turns, on the caller's thread, for who runs several workers there: begin(), then
  // turn() until it returns false, then finish().
  void begin();
  bool turn();
  void finish();
  // Any thread: uses another configuration from now on, and these listeners. Listeners that it has
  // and that are not among them accept the clients that wait already, and are closed; their
  // connections end when they have answered the requests in progress.
  void set_runtime(std::shared_ptr<const Runtime> runtime, std::vector<WorkerListener> seats);
  // Any thread: new connections to these listeners, those of the present configuration, get this
  // TLS from now on.
  void set_tls(std::shared_ptr<const TlsListeners> tls);
  // Any thread: accepts no more and ends when all is done or its time is over. A gentle one may be
  // followed by another that is not.
  void drain(const DrainPlan& plan);
  // Any thread, for another process: calls `taken` on the loop with all sockets that accept.
  using Duplicates = std::vector<WorkerListeners::Duplicate>;
  void duplicate_sockets(std::function<void(Duplicates)> taken);
  // Any thread: more sockets to accept from.
  void add_sockets(std::vector<Listeners::Added> sockets);
  // Any thread: calls back on the loop.
  void post(net::Loop::Function function) { loop_->post(std::move(function)); }
  void join();
  // After join(): ends what a drain that ran out of time has left, on the caller's thread. To be
  // called of all workers before the first is destroyed: their connections read each other's
  // transfers.
  void end_all();

  net::Loop& loop() { return *loop_; }
  WorkerStats& stats() { return stats_; }
  bool is_draining() const override { return draining_; }
  bool closes_untold() const override {
    return draining_ && (gentle_ == nullptr || gentle_->closes_untold());
  }
  std::uint32_t connections_allowed() const override {
    return shared_.connections_allowed(runtime_->config.limits);
  }
  // The first of its connections, and its fetches.
  ClientConnection* connections() const override { return connections_; }
  std::span<const std::unique_ptr<Fetch>> fetches() const override { return fetches_; }

  // Closes the client connections that have been idle for longest: one, or of very many a share.
  // False where none is idle.
  bool give_up_idle() override;

 private:
  Worker(Shared& shared, WorkerStats& stats, std::shared_ptr<const Runtime> runtime);

  void make_handlers();

  // ConnectionKeeper
  void retire(ClientConnection& connection) override;
  void replace(ClientConnection& connection, ClientConnection& made) override;
  void note_unfinished_head(ClientConnection& connection, std::size_t bytes) override;
  void drop_unfinished_head(ClientConnection& connection) override;

  // OriginFetcher
  void start_fetch(std::shared_ptr<Transfer> transfer,
                   std::shared_ptr<const RequestContext> request, OriginFetchOptions ask) override;

  // FetchKeeper
  void keep(std::unique_ptr<Fetch> fetch) override;
  void retire(Fetch& fetch) override;

  // WorkerNow
  const Runtime& present_runtime() const override { return *runtime_; }
  bool logs_requests() const override { return log_->is_logging(); }
  std::size_t idle_connections_max() const override { return shared_.idle_connections_max(); }
  CacheView lookup(const RequestContext& request) override;

  // Clients that come, and what gives way to them (worker_accept.cc).
  enum class Entry : std::uint8_t { kIn, kFull, kClientFull };
  struct Arrival;
  Entry enter(const net::Address& peer, const ListenerContext& context, ClientCounter::Seat& seat);
  void accept(net::Socket socket, const net::Address& peer, const ListenerContext& context);
  void admit(net::Socket socket, const net::Address& peer, const ListenerContext& context,
             ClientCounter::Seat seat);
  void ask_others(std::shared_ptr<Arrival> arrival);
  void resume_arrival(const std::shared_ptr<Arrival>& arrival, bool room);
  void trim_heads();

  void tick();
  void sweep();
  void sweep_rest();
  void end_if_drained();
  void end_quiet_connections();
  void drop_retired_fetches();

  Shared& shared_;
  WorkerStats& stats_;
  std::shared_ptr<const Runtime> runtime_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<TransferHome> home_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<net::Deferred> wake_origin_lines_;
  OriginQueues origin_lines_;
  OriginPool pool_;
  OriginWarnings origin_warnings_;
  OriginWarnings forward_warnings_{OriginWarnings::kForwardReasonsMax};
  // For a panic report: the request that was parsed last.
  ThreadActivity activity_{.step = "the worker's loop; what was parsed last was"};
  std::unique_ptr<RequestLog> log_;
  std::unique_ptr<net::DeferredDeleter> retired_;  // connections and what they carry
  std::unique_ptr<PurgeExecutor> purges_;
  std::unique_ptr<RequestServices> request_services_;
  std::unique_ptr<WorkerListeners> listeners_;
  std::unique_ptr<net::Timer> tick_timer_;
  std::unique_ptr<net::Deferred> sweep_;
  std::unique_ptr<net::Timer> drain_timer_;
  std::unique_ptr<GracefulDrain> gentle_;  // null: none, or the drain is not gentle
  std::unique_ptr<Revocations> revocations_;
  std::unique_ptr<net::Timer> quiet_timer_;  // looks in a drain
  std::unique_ptr<net::Deferred> drop_retired_fetches_;
  std::unique_ptr<WorkerMemoryReclaim> relief_;
  std::unique_ptr<HealthChecks> health_checks_;  // only the first worker's
  std::unique_ptr<OriginServices> origin_services_;
  std::unique_ptr<net::Deferred> trim_heads_;
  UnfinishedHeads unfinished_heads_;
  std::size_t arrivals_waiting_ = 0;  // for another worker's idle connection
  MonotonicTime ticked_{};            // when the sweep in progress became due
  int turns_to_sweep_ = 0;
  ClientConnection* unswept_ = nullptr;      // the next of the sweep in progress
  MonotonicTime none_idle_until_{};          // a check of all has just found none
  ClientConnection* connections_ = nullptr;  // owned, an intrusive list
  std::vector<std::unique_ptr<Fetch>> fetches_;
  std::vector<std::unique_ptr<Fetch>> retired_fetches_;
  std::vector<std::unique_ptr<Fetch>> ending_fetches_;  // while they are dropped
  bool draining_ = false;
  bool begun_ = false;
  std::thread thread_;
};

}  // namespace encore::server
