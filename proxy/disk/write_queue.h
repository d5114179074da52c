// What waits to be written on one disk, in the order of its places: what comes early is held back.
// Thread-safe.
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

// What is written. Owns what its record borrows. Made on one thread, used and destroyed on another.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual Record record() const = 0;  // fields.version is set by Disks
};

struct ToWrite {
  std::optional<filter::Hash128> key{};  // of what is moved it is known when it was read
  cache::DiskPlace place{};
  cache::SegmentTurn turn{};
  cache::DiskVersion version = 0;
  std::unique_ptr<RecordSource> source =
      nullptr;  // null: its place stays empty, unless it is moved
  std::optional<cache::DiskPlace> from = std::nullopt;  // of what is moved
};

class WriteQueue {
 public:
  explicit WriteQueue(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // `order`: DiskDecision::order; each comes once. True: take() has to be called until it answers
  // nothing, and nobody does so yet.
  bool put(std::uint64_t order, ToWrite wanted) ENCORE_EXCLUDES(mutex_);
  // The next one; nothing: it has not come yet.
  std::optional<ToWrite> take() ENCORE_EXCLUDES(mutex_);
  // The same, but for those that have not come and never will.
  std::optional<ToWrite> take_any() ENCORE_EXCLUDES(mutex_);

  // Of the sources.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool is_full() const { return bytes() >= bytes_max_; }

 private:
  std::optional<ToWrite> take_first() ENCORE_REQUIRES(mutex_);

  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_ = 0;  // changed under the mutex
  Mutex mutex_;
  std::map<std::uint64_t, ToWrite> waiting_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t next_ ENCORE_GUARDED_BY(mutex_) = 1;
  bool is_taken_ ENCORE_GUARDED_BY(mutex_) = false;
};

}  // namespace encore::disk
