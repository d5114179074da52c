// A mutex that is not taken if the kernel is confined to one thread (the simulator). Annotations
// are those of any other mutex.
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
  explicit OptionalLock(OptionalMutex& mutex) ENCORE_ACQUIRE(mutex) : mutex_(&mutex) {
    mutex_->lock();
  }
  // The mutex of `owner`, which may be null, where it is wanted. The analysis takes it for held in
  // any case, so what needs it is done only where it was wanted.
  template <typename Owner>
  OptionalLock(const std::unique_ptr<Owner>& owner, bool wanted) ENCORE_ACQUIRE(owner->mutex)
      : mutex_(wanted ? &owner->mutex : nullptr) {
    if (wanted) {
      mutex_->lock();
    }
  }
  ~OptionalLock() ENCORE_RELEASE() {
    if (mutex_ != nullptr) {
      mutex_->unlock();
    }
  }
  OptionalLock(const OptionalLock&) = delete;
  OptionalLock& operator=(const OptionalLock&) = delete;

 private:
  OptionalMutex* mutex_;
};

}  // namespace encore::cache
