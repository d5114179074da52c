// DirectCache: what a kernel decides that has one shard, no disk, and admits everything, without
// the kernel around it. Its eviction policies are the kernel's own (cache/eviction_order.h), on the
// kernel's own entries; the policy is a template parameter of the loop. An entry is found by its
// object's number: the table that numbers a trace's objects has looked for the key already.
// tests/sim/direct_cache_test.cc compares it with the kernel, decision by decision.
// Why it is: docs/decisions/0345. Thread-compatible, deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/statistics.h"
#include "sim/replay/replay_options.h"

namespace encore::sim {

class DirectCache {
 public:
  // Null where the options ask for more than it does. REQUIRES: a kernel accepts them.
  static std::unique_ptr<DirectCache> create(const ReplayOptions& options);
  virtual ~DirectCache() = default;
  DirectCache(const DirectCache&) = delete;
  DirectCache& operator=(const DirectCache&) = delete;

  // Receivers of counts and outcomes; null: none. Borrowed.
  struct Counted {
    ReplayCounts* counts = nullptr;
    std::vector<ReplayOutcome>* outcomes = nullptr;
  };
  // The next requests of the trace, in order.
  virtual void feed(std::span<const ReplayRequest> requests, const Counted& counted) = 0;

  // Puts its own figures in the place of those of a kernel that was asked nothing.
  virtual void fill_in(cache::KernelStatistics& statistics) const = 0;
  // True if an object was ever stored.
  virtual bool ever_stored(std::uint32_t object) const = 0;

 protected:
  DirectCache() = default;
};

}  // namespace encore::sim
