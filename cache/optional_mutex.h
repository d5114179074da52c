// A mutex that is not taken where the kernel is confined to one thread (the simulator). What it
// guards is annotated as with any other.
#pragma once

#include <memory>

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

// Holds the mutex of `owner` for a scope, where it is wanted. The analysis takes it for held in any
// case, so what needs it is done only where it was wanted. `owner` may be null where it is not.
class ENCORE_SCOPED_CAPABILITY LockIf {
 public:
  template <typename Owner>
  LockIf(const std::unique_ptr<Owner>& owner, bool wanted) ENCORE_ACQUIRE(owner->mutex)
      : mutex_(wanted ? &owner->mutex : nullptr) {
    if (mutex_ != nullptr) {
      mutex_->lock();
    }
  }
  ~LockIf() ENCORE_RELEASE() {
    if (mutex_ != nullptr) {
      mutex_->unlock();
    }
  }
  LockIf(const LockIf&) = delete;
  LockIf& operator=(const LockIf&) = delete;

 private:
  OptionalMutex* mutex_;
};

}  // namespace encore::cache
