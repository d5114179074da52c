// FleetPurges: the process' part in a fleet. It keeps the position with the disks, applies purges
// of other nodes as the admin listener's are done, and publishes those of this one. Confined to the
// main thread, but for what says otherwise. docs/decisions/0600 to 0606.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/fleet/fleet.h"
#include "proxy/net/loop.h"
#include "proxy/process/fleet_filters.h"
#include "proxy/process/handover.h"
#include "proxy/process/proxy.h"
#include "proxy/settings/purge_order.h"

namespace encore::server {

// Identities of the disks of a configuration that are there.
std::vector<std::string> disks_that_exist(const config::Config& config);

// The engine with its password, from fleet.password_file where that is set; fleet.purges must be.
// Errors, of that key: the file cannot be read or trusted, or a user has no password.
Result<config::RedisUrl> engine_of(const config::Fleet& fleet);

// Connects to the engine and reads both keys; takes at most two seconds. Errors: as RedisLink's, or
// the engine refuses the user or the keys.
Result<void> reach_engine(const config::RedisUrl& engine);

class FleetPurges {
 public:
  struct Parts {
    net::Loop& loop;
    Proxy& proxy;
    MemoryHandover& memory;
    // Purges in all processes of this node; calls `done` later. False: the end is near.
    std::function<bool(PurgeOrder order, std::function<void(const PurgeResult&)> done)> purge;
  };
  struct Start {
    bool is_successor = false;  // this process takes over from another one
    std::vector<std::string> disks =
        {};                        // that may hold objects: disks_that_exist() before the start
    bool adopts_by_order = false;  // --adopt-from
  };
  // Null where no engine is configured. Errors: a file of a password, a position or of purges that
  // wait, which cannot be read or trusted.
  static Result<std::unique_ptr<FleetPurges>> create(const config::Config& config, Parts parts,
                                                     const Start& start);
  ~FleetPurges();
  FleetPurges(const FleetPurges&) = delete;
  FleetPurges& operator=(const FleetPurges&) = delete;

  // Before anything is served: applies what was purged meanwhile, or makes all objects stale.
  void catch_up();
  // From now on purges are done by the loop, and filters are adopted and given.
  void serve();
  // A purge was done here, with this result: `done` gets it with that of the fleet, later.
  void publish(const PurgeOrder& order, PurgeResult purged,
               std::function<void(const PurgeResult&)> done);
  // A reload.
  void use(const config::Config& config);
  void hand_over() { fleet_->hand_over(); }
  // Any thread.
  FleetReport report() const { return fleet_->report(); }

 private:
  struct Files {
    std::string position;  // empty: nowhere
    std::string waiting;
  };
  struct Purging;
  FleetPurges(const config::Config& config, Parts parts, bool is_successor, Files files);
  Result<fleet::FleetOptions> read_options(const config::Config& config, const Start& start) const;
  fleet::FleetHost make_host();
  static Files files_of(const config::Config& config);

  // On the follower's thread.
  fleet::Applied apply(std::span<const PurgeOrder> orders);
  std::optional<PurgeResult> purge(const PurgeOrder& order);
  PurgeOrder in_realms_of_ours(PurgeOrder order) const;
  // On the publisher's thread.
  fleet::NodeFacts facts() const;

  const Parts parts_;
  const bool is_successor_;
  const Files files_;
  const std::shared_ptr<Purging> purging_;
  std::atomic<bool> is_serving_ = false;
  FleetFilters filters_;
  std::string config_hash_;  // guarded by the mutex of `purging_`
  std::unique_ptr<fleet::Fleet> fleet_;
};

}  // namespace encore::server
