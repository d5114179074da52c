#include "proxy/process/worker.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "proxy/client/client_connection.h"
#include "proxy/net/linger.h"
#include "proxy/net/quiescence_detector.h"
#include "proxy/observe/log.h"
#include "proxy/origin/fetch.h"
#include "proxy/origin/parts.h"
#include "proxy/process/health_checks.h"
#include "proxy/process/purge_executor.h"
#include "proxy/process/request_services.h"
#include "proxy/process/revocations.h"
#include "proxy/process/worker_listeners.h"
#include "proxy/settings/names.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Turns behind a tick's own until its sweep. A turn runs its timers behind what it found ready, but
// in front of what that has deferred; and of many ready sockets it receives a part, twice as many
// with each turn.
constexpr int kTurnsToSweep = 2;

// Connections that a turn sweeps: what their requests have is in no cache of the processor, and of
// a client that does not read the kernel is asked, half a microsecond each.
constexpr std::size_t kSweptPerTurn = 256;

constexpr std::size_t kAllPercent = 100;

// So that what is quiet through the first half of a drain ends there
// (net::QuiescenceDetector::kLooks).
constexpr int kLooksInDrain = 2 * net::QuiescenceDetector::kLooks;

// One worker's part of what holds for all of them.
OriginQueues::Limits origin_limits(const config::Upstream& upstream, const Shared& shared) {
  const std::size_t workers = std::max<std::size_t>(shared.stats.size(), 1);
  const auto share = [&](std::size_t all) { return (all + workers - 1) / workers; };
  const std::size_t connections =
      upstream.connections_per_server == 0 ? SIZE_MAX : share(upstream.connections_per_server);
  const config::ClientShare& of_client = *upstream.connections_per_client;
  std::size_t per_client = SIZE_MAX;
  if (of_client.connections != 0) per_client = share(of_client.connections);
  // At least one, or nobody would ever have any.
  if (of_client.percent < kAllPercent && connections != SIZE_MAX) {
    per_client = std::max<std::size_t>(connections * of_client.percent / kAllPercent, 1);
  }
  return {.connections = connections,
          .per_client = per_client,
          .waiting = share(upstream.waiting_per_server)};
}

RequestWatchers watchers_of(Shared& shared) {
  return {.recent = &shared.recent,
          .shadows = &shared.shadows,
          .errors = &shared.errors,
          .tap = &shared.tap};
}

}  // namespace

Worker::Worker(Shared& shared, WorkerStats& stats, std::shared_ptr<const Runtime> runtime)
    : shared_(shared),
      stats_(stats),
      runtime_(std::move(runtime)),
      origin_lines_([this] { wake_origin_lines_->schedule(); }) {
  origin_lines_.use(origin_limits(runtime_->config.upstream, shared_));
}

Result<std::unique_ptr<Worker>> Worker::create(Shared& shared, WorkerStats& stats,
                                               std::shared_ptr<const Runtime> runtime) {
  std::unique_ptr<Worker> worker(new Worker(shared, stats, std::move(runtime)));
  auto loop = net::Loop::create();
  if (!loop) return std::unexpected(loop.error());
  worker->loop_ = std::move(*loop);
  worker->home_ = std::make_unique<TransferHome>(*worker->loop_);
  auto resolver =
      net::Resolver::create(*worker->loop_, resolver_options(worker->runtime_->config.upstream),
                            [&stats](net::ResolveEvent event) { count(event, stats); });
  if (!resolver) return std::unexpected(resolver.error());
  worker->resolver_ = std::move(*resolver);
  Worker* raw = worker.get();
  worker->log_ = std::make_unique<RequestLog>(*worker->loop_, stats, shared.access_log.get(),
                                              worker->runtime_, watchers_of(shared));
  worker->make_handlers();
  worker->purges_ = std::make_unique<PurgeExecutor>(shared, *worker->loop_);
  worker->request_services_ = std::make_unique<RequestServices>(
      RequestServicesParts{.loop = *worker->loop_,
                           .retired = *worker->retired_,
                           .resolver = *worker->resolver_,
                           .runtime = worker->runtime_,
                           .kernel = shared.kernel,
                           .latest_moment = shared.latest_moment,
                           .identity_seed = shared.identity_seed,
                           .inflight = shared.inflight,
                           .transfer_memory = shared.transfer_memory,
                           .coding_memory = shared.coding_memory,
                           .clients = shared.clients,
                           .transfers = shared.transfers,
                           .handshakes = shared.handshakes,
                           .passwords = shared.passwords,
                           .home = *worker->home_,
                           .stats = stats,
                           .log = *worker->log_,
                           .origins = *raw,
                           .keeper = *raw,
                           .activity = worker->activity_,
                           .forward_warnings = worker->forward_warnings_,
                           .published = shared.published.get(),
                           .store = shared.store,
                           .disks = shared.disks,
                           .resident = shared.resident.get(),
                           .purger = worker->purges_.get()});
  worker->relief_ = std::make_unique<WorkerMemoryReclaim>(
      WorkerMemoryReclaim::Parts{.loop = *worker->loop_,
                                 .kernel = *shared.kernel,
                                 .slow_readers = shared.slow_readers,
                                 .stats = stats,
                                 .worker = *worker});
  worker->origin_services_ =
      std::make_unique<OriginServices>(OriginServices{.loop = *worker->loop_,
                                                      .resolver = *worker->resolver_,
                                                      .pool = worker->pool_,
                                                      .lines = worker->origin_lines_,
                                                      .warnings = worker->origin_warnings_,
                                                      .forward_warnings = worker->forward_warnings_,
                                                      .store = *shared.store,
                                                      .kernel = *shared.kernel,
                                                      .inflight = shared.inflight,
                                                      .latest_moment = shared.latest_moment,
                                                      .old_servers = shared.old_servers,
                                                      .stats = stats,
                                                      .identity_seed = shared.identity_seed,
                                                      .keeper = *worker,
                                                      .relief = *worker->relief_,
                                                      .worker = *worker,
                                                      .changed = shared.changed.get(),
                                                      .resident = shared.resident.get(),
                                                      .disks = shared.disks.get()});
  return worker;
}

