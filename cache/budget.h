// Budget: the bytes that all shards share, and the numbers of the events. Its mutex is taken inside
// a shard's, never the other way, and is held for a whole change: a change of the budget gets its
// event's number under it, so the order of the numbers is the order of the changes. Why no budget
// for each shard: docs/decisions/0030.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "cache/optional_mutex.h"
#include "cache/options.h"

namespace encore::cache {

class Budget {
 public:
  explicit Budget(const KernelOptions& options)
      : mutex(options.concurrent), options_(reload_options(options)) {
    limit_ = options.capacity_bytes;
    max_object_ = effective_max_object(options_);
  }

  OptionalMutex mutex;

  // The next event's number. Events that leave the budget alone take theirs under the shard's lock.
  std::uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // The place of what comes now among all that is on probation.
  std::uint64_t next_arrival() { return arrivals_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // Bytes that must leave the cache before `bytes` more may come in.
  std::uint64_t missing(std::uint64_t bytes) const ENCORE_REQUIRES(mutex) {
    return used_ + bytes <= limit_ ? 0 : used_ + bytes - limit_;
  }
  // REQUIRES: missing(bytes) == 0.
  void take_reservation(std::uint64_t bytes) ENCORE_REQUIRES(mutex) {
    ENCORE_CHECK(missing(bytes) == 0, "a reservation finds room");
    used_ += bytes;
    reserved_ += bytes;
  }
  void give_back_reservation(std::uint64_t bytes) ENCORE_REQUIRES(mutex) {
    used_ -= bytes;
    reserved_ -= bytes;
  }
  // A reservation becomes (a part of) an entry: it is counted as the entry's now.
  void settle_reservation(std::uint64_t bytes) ENCORE_REQUIRES(mutex) { reserved_ -= bytes; }
  void grow(std::uint64_t bytes) ENCORE_REQUIRES(mutex) { used_ += bytes; }
  void free(std::uint64_t bytes) ENCORE_REQUIRES(mutex) { used_ -= bytes; }

  // A smaller capacity does not lower the limit below what is used; lower_limit() does, as entries
  // leave.
  void reload(const ReloadOptions& options) ENCORE_REQUIRES(mutex) {
    options_ = options;
    limit_ = std::max(options.capacity_bytes, std::min(limit_, used_));
    max_object_ = effective_max_object(options);
  }
  void lower_limit() ENCORE_REQUIRES(mutex) {
    limit_ = std::max(options_.capacity_bytes, std::min(limit_, used_));
  }
  bool is_shrinking() const ENCORE_REQUIRES(mutex) { return limit_ > options_.capacity_bytes; }
  std::uint64_t excess() const ENCORE_REQUIRES(mutex) {
    return used_ > options_.capacity_bytes ? used_ - options_.capacity_bytes : 0;
  }

  const ReloadOptions& options() const ENCORE_REQUIRES(mutex) { return options_; }
  std::uint64_t used() const ENCORE_REQUIRES(mutex) { return used_; }
  std::uint64_t reserved() const ENCORE_REQUIRES(mutex) { return reserved_; }
  // The most that the index of the disks may take.
  std::uint64_t disk_index_max() const ENCORE_REQUIRES(mutex) {
    return options_.capacity_bytes / kDiskIndexShare;
  }
  std::uint64_t max_object() const ENCORE_REQUIRES(mutex) { return max_object_; }
  // Which shard reclaim() continues with.
  std::uint32_t& reclaim_shard() ENCORE_REQUIRES(mutex) { return reclaim_shard_; }

 private:
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> arrivals_{0};
  ReloadOptions options_ ENCORE_GUARDED_BY(mutex);
  std::uint64_t used_ ENCORE_GUARDED_BY(mutex) = 0;
  std::uint64_t reserved_ ENCORE_GUARDED_BY(mutex) = 0;
  std::uint64_t limit_ ENCORE_GUARDED_BY(mutex) = 0;
  std::uint64_t max_object_ ENCORE_GUARDED_BY(mutex) = 0;
  std::uint32_t reclaim_shard_ ENCORE_GUARDED_BY(mutex) = 0;
};

}  // namespace encore::cache
