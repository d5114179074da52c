// A mutex that is not taken where the kernel is confined to one thread (the simulator). What it
// guards is annotated as with any other.
#pragma once

#include "base/mutex.h"

namespace encore::cache {

class ENCORE_CAPABILITY("mutex") OptionalMutex {
 public:
  explicit OptionalMutex(bool concurrent) : concurrent_(concurrent) {}
  void lock() ENCORE_ACQUIRE() {
    if (concurrent_) {
      mutex_.lock();
    }
  }
  void unlock() ENCORE_RELEASE() {
    if (concurrent_) {
      mutex_.unlock();
    }
  }

 private:
  Mutex mutex_;
  const bool concurrent_;
};

class ENCORE_SCOPED_CAPABILITY OptionalLock {
 public:
  explicit OptionalLock(OptionalMutex& mutex) ENCORE_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~OptionalLock() ENCORE_RELEASE() { mutex_.unlock(); }
  OptionalLock(const OptionalLock&) = delete;
  OptionalLock& operator=(const OptionalLock&) = delete;

 private:
  OptionalMutex& mutex_;
};

}  // namespace encore::cache