// Makes the handlers that the loop calls.
void Worker::make_handlers() {
  retired_ = std::make_unique<net::DeferredDeleter>(*loop_, [this] {
    if (draining_) end_if_drained();
  });
  tick_timer_ = std::make_unique<net::Timer>(*loop_, [this] { tick(); });
  sweep_ = std::make_unique<net::Deferred>(*loop_, [this] { sweep(); });
  wake_origin_lines_ = std::make_unique<net::Deferred>(*loop_, [this] { origin_lines_.wake(); });
  trim_heads_ = std::make_unique<net::Deferred>(*loop_, [this] { trim_heads(); });
  revocations_ = std::make_unique<Revocations>(*loop_, [this] { return connections_; });
  drop_retired_fetches_ =
      std::make_unique<net::Deferred>(*loop_, [this] { drop_retired_fetches(); });
  listeners_ = std::make_unique<WorkerListeners>(
      *loop_,
      [this](net::Socket socket, const net::Address& peer, const ListenerContext& context) {
        accept(std::move(socket), peer, context);
      },
      [this](int os_error) {
        stats_.connections_refused.add();
        if (os_error != EMFILE && os_error != ENFILE) return;
        // Idle connections give way to clients: to origins first, then those of others.
        pool_.close_all();
        (void)give_up_idle();
      });
}

Worker::~Worker() { end_all(); }

void Worker::end_all() {
  join();
  const TransferHome::Turn turn(*home_);
  while (connections_ != nullptr) connections_->cut();
  retired_->drop();
  while (!fetches_.empty()) fetches_.back()->abandon();
  drop_retired_fetches();
  pool_.close_all();
}

void Worker::start(net::Loop::Function on_end) {
  begin();
  thread_ = std::thread([this, on_end = std::move(on_end)]() mutable {
    const TransferHome::Turn turn(*home_);
    const PanicNote note(activity_);
    loop_->run();
    finish();
    on_end();
  });
}

void Worker::begin() {
  begun_ = true;
  tick_timer_->start_periodic(runtime_->sweep_interval);
  // One for all of them.
  if (shared_.workers.empty() || shared_.workers.front() != this) return;
  health_checks_ = std::make_unique<HealthChecks>(*loop_, *resolver_, stats_);
  health_checks_->use(runtime_);
}

bool Worker::turn() {
  const TransferHome::Turn turn(*home_);
  return loop_->turn();
}

void Worker::finish() { (void)log_->hand_over(); }

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::retire(ClientConnection& connection) {
  ENCORE_CHECK(connection.previous != nullptr ? connection.previous->next == &connection
                                              : connections_ == &connection,
               "a connection is retired once, by its worker");
  if (unswept_ == &connection) unswept_ = connection.next;
  if (connection.previous != nullptr) {
    connection.previous->next = connection.next;
  } else {
    connections_ = connection.next;
  }
  if (connection.next != nullptr) connection.next->previous = connection.previous;
  connection.previous = connection.next = nullptr;
  connection.seat.leave();
  connection.listed.leave();
  stats_.connections_open.subtract();
  const auto counted = shared_.connections.fetch_sub(1, std::memory_order_relaxed);
  ENCORE_CHECK(counted != 0, "an open connection is counted");
  retired_->add(std::unique_ptr<ClientConnection>(&connection));
}

