#include "proxy/server/snapshot.h"

#include <cmath>

namespace encore::server {

double LatencySnapshot::quantile(double q) const {
  const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
    seen += buckets[i];
    if (count != 0 && seen >= rank) return latency_bucket_bound(i);
  }
  return 0;
}

std::uint64_t Snapshot::requests_of(OutcomeClass group) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    if (kOutcomeClasses[i] == group) sum += requests[i];
  }
  return sum;
}

Snapshot take_snapshot(const Shared& shared) {
  Snapshot sum;
  for (const auto& stats : shared.stats) {
    for (std::size_t i = 0; i < kOutcomeCount; ++i) sum.requests[i] += stats->requests[i].get();
    for (std::size_t group = 0; group < sum.latency.size(); ++group) {
      LatencySnapshot& latency = sum.latency[group];
      for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
        const std::uint64_t count = stats->latency[group].bucket(i);
        latency.buckets[i] += count;
        latency.count += count;
      }
      latency.sum_seconds += static_cast<double>(stats->latency[group].sum_nanoseconds()) / 1e9;
    }
#define ENCORE_ADD(member, name, help) sum.member += stats->member.get();
    ENCORE_COUNTERS(ENCORE_ADD)
    ENCORE_GAUGES(ENCORE_ADD)
#undef ENCORE_ADD
  }
  sum.kernel = shared.kernel->statistics();
  sum.admission = shared.kernel->admission_statistics();
  sum.store = shared.store->stats();
  sum.transfer_memory_bytes = shared.transfer_memory.bytes();
  return sum;
}

}  // namespace encore::server
