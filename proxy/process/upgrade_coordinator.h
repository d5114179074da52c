// UpgradeCoordinator: the server's part in upgrades. A new process takes over from the old one at
// its start, and is replaced by another at its end; meanwhile they know of each other. It also
// speaks to the service manager, which is to know who serves. Confined to the main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"
#include "proxy/process/admin_listeners.h"
#include "proxy/process/inherited_state.h"
#include "proxy/process/jobs.h"
#include "proxy/process/predecessors.h"
#include "proxy/process/state.h"
#include "proxy/process/upgrade.h"
#include "proxy/upgrade/channel.h"
#include "proxy/upgrade/notify.h"
#include "proxy/upgrade/program.h"

namespace encore::server {

struct SuccessionOrders {
  std::optional<upgrade::Channel> channel = {};  // to the process that this one replaces
  upgrade::Program program = {};
  upgrade::ServiceManager manager = upgrade::ServiceManager("");
};

class UpgradeCoordinator final : private Upgrade::Host {
 public:
  // The server's, which are made later than this. Borrowed.
  struct Parts {
    const std::unique_ptr<net::Loop>& loop;
    const std::unique_ptr<Jobs>& jobs;
    const std::unique_ptr<Proxy>& proxy;
    AdminListeners& admin;
    const std::optional<StateDirectory>& state;
    std::function<void()> load_state;      // from its directory
    std::function<void()> on_handed_over;  // another process serves; it drains
    std::function<void()> on_end_wanted;   // it is to end as by SIGTERM
    std::function<void()> on_predecessor_end;
  };
  UpgradeCoordinator(Parts parts, SuccessionOrders orders);

  // --- the start, in this order ---

  // Receives what the old process gives. Errors: it goes on, and why.
  Result<void> receive(const config::Config& config);
  bool has_inheritance() const { return inheritance_.has_value(); }
  // Each of these may be asked once. Nothing, or `fresh`, where nothing was inherited.
  std::optional<filter::Seed> seed() const {
    return inheritance_ ? inheritance_->seed : std::nullopt;
  }
  std::string choose_instance(std::string fresh);
  net::Socket take_state_lock(const std::string& directory);
  std::optional<std::map<std::string, int>> take_disks() {
    return inheritance_ ? inheritance_->take_disks() : std::nullopt;
  }
  AdminListeners::Inherited take_admin_sockets() {
    return inheritance_ ? std::move(inheritance_->admin) : AdminListeners::Inherited();
  }
  std::vector<Listeners::Inherited> take_listeners(const config::Config& config);
  std::shared_ptr<net::TlsTickets> take_tickets() {
    return inheritance_ ? std::move(inheritance_->tickets) : nullptr;
  }
  // The start has failed: the old process learns why.
  void refuse(const Error& why);
  // Everything is made. REQUIRES: there is a loop.
  void begin();
  // Waits for the order to serve, and takes the saved state over. REQUIRES: has_inheritance().
  Result<void> await_commit();
  // Upgrades may begin, then: the workers run.
  void start();
  void take_over();
  void tell_manager_ready();

  // --- afterwards ---

  void upgrade(Upgrade::Done done) { upgrade_->start(std::move(done)); }
  bool is_under_way() const { return upgrade_->is_under_way(); }
  bool has_handed_over() const { return upgrade_ != nullptr && upgrade_->has_handed_over(); }
  std::uint64_t failures() const { return upgrade_ == nullptr ? 0 : upgrade_->failures(); }
  std::size_t predecessors_count() const { return predecessors_->count(); }
  std::vector<PredecessorReport> reports() const { return predecessors_->reports(); }
  // Purges here and in the other processes; calls `done` when all have. False: refused.
  bool purge(PurgeOrder order, std::move_only_function<void(const PurgeResult&)> done);
  // This process drains as by SIGTERM.
  void end();
  // Before the loop goes.
  void stop() {
    upgrade_.reset();
    predecessors_.reset();
    watchdog_.reset();
  }
  // The last words, when nothing is served any more.
  void finish() { upgrade_->finish(); }

 private:
  net::Loop& loop() override { return *parts_.loop; }
  Jobs& jobs() override { return *parts_.jobs; }
  Proxy& proxy() override { return *parts_.proxy; }
  AdminListeners& admin() override { return parts_.admin; }
  const StateDirectory* state() override { return parts_.state ? &*parts_.state : nullptr; }
  Predecessors& predecessors() override { return *predecessors_; }
  const std::string& instance() const override { return instance_; }
  void purge_here(PurgeOrder order, ProcessLink::PurgeDone done) override;
  void on_handed_over(pid_t successor) override;
  void on_end_wanted() override { parts_.on_end_wanted(); }

  std::vector<Listeners::Inherited> listeners_of_manager(const config::Config& config);
  void restore(const InheritedState::State& state);
  void add_tombstone(const std::vector<filter::Hash128>& keys, bool has_purge);

  const Parts parts_;
  std::optional<upgrade::Channel> channel_;
  const upgrade::Program program_;
  upgrade::ServiceManager manager_;
  std::optional<InheritedState> inheritance_;  // until it serves
  std::unique_ptr<Predecessors> predecessors_;
  std::unique_ptr<Upgrade> upgrade_;
  std::unique_ptr<net::Timer> watchdog_;
  std::string instance_;  // in Via
};

}  // namespace encore::server
