// Miss-ratio curves: the hit ratios of caches of many sizes, and of nothing else. LRU that stores
// everything is computed for all sizes in one pass, by stack distances; what that does not hold
// for is simulated: in a sample, in miniature.
#pragma once

#include <vector>

#include "base/error.h"
#include "sim/cli/simulation.h"

namespace encore::sim {

struct CurvePoint {
  cache::KernelOptions kernel;  // as planned, the capacity in bytes
  std::uint64_t requests =
      0;             // on which the ratios rest: of the whole trace, or before an interrupt
  HitRatios ratios;  // ratios of the whole trace, with bounds if it was sampled
  bool by_stack_distances = false;
};

// The points in the order of the plan. Errors: as run_held().
Result<std::vector<CurvePoint>> run_curves(const LoadedTrace& trace,
                                           const std::vector<PlannedRun>& plan,
                                           const RunOptions& options, Monitor& monitor);

}  // namespace encore::sim
