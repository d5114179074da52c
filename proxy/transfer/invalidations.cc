#include "proxy/transfer/invalidations.h"

namespace encore::server {

void Invalidations::add(const filter::Hash128& hash) {
  const MutexLock lock(mutex_);
  const std::uint64_t made = count_.load(std::memory_order_relaxed) + 1;
  last_[made % kKept] = hash;
  count_.store(made, std::memory_order_release);
}

void Invalidations::add_all() {
  const MutexLock lock(mutex_);
  last_of_all_ = count_.load(std::memory_order_relaxed) + 1;
  count_.store(last_of_all_, std::memory_order_release);
}

bool Invalidations::has_since(const filter::Hash128& hash, std::uint64_t seen) const {
  if (count() == seen) return false;
  const MutexLock lock(mutex_);
  const std::uint64_t made = count_.load(std::memory_order_relaxed);
  if (last_of_all_ > seen || made - seen > kKept) return true;
  for (std::uint64_t i = seen + 1; i <= made; ++i) {
    const filter::Hash128& other = last_[i % kKept];
    if (other.lo == hash.lo && other.hi == hash.hi) return true;
  }
  return false;
}

}  // namespace encore::server
