// Records that wait to be written on one disk, in the order of their places: an early one is held
// back. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "cache/disk_types.h"
#include "filter/hash.h"
#include "proxy/disk/record.h"

namespace encore::disk {

// Source of a record to write. Owns the data that its record borrows. Made on one thread, used and
// destroyed on another.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual Record record() const = 0;  // fields.version is set by Disks
  // It is not to wait until others have come. Why other records wait: docs/decisions/0170.
  virtual bool is_urgent() const { return false; }
};

struct PendingWrite {
  std::optional<filter::Hash128> key{};  // for a moved record it is known once it was read
  cache::DiskPlace place{};
  cache::SegmentTurn turn{};
  cache::DiskVersion version = 0;
  std::unique_ptr<RecordSource> source =
      nullptr;  // null: its place stays empty, unless it is moved
  std::optional<cache::DiskPlace> from = std::nullopt;  // old place of a moved record
};

class WriteQueue {
 public:
  // With less than `batch_bytes`, and nothing of it urgent, moved or the first of a segment, nobody
  // is asked to take it.
  explicit WriteQueue(std::uint64_t bytes_max, std::uint64_t batch_bytes = 0)
      : bytes_max_(bytes_max), batch_bytes_(batch_bytes) {}

  // `order`: DiskDecision::order; each comes once. True: take() has to be called until it returns
  // nothing, and no caller does so yet. Other records wait for a take() by the clock.
  bool put(std::uint64_t order, PendingWrite wanted) ENCORE_EXCLUDES(mutex_);
  // The next one; nothing: it has not come yet.
  std::optional<PendingWrite> take() ENCORE_EXCLUDES(mutex_);
  // The same, but for those that have not come and never will.
  std::optional<PendingWrite> take_any() ENCORE_EXCLUDES(mutex_);

  // Bytes of the sources.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool is_full() const { return bytes() >= bytes_max_; }

 private:
  std::optional<PendingWrite> take_first() ENCORE_REQUIRES(mutex_);

  // With a turn one segment less is free: another has to be reclaimed before this one is full.
  static bool is_urgent(const PendingWrite& wanted) {
    return wanted.from || wanted.turn.sequence != 0 ||
           (wanted.source != nullptr && wanted.source->is_urgent());
  }

  const std::uint64_t bytes_max_;
  const std::uint64_t batch_bytes_;
  std::atomic<std::uint64_t> bytes_ = 0;  // changed under the mutex
  Mutex mutex_;
  std::map<std::uint64_t, PendingWrite> waiting_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t next_ ENCORE_GUARDED_BY(mutex_) = 1;
  bool is_taken_ ENCORE_GUARDED_BY(mutex_) = false;
  std::uint64_t urgent_ ENCORE_GUARDED_BY(mutex_) = 0;  // number of waiting ones
};

}  // namespace encore::disk
