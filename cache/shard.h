// Shard: a share of the keys under one lock: entries, admission memory, counters.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "cache/admission.h"
#include "cache/counter.h"
#include "cache/disk_entries.h"
#include "cache/disk_policies.h"
#include "cache/optional_mutex.h"
#include "cache/statistics.h"
#include "cache/table.h"

namespace encore::cache {

// Written under the shard's lock.
struct ShardCounters {
#define ENCORE_MEMBER(id, meaning) Counter id;
  ENCORE_KERNEL_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::array<Counter, kAdmitReasonCount> admissions;
  Counter objects;
  Counter index_bytes;
  // The lookups that found the entry on disk alone, counted as in DiskCounters.
  Counter disk_fresh_hits;
  Counter disk_stale_hits;
  Counter storable_bytes;
  // On probation; of the oldest, an object or a key alone, number and time of its arrival (0: none
  // waits).
  Counter waiting_objects;
  Counter waiting_bytes;
  Counter oldest_waiting;
  Counter oldest_waiting_since;
};

struct alignas(64) Shard {
  struct Settings {
    std::uint32_t number = 0;
    std::uint32_t variants_max = 0;
    std::uint64_t max_object_bytes = 0;
    EvictionPolicy eviction = EvictionPolicy::kSieve;
    EvictionSettings eviction_settings{};
    bool concurrent = true;
  };
  Shard(const Settings& settings, Admission first_admission)
      : mutex(settings.concurrent),
        number(settings.number),
        variants_max(settings.variants_max),
        max_object_bytes(settings.max_object_bytes),
        table(settings.eviction, settings.eviction_settings),
        admission(std::move(first_admission)) {}

  mutable OptionalMutex mutex;
  const std::uint32_t number;
  std::uint32_t variants_max ENCORE_GUARDED_BY(mutex);
  std::uint64_t max_object_bytes ENCORE_GUARDED_BY(mutex);
  Table table ENCORE_GUARDED_BY(mutex);
  Admission admission ENCORE_GUARDED_BY(mutex);
  std::unique_ptr<DiskEntries> disk ENCORE_GUARDED_BY(mutex);  // null: there are no disks
  ShardCounters counters;

  void give_disks(std::span<const DiskOptions> disks) ENCORE_REQUIRES(mutex) {
    disk = std::make_unique<DiskEntries>(disks, table, number);
    configure_disk();
  }
  // To be called when the admission policy or variants_max has become another one.
  void configure_disk() ENCORE_REQUIRES(mutex) {
    if (disk != nullptr) {
      const bool on_probation = admission.probation() != nullptr;
      table.keep_waiting(on_probation);
      disk->configure(disk_policy_for(on_probation), variants_max);
    }
  }
  // True if the shard runs probation in front of disks.
  bool runs_probation() const ENCORE_REQUIRES(mutex) { return table.keeps_waiting(); }
  bool is_on_disk(const Key& key) const ENCORE_REQUIRES(mutex) {
    return disk != nullptr && disk->has(key);
  }

  // Evicts until `bytes` are freed, at most `victims_max` entries, and none once `is_enough()`.
  Table::Evicted evict(std::uint64_t bytes, std::uint32_t victims_max, Removals& gone,
                       Table::Used used = Table::Used::kEvict) ENCORE_REQUIRES(mutex) {
    return evict_until(bytes, victims_max, gone, used, [] { return false; });
  }
  template <typename IsEnough>
  Table::Evicted evict_until(std::uint64_t bytes, std::uint32_t victims_max, Removals& gone,
                             Table::Used used, const IsEnough& is_enough) ENCORE_REQUIRES(mutex) {
    Table::Evicted last = Table::Evicted::kOne;
    while (last == Table::Evicted::kOne && gone.bytes() < bytes && gone.count() < victims_max &&
           !is_enough()) {
      last = table.evict_one(gone, used);
    }
    counters.evictions.add(gone.count());
    counters.evicted_bytes.add(gone.bytes());
    gone.mark_evicted();
    count_entries();
    return last;
  }

  // Hits on what waits; without the lock.
  const Counter& waiting_hits() const ENCORE_NO_THREAD_SAFETY_ANALYSIS {
    return table.waiting_hits();
  }

  // After entries came or went.
  void count_entries() ENCORE_REQUIRES(mutex) {
    counters.objects.set(table.size());
    counters.index_bytes.set(table.memory_bytes());
    if (table.keeps_waiting()) [[unlikely]] {
      count_waiting();
    }
  }
  // After what waits came or went.
  void count_waiting() ENCORE_REQUIRES(mutex) {
    counters.waiting_objects.set(table.waiting().objects());
    counters.waiting_bytes.set(table.waiting().bytes());
    const auto oldest = oldest_waiting().value_or(Arrival{});
    counters.oldest_waiting.set(oldest.number);
    counters.oldest_waiting_since.set(
        static_cast<std::uint64_t>(oldest.since.time_since_epoch().count()));
  }
  // The oldest object or key that probation keeps waiting here; empty if none waits.
  std::optional<Arrival> oldest_waiting() const ENCORE_REQUIRES(mutex) {
    const ProbationAdmission* const probation = admission.probation();
    if (probation == nullptr || !table.keeps_waiting()) {
      return std::nullopt;
    }
    std::optional<Arrival> oldest = probation->oldest_key();
    const WaitingOrder& objects = table.waiting();
    if (!objects.empty() && (!oldest || objects.oldest_arrival().number < oldest->number)) {
      oldest = objects.oldest_arrival();
    }
    return oldest;
  }
};

}  // namespace encore::cache
