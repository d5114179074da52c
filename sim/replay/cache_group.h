// CacheGroup: several caches that a replay asks instead of one. Interface; sim/replay/fleet.h has
// the class.
#pragma once

#include <cstdint>

#include "cache/statistics.h"
#include "sim/replay/replay_options.h"

namespace encore::sim {

// Counts since the warm-up.
struct FleetReport {
  struct Tier {
    ReplayCounts counts;
    // The fewest and the most of any cache; not of the same one.
    std::uint64_t requests_min = 0;
    std::uint64_t requests_max = 0;
    std::uint64_t hits_min = 0;
    std::uint64_t hits_max = 0;
  };
  Tier nodes;
  Tier parents;                       // zeros without parents
  std::uint64_t origin_requests = 0;  // misses and validations
  std::uint64_t passed_on = 0;        // by bounded loads, warm-up included
  ReplayCounts before_loss;           // counts of both tiers; all of them if no node was lost
  ReplayCounts after_loss;
};

class CacheGroup {
 public:
  virtual ~CacheGroup() = default;
  // The next request of the trace. Returns the outcome at the cache that got it.
  virtual ReplayOutcome ask(const ReplayRequest& request) = 0;
  // Requests from here on count. Without a warm-up all do.
  virtual void end_warmup() = 0;

  // Counts of clients' requests: hits of both tiers, fetched from the origin, written to all.
  virtual ReplayCounts counts() const = 0;
  virtual FleetReport report() const = 0;
  // Sums over all caches, with counters since the warm-up.
  virtual cache::KernelStatistics statistics() const = 0;
  // Likewise; rates and fills are means over the caches that have a filter.
  virtual cache::AdmissionStatistics admission() const = 0;
  // True if any cache ever stored the object.
  virtual bool ever_stored(std::uint32_t object) const = 0;
};

}  // namespace encore::sim
