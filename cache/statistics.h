// What a kernel counts. Values; aggregated over the shards on demand (Kernel::statistics).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cache/types.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

//  member            meaning
#define ENCORE_KERNEL_COUNTERS(X)                              \
  X(fresh_hits, "lookups that found a fresh entry")            \
  X(stale_hits, "lookups that found a stale entry")            \
  X(misses, "lookups that found no entry")                     \
  X(commits, "entries stored, replacements included")          \
  X(replacements, "entries replaced by the same variant")      \
  X(freshens, "entries freshened by a validation")             \
  X(evictions, "entries evicted for room")                     \
  X(evicted_bytes, "their charge")                             \
  X(expirations, "entries past keep_until, found by a lookup") \
  X(variants_dropped, "entries beyond the bound on variants")  \
  X(invalidations, "entries invalidated, removed or purged")   \
  X(reserve_failures, "reservations refused: full or too large")

struct KernelCounters {
#define ENCORE_MEMBER(id, meaning) std::uint64_t id = 0;
  ENCORE_KERNEL_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::array<std::uint64_t, kAdmitReasonCount> admissions{};  // by AdmitReason

  friend bool operator==(const KernelCounters&, const KernelCounters&) = default;
};

// Cheap: reads counters without any lock of a shard.
struct KernelStatistics {
  KernelCounters counters;
  std::uint64_t objects = 0;
  std::uint64_t used_bytes = 0;      // entries and reservations
  std::uint64_t reserved_bytes = 0;  // of these, reservations
  std::uint64_t capacity_bytes = 0;
  std::uint64_t max_object_bytes = 0;  // the effective one
  std::uint64_t index_bytes = 0;       // held for entries and index, the filter not included
};

// The memory of the admission policy over all shards, generation by generation (current first):
// parameters are those of one shard's, insertions, bits and capacity are sums, rates are means.
// Without a filter there are no generations; rotations are then the resets of tinylfu.
struct AdmissionStatistics {
  bool has_filter = false;
  std::vector<filter::GenerationStatistics> generations;
  std::uint64_t capacity = 0;  // of the current generations
  std::uint64_t insertions = 0;
  std::uint64_t refreshes = 0;
  std::uint64_t rotations = 0;
  double fpr_theory = 0;
  double fpr_bits = 0;
  double size_parameter = 0;  // adaptsize: c in bytes
  filter::MeasuredFpr measured;
  std::uint64_t memory_bytes = 0;
  std::uint64_t shadow_bytes = 0;
};

}  // namespace encore::cache