void Worker::keep(std::unique_ptr<Fetch> fetch) {
  stats_.transfers_open.add();
  fetch->position = fetches_.size();
  fetches_.push_back(std::move(fetch));
}

void Worker::retire(Fetch& fetch) {
  const std::size_t position = fetch.position;
  ENCORE_CHECK(position < fetches_.size() && fetches_[position].get() == &fetch,
               "a fetch is retired once, by its worker");
  retired_fetches_.push_back(std::move(fetches_[position]));
  if (position + 1 != fetches_.size()) {
    fetches_[position] = std::move(fetches_.back());
    fetches_[position]->position = position;
  }
  fetches_.pop_back();
  stats_.transfers_open.subtract();
  drop_retired_fetches_->schedule();
}

CacheView Worker::lookup(const RequestContext& request) {
  return request_services_->cache.lookup(request);
}

void Worker::start_fetch(std::shared_ptr<Transfer> transfer,
                         std::shared_ptr<const RequestContext> request, OriginFetchOptions ask) {
  FetchPlan plan;
  plan.whole = ask.what == OriginRequestForm::kWhole;
  plan.in_table = ask.table == OriginFetchOptions::Table::kIn;
  plan.background = ask.whom == OriginFetchOptions::For::kNobody;
  plan.has_upload = ask.content == OriginFetchOptions::Content::kComes;
  plan.stored = std::move(ask.validates.object);
  plan.stored_fresh_until = ask.validates.fresh_until;
  if (ask.part && may_complete(*ask.part, request->runtime->config.cache.range_fetch_max_bytes)) {
    plan.completes = std::move(ask.part);
  }
  Fetch::start(*origin_services_, std::move(transfer), std::move(request), std::move(plan));
}

void Worker::drop_retired_fetches() {
  while (!retired_fetches_.empty()) {
    ending_fetches_.swap(retired_fetches_);
    ending_fetches_.clear();
  }
  if (draining_) end_if_drained();
}

// A client that is silent for too long is so as of the tick, but judged when all has been seen that
// had come by then. A turn that comes late finds the time over and the input that came in it
// together.
void Worker::tick() {
  if (sweep_->is_scheduled()) return;
  ticked_ = loop_->now();
  turns_to_sweep_ = kTurnsToSweep;
  sweep_->schedule();
}

// The connections of the moment at which it begins, some in each turn.
void Worker::sweep() {
  if (turns_to_sweep_ != 0) {
    if (--turns_to_sweep_ == 0) unswept_ = connections_;
    return sweep_->schedule();
  }
  for (std::size_t left = kSweptPerTurn; unswept_ != nullptr; --left) {
    if (left == 0) return sweep_->schedule();
    ClientConnection& connection = *unswept_;
    unswept_ = connection.next;  // the check may retire this one
    connection.check_timeouts(ticked_);
  }
  sweep_rest();
}

void Worker::sweep_rest() {
  const MonotonicTime now = ticked_;
  for (std::size_t i = fetches_.size(); i-- > 0;) {
    if (i < fetches_.size()) fetches_[i]->check_timeouts(now);
  }
  relief_->look(now);
  const Nanoseconds pool_idle = runtime_->config.timeouts.pool_idle;
  if (pool_idle.count() != 0) pool_.close_idle_since(now - pool_idle);
  const Nanoseconds pool_age = runtime_->config.timeouts.pool_age;
  if (pool_age.count() != 0) pool_.close_made_before(now - pool_age);
  pool_.close_beyond(shared_.idle_connections_max());
  pool_.check_timeouts(now);
  stats_.log_dropped.add(log_->hand_over());
  if (arrivals_waiting_ == 0) listeners_->forget_unused(connections_);
}

void Worker::set_tls(std::shared_ptr<const TlsListeners> tls) {
  if (!begun_) return listeners_->set_tls(*tls);
  loop_->post([this, tls = std::move(tls)] { listeners_->set_tls(*tls); });
}

