// LruCurve: the hits of LRU caches of many sizes in one pass over a trace, by stack distances.
// An object is in a cache if its bytes and those of all others asked for since fit into it. In a
// sample these others stand for 1/rate times as many. Deterministic; thread-compatible.
//
// Exact, at a rate of 1, where everything is admitted, nothing expires, no object shrinks and none
// is larger than the cache: then it equals a replay hit by hit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/replay_run.h"
#include "sim/replay/stack_distances.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {

struct LruCurveOptions {
  std::vector<std::uint64_t> cache_bytes;  // ascending
  double rate = 1;
  std::uint64_t entry_overhead_bytes = 0;
};

class LruCurve {
 public:
  explicit LruCurve(LruCurveOptions options);
  // The next requests of the trace, in order. None counts before end_warmup().
  void feed(std::span<const ReplayRequest> requests);
  void end_warmup() { counting_ = true; }
  // For each cache: requests, hits and their bytes. The other counts are 0.
  std::vector<ReplayCounts> counts() const;

 private:
  void one(const ReplayRequest& request);

  LruCurveOptions options_;
  StackDistances stack_;
  ReplayCounts all_;
  // The hits of each cache that no smaller one has.
  std::vector<ReplayCounts> more_;
  bool counting_ = false;
};

}  // namespace encore::sim
