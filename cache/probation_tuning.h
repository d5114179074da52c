// Which samples of the traffic tell how long probation should remember keys, by what the disks hold
// now: the proxy asks by the clock, the simulator by requests. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "cache/options.h"
#include "cache/probation_cache.h"
#include "cache/statistics.h"

namespace encore::cache {

// How probation is tuned by samples of the traffic (probation_samples.h).
struct ProbationTuning {
  ProbationCacheSettings whole;  // were all keys in the sample
  double rate = 0;               // share of the keys
  double write_cost = 0;
};

// So many entries tell how many objects the disks will hold.
inline constexpr std::uint64_t kTuningEntriesMin = 256;

// The samples to take from now on, with the sizes of the disks in service and of what waits;
// nothing: too little is known, or those that are taken (`taken`, which may be null) still fit.
// They do as long as the disks hold less than twice as many objects as they were made for, and more
// than half. `base` has what neither the statistics nor the options of the kernel say.
std::optional<ProbationTuning> next_tuning(const KernelStatistics& statistics,
                                           const KernelOptions& options,
                                           const ProbationTuning& base,
                                           const ProbationTuning* taken);

}  // namespace encore::cache
