// Fleet: the caches of several nodes between clients and origin, in one tier or two. A balancer
// chooses the node of each request; every node is a ReplayRun with all of the options, so with the
// proxy's own kernel, filter and capacity. With two tiers a node sends misses and validations to a
// parent, chosen by the hash of the key. The parent counts that as any request, and the node's
// object is fresh for as long as the parent's. Thread-compatible, deterministic.
//
// Nodes ask memories as FleetMemory says. A shared memory is one admission for all nodes: it has
// the options of one, and parents have their own. A parent's hint is as many requests as the
// node's policy counts, if it counts any. Why all of this so: docs/decisions/0610.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "sim/replay/balancer.h"
#include "sim/replay/cache_group.h"
#include "sim/replay/replay_run.h"

namespace encore::sim {

class Fleet final : public CacheGroup {
 public:
  // REQUIRES: options.fleet. Errors: the kernel's, and those of check().
  static Result<std::unique_ptr<Fleet>> create(const ReplayOptions& options);
  // Takes no memory. REQUIRES: options.fleet. Errors: an admission or eviction policy, or a disk,
  // that these caches cannot have; a hint without parents.
  static Result<void> check(const ReplayOptions& options);
  ~Fleet() override;

  ReplayOutcome ask(const ReplayRequest& request) override;
  void end_warmup() override;
  ReplayCounts counts() const override;
  FleetReport report() const override;
  cache::KernelStatistics statistics() const override;
  cache::AdmissionStatistics admission() const override;
  bool ever_stored(std::uint32_t object) const override;

 private:
  using Runs = std::vector<std::unique_ptr<ReplayRun>>;
  // The tier of parents, as a node asks it.
  class Parents;

  explicit Fleet(const ReplayOptions& options);
  Result<void> make_caches(const ReplayOptions& options);
  // Nodes, parents and the shared memory.
  template <typename Act>
  void each_cache(Act act) const;

  FleetOptions options_;
  std::unique_ptr<ReplayRun> memory_;  // only its admission is asked; null: it is not shared
  std::unique_ptr<Parents> parents_;   // null: there are none
  Runs nodes_;
  Balancer balancer_;
  std::uint64_t seen_ = 0;
  Nanoseconds now_{};
  ReplayCounts at_loss_;
};

// A run of one cache, or with ReplayOptions::fleet of all of its caches. Errors: those of
// ReplayRun::create() and Fleet::create().
Result<std::unique_ptr<ReplayRun>> create_replay(const ReplayOptions& options);

}  // namespace encore::sim
