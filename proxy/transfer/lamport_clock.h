// LamportClock: the time up to which something has happened that all workers see. Each worker reads
// the clock once a turn. So an object that another one has just stored came, by its own clock, in
// the future. A worker that reads it moves its clock on to this moment first (Lamport 1978: a clock
// is never behind a message that it has received). Thread-safe: a time that was noted before an
// object was stored or shared under a lock is seen by all that find it.
#pragma once

#include <atomic>

#include "base/time.h"

namespace encore::server {

class LamportClock {
 public:
  void note(MonotonicTime moment) noexcept {
    MonotonicTime latest = latest_.load(std::memory_order_relaxed);
    while (latest < moment &&
           !latest_.compare_exchange_weak(latest, moment, std::memory_order_relaxed)) {
    }
  }
  MonotonicTime get() const noexcept { return latest_.load(std::memory_order_relaxed); }

 private:
  // A line of its own: it is read at each lookup.
  alignas(64) std::atomic<MonotonicTime> latest_{MonotonicTime{}};
};
static_assert(std::atomic<MonotonicTime>::is_always_lock_free);

}  // namespace encore::server
