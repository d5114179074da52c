// Shard: a share of the keys under one lock: entries, admission memory, counters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "cache/admission.h"
#include "cache/disk_table.h"
#include "cache/optional_mutex.h"
#include "cache/statistics.h"
#include "cache/table.h"

namespace encore::cache {

// Written under the shard's lock, read by anyone.
class Counter {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct ShardCounters {
#define ENCORE_MEMBER(id, meaning) Counter id;
  ENCORE_KERNEL_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  std::array<Counter, kAdmitReasonCount> admissions;
  Counter objects;
  Counter index_bytes;
  // Of these lookups those that found it on disk alone, and what DiskCounters calls so.
  Counter disk_fresh_hits;
  Counter disk_stale_hits;
  Counter storable_bytes;
};

struct alignas(64) Shard {
  struct Settings {
    std::uint32_t number = 0;
    std::uint32_t variants_max = 0;
    std::uint64_t max_object_bytes = 0;
    EvictionPolicy eviction = EvictionPolicy::kSieve;
    bool concurrent = true;
  };
  Shard(const Settings& settings, Admission first_admission)
      : mutex(settings.concurrent),
        number(settings.number),
        variants_max(settings.variants_max),
        max_object_bytes(settings.max_object_bytes),
        table(settings.eviction),
        admission(std::move(first_admission)) {}

  mutable OptionalMutex mutex;
  const std::uint32_t number;
  std::uint32_t variants_max ENCORE_GUARDED_BY(mutex);
  std::uint64_t max_object_bytes ENCORE_GUARDED_BY(mutex);
  Table table ENCORE_GUARDED_BY(mutex);
  Admission admission ENCORE_GUARDED_BY(mutex);
  std::unique_ptr<DiskTable> disk ENCORE_GUARDED_BY(mutex);  // null: there are no disks
  ShardCounters counters;

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

  // After entries came or went.
  void count_entries() ENCORE_REQUIRES(mutex) {
    counters.objects.set(table.size());
    counters.index_bytes.set(table.memory_bytes());
  }
};

}  // namespace encore::cache
