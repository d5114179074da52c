// Which keys were invalidated lately, so that a transfer can tell whether it was overtaken: a count
// of all invalidations, and the hashes of the last of them. Thread-safe; without a lock as long as
// nothing was invalidated since.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "filter/hash.h"

namespace encore::server {

class Invalidations {
 public:
  // Beyond so many since a request was sent, its key counts as invalidated: its
  // response is not stored.
  static constexpr std::size_t kKept = 4096;

  // Invalidations so far.
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }
  void add(const filter::Hash128& hash) ENCORE_EXCLUDES(mutex_);
  // Every key.
  void add_all() ENCORE_EXCLUDES(mutex_);
  // Whether the key was invalidated after count() was `seen`.
  bool has_since(const filter::Hash128& hash, std::uint64_t seen) const ENCORE_EXCLUDES(mutex_);

 private:
  std::atomic<std::uint64_t> count_ = 0;  // written under the lock
  mutable Mutex mutex_;
  // The one that made the count n lies at n % kKept.
  std::array<filter::Hash128, kKept> last_ ENCORE_GUARDED_BY(mutex_){};
  std::uint64_t last_of_all_ ENCORE_GUARDED_BY(mutex_) = 0;  // the count that add_all() made
};

}  // namespace encore::server
