#include "cache/probation_tuning.h"

#include "cache/probation_samples.h"

namespace encore::cache {

std::optional<ProbationTuning> next_tuning(const KernelStatistics& statistics,
                                           const KernelOptions& options,
                                           const ProbationTuning& base,
                                           const ProbationTuning* taken) {
  std::uint64_t size_bytes = 0;
  std::uint64_t live_bytes = 0;
  for (const auto& disk : statistics.disk.disks) {
    if (disk.offline) {
      continue;
    }
    size_bytes += disk.segments * disk.segment_bytes;
    live_bytes += disk.live_bytes;
  }
  if (statistics.disk.entries < kTuningEntriesMin || live_bytes == 0 ||
      statistics.waiting_max_bytes == 0) {
    return std::nullopt;
  }
  const double mean =
      static_cast<double>(live_bytes) / static_cast<double>(statistics.disk.entries);
  const double rate = ProbationSamples::rate_for(
      (static_cast<double>(size_bytes) + static_cast<double>(statistics.waiting_max_bytes)) / mean);
  if (taken != nullptr && rate < 2 * taken->rate && rate > taken->rate / 2 &&
      taken->write_cost == base.write_cost && taken->whole.disk_bytes == size_bytes) {
    return std::nullopt;
  }
  ProbationTuning next = base;
  next.rate = rate;
  next.whole.memory_bytes = statistics.waiting_max_bytes;
  next.whole.disk_bytes = size_bytes;
  next.whole.segment_bytes = 0;
  next.whole.keys = options.admission.filter;
  next.whole.keys.bits *= options.shards;
  next.whole.keys.capacity *= options.shards;
  return next;
}

}  // namespace encore::cache
