#include "proxy/observe/snapshot.h"

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

void Snapshot::add(const WorkerStats& stats) {
  for (std::size_t i = 0; i < kOutcomeCount; ++i) requests[i] += stats.requests[i].get();
  for (std::size_t group = 0; group < latency.size(); ++group) {
    LatencySnapshot& sum = latency[group];
    for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
      const std::uint64_t count = stats.latency[group].bucket(i);
      sum.buckets[i] += count;
      sum.count += count;
    }
    sum.sum_seconds += static_cast<double>(stats.latency[group].sum_nanoseconds()) / 1e9;
  }
  for (std::size_t group = 0; group < sizes.size(); ++group) {
    for (std::size_t i = 0; i < kResponseSizeBuckets; ++i) {
      sizes[group].buckets[i] += stats.sizes[group].buckets[i].get();
    }
    sizes[group].sum += stats.sizes[group].sum.get();
  }
  body_bytes_hit += stats.body_bytes(OutcomeClass::kHit);
  body_bytes_all += stats.body_bytes();
  for (std::size_t i = 0; i < kSizeBuckets; ++i) {
    const std::uint64_t count = stats.stored_sizes[i].get();
    stored_sizes.buckets[i] += count;
    stored_sizes.count += count;
  }
#define ENCORE_ADD(member, name, help) member += stats.member.get();
  ENCORE_COUNTERS(ENCORE_ADD)
  ENCORE_GAUGES(ENCORE_ADD)
#undef ENCORE_ADD
  http2.add(stats.http2);
  origin_http2.add(stats.origin_http2);
}

}  // namespace encore::server
