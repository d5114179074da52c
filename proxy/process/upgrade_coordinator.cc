#include "proxy/process/upgrade_coordinator.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "config/network.h"
#include "proxy/observe/log.h"
#include "proxy/process/proxy.h"
#include "proxy/process/purge.h"
#include "proxy/settings/names.h"

namespace encore::server {

using upgrade::Field;
using upgrade::Message;
using upgrade::MessageType;

// --- taking over -----------------------------------------------------------------------------

UpgradeCoordinator::UpgradeCoordinator(Parts parts, SuccessionOrders orders)
    : parts_(std::move(parts)),
      channel_(std::move(orders.channel)),
      program_(std::move(orders.program)),
      manager_(std::move(orders.manager)) {}

Result<void> UpgradeCoordinator::receive(const config::Config& config) {
  if (!channel_) return {};
  auto received = InheritedState::receive(std::move(*channel_), config);
  channel_.reset();
  if (!received) return std::unexpected(received.error());
  inheritance_.emplace(std::move(*received));
  return {};
}

std::string UpgradeCoordinator::choose_instance(std::string fresh) {
  instance_ = std::move(fresh);
  if (inheritance_ && !inheritance_->instance.empty()) instance_ = inheritance_->instance;
  return instance_;
}

net::Socket UpgradeCoordinator::take_state_lock(const std::string& directory) {
  if (!inheritance_ || inheritance_->state_directory != directory) return {};
  return std::move(inheritance_->state_lock);
}

std::vector<Listeners::Inherited> UpgradeCoordinator::take_listeners(const config::Config& config) {
  return inheritance_ ? std::move(inheritance_->listeners) : listeners_of_manager(config);
}

// The old process reports it to the operator.
void UpgradeCoordinator::refuse(const Error& why) {
  if (!inheritance_) return;
  Message failed{.type = MessageType::kFailed};
  (void)inheritance_->replaced.front().channel.send(failed.add(Field::kText, why.message));
}

void UpgradeCoordinator::begin() {
  predecessors_ = std::make_unique<Predecessors>(
      *parts_.loop,
      Predecessors::Handlers{
          .on_purge =
              [this](const PurgeOrder& order, const ProcessLink::PurgeDone& done) {
                auto result = std::make_shared<PurgeResult>();
                auto left = std::make_shared<int>(2);
                const auto one_done = [left, result, done] {
                  if (--*left == 0) done(*result);
                };
                predecessors_->purge(order, one_done);
                purge_here(order, [result, one_done](const PurgeResult& purged) {
                  *result = purged;
                  one_done();
                });
              },
          .on_counts =
              [this](const CountTable& counts) { parts_.proxy->shared().carried.add(counts); },
          .on_buried = [this](const std::vector<filter::Hash128>& keys,
                              bool has_purge) { add_tombstone(keys, has_purge); },
          .on_end =
              [this] {
                if (parts_.jobs != nullptr) parts_.on_predecessor_end();
              }});
}

// Nothing is served yet, so this may wait.
Result<void> UpgradeCoordinator::await_commit() {
  disk::Disks* const disks = parts_.proxy->shared().disks.get();
  constexpr std::chrono::milliseconds kLook(5);
  // The old process bounds the time, and ends this one.
  while (disks != nullptr && disks->is_held() && !disks->is_loaded()) {
    std::this_thread::sleep_for(kLook);
  }
  const auto state = inheritance_->await_commit();
  if (!state) return std::unexpected(state.error());
  if (disks != nullptr && disks->is_held()) disks->take_over();
  restore(*state);
  return {};
}

void UpgradeCoordinator::restore(const InheritedState::State& state) {
  // An old process that has died has left its saved state.
  if (!state.admission && !state.changed) parts_.load_state();
  Shared& shared = parts_.proxy->shared();
  if (state.admission && cache::has_filter(parts_.proxy->config().admission.policy)) {
    const auto restored = shared.kernel->restore_admission(*state.admission, monotonic_now());
    if (!restored) log::warn("{}; starting with an empty filter", restored.error().message);
  }
  if (state.changed && shared.changed != nullptr) {
    const auto restored = parts_.proxy->restore_changed(*state.changed);
    if (!restored) log::warn("{}; no hourly filter was restored", restored.error().message);
  }
  if (!state.counts) return;
  if (const auto counts = parse_counts(*state.counts)) {
    shared.carried.add(*counts);
  } else {
    log::warn("{}; counters start at 0", counts.error().message);
  }
}

void UpgradeCoordinator::start() {
  upgrade_ = std::make_unique<Upgrade>(static_cast<Upgrade::Host&>(*this), program_);
}

// The workers run. From here on the old process closes its sockets.
void UpgradeCoordinator::take_over() {
  if (inheritance_) {
    const bool is_orphan = inheritance_->is_orphan;
    auto& replaced = inheritance_->replaced;
    if (!is_orphan) (void)replaced.front().channel.send(Message{.type = MessageType::kCommitted});
    if (is_orphan) replaced.erase(replaced.begin());
    predecessors_->add(std::move(replaced));
    inheritance_.reset();
  }
  parts_.admin.take_over();
  parts_.proxy->complete_listeners();
}

void UpgradeCoordinator::add_tombstone(const std::vector<filter::Hash128>& keys, bool has_purge) {
  Shared& shared = parts_.proxy->shared();
  if (has_purge && shared.disks != nullptr) shared.disks->note_purge();
  for (const filter::Hash128& key : keys) {
    cache::DiskTombstone tombstone;
    (void)shared.kernel->invalidate({key, {}}, monotonic_now(), &tombstone);
    if (shared.disks != nullptr) shared.disks->add_tombstone(key, tombstone);
  }
}

// --- the service manager -----------------------------------------------------------------------

// Sockets that it has opened, by the addresses that they have.
std::vector<Listeners::Inherited> UpgradeCoordinator::listeners_of_manager(
    const config::Config& config) {
  std::vector<Listeners::Inherited> listeners;
  for (net::Socket& socket : manager_.take_sockets()) {
    const net::Address bound = net::listening_address(socket);
    const auto has_address = [&](const config::Listen& listen) {
      return listen.address->socket.empty() ? to_address(*listen.address) == bound
                                            : net::unix_path_of(socket) == listen.address->socket;
    };
    const auto found = std::ranges::find_if(config.listen, has_address);
    if (found == config.listen.end()) {
      log::warn("socket {} of the service manager belongs to no listener", bound.to_string());
      continue;
    }
    const std::string where = found->address.text();
    const auto same = std::ranges::find(listeners, where, &Listeners::Inherited::where);
    if (same == listeners.end()) {
      listeners.push_back({.where = where, .bound = bound, .sockets = {}});
      listeners.back().sockets.push_back(std::move(socket));
    } else {
      same->sockets.push_back(std::move(socket));
    }
  }
  return listeners;
}

// The sockets go to its store, so that a process that is started after a crash has them, and the
// clients that wait there.
void UpgradeCoordinator::tell_manager_ready() {
  if (!manager_.is_there()) return;
  manager_.tell("READY=1\nSTATUS=Serving\nMAINPID=" + std::to_string(::getpid()));
  if (const auto interval = manager_.watchdog()) {
    watchdog_ = std::make_unique<net::Timer>(*parts_.loop, [this] { manager_.tell("WATCHDOG=1"); });
    watchdog_->start_periodic(*interval);
  }
  // Those of a listener that has gone do not stay there.
  manager_.tell("FDSTOREREMOVE=1\nFDNAME=listen");
  parts_.proxy->duplicate_sockets(*parts_.loop,
                                  [this](const std::vector<Listeners::Inherited>& listeners) {
                                    for (const Listeners::Inherited& listener : listeners) {
                                      for (const net::Socket& socket : listener.sockets) {
                                        manager_.tell("FDSTORE=1\nFDNAME=listen", {socket.get()});
                                      }
                                    }
                                  });
}

// --- being replaced --------------------------------------------------------------------------

void UpgradeCoordinator::end() {
  upgrade_->cancel("this process is exiting");
  if (!upgrade_->has_handed_over()) manager_.tell("STOPPING=1");
  predecessors_->end_all();
}

void UpgradeCoordinator::on_handed_over(pid_t successor) {
  watchdog_.reset();
  predecessors_->leave();
  manager_.tell("MAINPID=" + std::to_string(successor));
  parts_.admin.hand_over();
  parts_.on_handed_over();
  parts_.proxy->hand_over();
}

// Purges run one after the other on the jobs' thread.
void UpgradeCoordinator::purge_here(PurgeOrder order, ProcessLink::PurgeDone done) {
  auto purged = std::make_shared<PurgeResult>();
  auto work = [this, purged, order = std::move(order), runtime = parts_.proxy->present_runtime()] {
    *purged = server::purge(parts_.proxy->shared(), *runtime, order);
  };
  parts_.jobs->submit(std::move(work), [purged, done = std::move(done)] { done(*purged); });
}

// Other processes of this proxy serve from their memory, too: the purge is done when all have done
// it. If another process has the disks its result counts.
bool UpgradeCoordinator::purge(PurgeOrder order,
                               std::move_only_function<void(const PurgeResult&)> done) {
  auto shared_done =
      std::make_shared<std::move_only_function<void(const PurgeResult&)>>(std::move(done));
  ProcessLink::PurgeDone tell = [shared_done](const PurgeResult& purged) {
    (*shared_done)(purged);
  };
  if (upgrade_->delay_purge(order, tell)) return true;
  const bool is_elsewhere = upgrade_->has_handed_over() && !order.dry_run;
  const bool has_others = predecessors_->count() != 0 && !order.dry_run;
  auto left = std::make_shared<std::size_t>(1U + (is_elsewhere ? 1U : 0U) + (has_others ? 1U : 0U));
  auto result = std::make_shared<PurgeResult>();
  const auto one_done = [left, result, tell] {
    if (--*left == 0) tell(*result);
  };
  const auto take = [result, one_done](const PurgeResult& purged) {
    *result = purged;
    one_done();
  };
  if (is_elsewhere) upgrade_->purge_there(order, take);
  if (has_others) predecessors_->purge(order, one_done);
  purge_here(std::move(order),
             is_elsewhere ? ProcessLink::PurgeDone([one_done](const PurgeResult&) { one_done(); })
                          : ProcessLink::PurgeDone(take));
  return true;
}

}  // namespace encore::server
