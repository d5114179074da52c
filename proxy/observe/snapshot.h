// Snapshot: all counters of the process at one moment, summed over the workers. /metrics and
// /api/stats are written from it. A value; thread-compatible.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/statistics.h"
#include "proxy/disk/disk_report.h"
#include "proxy/observe/age_histogram.h"
#include "proxy/observe/certificate_report.h"
#include "proxy/observe/intercept_report.h"
#include "proxy/observe/series_report.h"
#include "proxy/observe/server_report.h"
#include "proxy/observe/shadow_caches.h"
#include "proxy/observe/stats.h"
#include "proxy/store/store.h"

namespace encore::server {

struct LatencySnapshot {
  std::array<std::uint64_t, kLatencyBuckets> buckets{};
  std::uint64_t count = 0;
  double sum_seconds = 0;
  // The upper bound of the bucket in which the quantile lies, in seconds; 0 where nothing was
  // measured.
  double quantile(double q) const;
};

struct SizeSnapshot {
  std::array<std::uint64_t, kResponseSizeBuckets> buckets{};
  std::uint64_t sum = 0;
};

// Counts in buckets of powers of two: bucket b holds what is less than 2^b.
template <std::size_t kBuckets>
struct PowersOfTwo {
  std::array<std::uint64_t, kBuckets> buckets{};
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  // The upper bound of the bucket in which the quantile lies; 0 where nothing was counted.
  double quantile(double q) const {
    const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += buckets[i];
      if (count != 0 && seen >= rank) return std::ldexp(1.0, static_cast<int>(i));
    }
    return 0;
  }
};

struct Snapshot {
  std::array<std::uint64_t, kOutcomeCount> requests{};
  std::array<LatencySnapshot, kOutcomeClassCount> latency;
  std::array<SizeSnapshot, kOutcomeClassCount> sizes;  // sizes of bodies, as clients received them
#define ENCORE_MEMBER(member, name, help) std::uint64_t member = 0;
  ENCORE_COUNTERS(ENCORE_MEMBER)
  ENCORE_BODY_COUNTERS(ENCORE_MEMBER)
  ENCORE_GAUGES(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  Http2Snapshot http2;
  Http2Snapshot origin_http2;
  cache::KernelStatistics kernel;
  cache::AdmissionStatistics admission;
  bool on_probation = false;  // the policy is probation
  store::StoreStats store;
  std::vector<disk::DiskReport> devices;  // by kernel.disk.disks, in their order
  std::uint64_t transfer_memory_bytes = 0;
  ShadowReports shadows;
  std::vector<CertificateReport> certificates;  // for all listeners that speak TLS
  PowersOfTwo<kAgeBuckets> evicted_ages;        // in seconds
  PowersOfTwo<kSizeBuckets> stored_sizes;       // sizes of bodies, in bytes
  std::vector<ServerReport> servers;            // for all origins, in the order of the config
  SeriesReport series;
  std::optional<InterceptReport> intercept;  // nothing where no host is decrypted

  std::uint64_t requests_of(OutcomeClass group) const;
  // Adds what a worker has counted. Its thread may be counting meanwhile.
  void add(const WorkerStats& stats);
};

}  // namespace encore::server
