// Kernels of one shard that charge objects by their size alone, and replays through them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/replay_run.h"
#include "tests/catch.h"

namespace encore::sim {

inline cache::KernelOptions kernel(std::uint64_t bytes, cache::EvictionPolicy eviction,
                                   cache::AdmissionPolicy admission) {
  cache::KernelOptions options;
  options.capacity_bytes = bytes;
  options.max_object_share = 1;
  options.shards = 1;
  options.entry_overhead_bytes = 0;
  options.eviction = eviction;
  options.admission.policy = admission;
  options.admission.filter.capacity = 1000;
  options.admission.filter.bits = 1U << 20U;
  options.admission.shadow_one_in = 1;
  options.concurrent = false;
  return options;
}

inline ReplayCounts replay(const std::vector<ReplayRequest>& requests,
                           const cache::KernelOptions& options) {
  auto run = ReplayRun::create({.kernel = options});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  return (*run)->counts();
}

}  // namespace encore::sim
