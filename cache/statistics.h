// Counters of a kernel. Values; aggregated over the shards on demand (Kernel::statistics).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cache/disk_types.h"
#include "cache/probation.h"
#include "cache/types.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

//  member            meaning
#define ENCORE_KERNEL_COUNTERS(X)                               \
  X(fresh_hits, "Lookups that found a fresh entry.")            \
  X(stale_hits, "Lookups that found a stale entry.")            \
  X(misses, "Lookups that found no entry.")                     \
  X(reused, "Entries found again, each counted once.")          \
  X(commits, "Entries stored, replacements included.")          \
  X(replacements, "Entries replaced by the same variant.")      \
  X(freshens, "Entries refreshed by a validation.")             \
  X(evictions, "Entries evicted.")                              \
  X(evicted_bytes, "Memory charge of evicted entries.")         \
  X(expirations, "Entries past keep_stale, found by a lookup.") \
  X(variants_dropped, "Entries beyond cache.variants_max.")     \
  X(invalidations, "Entries invalidated, removed or purged.")   \
  X(reserve_failures, "Reservations refused: full or too large.")

struct KernelCounters {
#define ENCORE_MEMBER(id, meaning) std::uint64_t id = 0;
  ENCORE_KERNEL_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::array<std::uint64_t, kAdmitReasonCount> admissions{};  // by AdmitReason

  friend bool operator==(const KernelCounters&, const KernelCounters&) = default;
};

// Counters of the disk tier; bytes are counted as placed (with padding).
//  member           meaning
#define ENCORE_DISK_COUNTERS(X)                                                    \
  X(fresh_hits, "Lookups that found a fresh entry on disk only.")                  \
  X(stale_hits, "Lookups that found a stale entry on disk only.")                  \
  X(promotions, "Entries copied from disk to memory.")                             \
  X(storable_bytes, "Bytes of storable responses.")                                \
  X(admitted, "Records placed for new responses.")                                 \
  X(admitted_bytes, "Bytes of records placed for new responses.")                  \
  X(moved, "Records re-inserted from a reclaimed segment.")                        \
  X(moved_bytes, "Bytes of re-inserted records.")                                  \
  X(filled, "Records of new responses that fill a disk.")                          \
  X(filled_bytes, "Bytes of records that fill a disk.")                            \
  X(settled, "Dropped entries that did not fill a disk.")                          \
  X(settled_visited, "Dropped entries that were hit on disk and did not fill it.") \
  X(replaced, "Entries on disk replaced by the same variant.")                     \
  X(invalidations, "Entries on disk invalidated, removed or purged.")              \
  X(loaded, "Entries found on disk at the start.")                                 \
  X(stored_alone, "Entries stored on disk only.")                                  \
  X(parts_placed, "Records placed for parts of large bodies.")                     \
  X(parts_placed_bytes, "Bytes of records of parts of large bodies.")              \
  X(parts_loaded, "Parts of large bodies found at the start.")                     \
  X(segments_reclaimed, "Segments reclaimed.")                                     \
  X(names_refused, "Responses not placed because their list of names in Vary has no number.")

// Bytes written for each byte admitted; 1 where none was.
constexpr double write_amplification_of(std::uint64_t admitted_bytes, std::uint64_t moved_bytes) {
  return admitted_bytes == 0 ? 1
                             : static_cast<double>(admitted_bytes + moved_bytes) /
                                   static_cast<double>(admitted_bytes);
}

struct DiskCounters {
#define ENCORE_MEMBER(id, meaning) std::uint64_t id = 0;
  ENCORE_DISK_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::array<std::uint64_t, kDiskOutcomeCount> outcomes{};  // commits by DiskOutcome
  std::array<std::uint64_t, kDiskLossCount> losses{};       // by DiskLoss
  // The same of parts of bodies, which count in neither.
  std::array<std::uint64_t, kDiskOutcomeCount> part_outcomes{};
  std::array<std::uint64_t, kDiskLossCount> part_losses{};

  double write_amplification() const { return write_amplification_of(admitted_bytes, moved_bytes); }
  friend bool operator==(const DiskCounters&, const DiskCounters&) = default;
};

struct DiskStatistics {
  struct Disk {
    std::uint32_t segments = 0;
    std::uint32_t free_segments = 0;
    std::uint64_t segment_bytes = 0;
    std::uint64_t objects = 0;
    std::uint64_t parts = 0;
    std::uint64_t live_bytes = 0;  // bytes of both
    std::uint64_t admitted_bytes = 0;
    std::uint64_t moved_bytes = 0;
    bool offline = false;
    bool loading = false;
    double write_amplification() const {
      return write_amplification_of(admitted_bytes, moved_bytes);
    }
  };
  DiskCounters counters;
  std::uint64_t entries = 0;
  std::uint64_t parts = 0;        // parts of large bodies, in addition to the entries
  std::uint64_t index_bytes = 0;  // bytes of both, charged to the capacity
  std::vector<Disk> disks;        // empty: there is no disk tier
};

// Cheap: reads counters without any lock of a shard.
struct KernelStatistics {
  KernelCounters counters;
  std::uint64_t objects = 0;
  std::uint64_t used_bytes = 0;      // entries and reservations
  std::uint64_t reserved_bytes = 0;  // the reservations among these
  std::uint64_t capacity_bytes = 0;
  std::uint64_t max_object_bytes = 0;   // the effective one
  std::uint64_t index_bytes = 0;        // held for entries and index, the filter not included
  std::uint64_t waiting_objects = 0;    // the objects that are on probation
  std::uint64_t waiting_bytes = 0;      // their charge
  std::uint64_t waiting_hits = 0;       // the hits on such objects
  std::uint64_t waiting_max_bytes = 0;  // beyond it the oldest leaves for what comes
  ProbationRule rule{};                 // that probation follows
  DiskStatistics disk;
};

// The memory of the admission policy over all shards, generation by generation (current first):
// parameters are those of one shard's, insertions, bits and capacity are sums, rates are means.
// Without a filter there are no generations; rotations are then the resets of tinylfu.
struct AdmissionStatistics {
  bool has_filter = false;
  std::vector<filter::GenerationStatistics> generations;
  std::uint64_t capacity = 0;  // capacity of the current generations
  std::uint64_t insertions = 0;
  std::uint64_t refreshes = 0;
  std::uint64_t rotations = 0;
  double fpr_theory = 0;
  double fpr_bits = 0;
  double size_parameter = 0;  // adaptsize: c in bytes
  // probation: keys of objects that are too large to wait, and the mean size of fetched objects.
  std::uint64_t keys_waiting = 0;
  double mean_bytes = 0;
  // Most of any shard, but for answers, a sum, and rates, which are means. The rates above are with
  // them.
  filter::AdoptedStatistics adopted;
  std::uint64_t adoptions = 0;             // since the start
  std::uint64_t adopted_memory_bytes = 0;  // held for those that some shard asks
  filter::MeasuredFpr measured;
  std::uint64_t memory_bytes = 0;
  std::uint64_t shadow_bytes = 0;
};

}  // namespace encore::cache