void Worker::set_runtime(std::shared_ptr<const Runtime> runtime,
                         std::vector<WorkerListener> seats) {
  if (!begun_) {
    runtime_ = std::move(runtime);
    loop_->set_handshakes_per_turn(runtime_->config.limits.tls_handshakes_per_turn);
    log_->follow_shadows();
    origin_lines_.use(origin_limits(runtime_->config.upstream, shared_));
    listeners_->set(std::move(seats));
    return;
  }
  loop_->post([this, next = std::move(runtime), seats = std::move(seats)]() mutable {
    runtime_ = std::move(next);
    loop_->set_handshakes_per_turn(runtime_->config.limits.tls_handshakes_per_turn);
    log_->follow_shadows();
    tick_timer_->start_periodic(runtime_->sweep_interval);
    // They were made, and their origins verified, under the settings of before.
    pool_.close_all();
    origin_lines_.use(origin_limits(runtime_->config.upstream, shared_));
    if (health_checks_ != nullptr) health_checks_->use(runtime_);
    if (const auto set = resolver_->set_options(resolver_options(runtime_->config.upstream));
        !set) {
      log::error("name servers unchanged: {}", set.error().message);
    }
    if (draining_) return;
    listeners_->set(std::move(seats));
    for (ClientConnection* connection = connections_; connection != nullptr;) {
      ClientConnection* following = connection->next;
      // Requests that have been sent already are read, and refused as too late.
      const bool closed = connection->let_in_by != nullptr && connection->let_in_by->closed;
      if (closed && !connection->stream().has_unread()) connection->drain();
      connection = following;
    }
    revocations_->look(runtime_->config.timeouts.drain);
  });
}

void Worker::drain(const DrainPlan& plan) {
  loop_->post([this, plan] {
    if (draining_ && gentle_ == nullptr) return;
    if (!draining_) {
      draining_ = true;
      if (plan.gentle) {
        listeners_->stop_behind_waiting();
      } else {
        listeners_->stop();
      }
      health_checks_.reset();
      pool_.close_all();
      net::Lingering::of(*loop_).set_on_sent([this] { end_if_drained(); });
    }
    if (plan.gentle) {
      const auto cut_fetches = [this] {
        while (!fetches_.empty()) fetches_.back()->abandon();
      };
      gentle_ = std::make_unique<GracefulDrain>(
          GracefulDrain::Parts{.loop = *loop_,
                               .connections = [this] { return connections_; },
                               .cut_fetches = cut_fetches,
                               .end = [this] { loop_->stop(); }},
          plan);
      gentle_->begin();
      return end_if_drained();
    }
    gentle_.reset();
    for (ClientConnection* connection = connections_; connection != nullptr;) {
      ClientConnection* following = connection->next;
      connection->drain();
      connection = following;
    }
    drain_timer_ = std::make_unique<net::Timer>(*loop_, [this] { loop_->stop(); });
    quiet_timer_ = std::make_unique<net::Timer>(*loop_, [this] { end_quiet_connections(); });
    if (plan.limit.count() != 0) {
      drain_timer_->start(plan.limit);
      quiet_timer_->start_periodic(plan.limit / kLooksInDrain);
    }
    end_quiet_connections();
    end_if_drained();
  });
}

void Worker::duplicate_sockets(std::function<void(Duplicates)> taken) {
  loop_->post([this, taken = std::move(taken)] { taken(listeners_->duplicates()); });
}

void Worker::add_sockets(std::vector<Listeners::Added> sockets) {
  loop_->post([this, sockets = std::move(sockets)]() mutable {
    if (draining_) return;
    for (Listeners::Added& each : sockets) listeners_->add(each.id, std::move(each.socket));
  });
}

// Fetches first: connections that wait for one ask whether it is quiet, and with their clients
// those that nobody else wants end.
void Worker::end_quiet_connections() {
  for (std::size_t i = fetches_.size(); i-- > 0;) {
    if (i < fetches_.size()) fetches_[i]->end_if_quiet();
  }
  for (ClientConnection* connection = connections_; connection != nullptr;) {
    ClientConnection* following = connection->next;
    connection->end_if_quiet();
    connection = following;
  }
}

void Worker::end_if_drained() {
  // Connections and fetches that ended in this turn end their accounts when they are destroyed.
  if (connections_ != nullptr || !fetches_.empty() || !retired_->is_empty()) return;
  // A connection of HTTP/2 may be idle only since this turn: it is ended as all others were.
  pool_.close_all();
  // The end of an answer may be encrypted and not sent yet, though its connection has gone.
  if (!net::Lingering::of(*loop_).has_unsent()) loop_->stop();
}

}  // namespace encore::server
