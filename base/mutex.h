// A mutex that clang's -Wthread-safety understands. Data that a mutex guards are marked with
// ENCORE_GUARDED_BY; a function that needs it held says ENCORE_REQUIRES.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/sanitizers.h"

#if defined(ENCORE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__clang__)
#define ENCORE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ENCORE_THREAD_ANNOTATION(x)
#endif

#define ENCORE_CAPABILITY(x) ENCORE_THREAD_ANNOTATION(capability(x))
#define ENCORE_SCOPED_CAPABILITY ENCORE_THREAD_ANNOTATION(scoped_lockable)
#define ENCORE_GUARDED_BY(x) ENCORE_THREAD_ANNOTATION(guarded_by(x))
#define ENCORE_PT_GUARDED_BY(x) ENCORE_THREAD_ANNOTATION(pt_guarded_by(x))
#define ENCORE_REQUIRES(...) ENCORE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ENCORE_ACQUIRE(...) ENCORE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ENCORE_RELEASE(...) ENCORE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define ENCORE_TRY_ACQUIRE(...) ENCORE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define ENCORE_EXCLUDES(...) ENCORE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ENCORE_NO_THREAD_SAFETY_ANALYSIS ENCORE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace encore {

// Four bytes, and inline if no other thread has it: a request locks some twenty of them, hardly
// ever with contention, and a call of pthread_mutex_lock costs more than the work that it guards
// here. A thread that finds it locked sleeps in the kernel (Drepper, "Futexes Are Tricky", 2011:
// mutex 2). Not recursive, not fair. std::condition_variable_any waits with it.
class ENCORE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ENCORE_ACQUIRE() {
    before_lock();
    std::uint32_t seen = kFree;
    if (!state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) [[unlikely]] {
      lock_slowly();
    }
    after_lock();
  }
  // REQUIRES: the calling thread has it.
  void unlock() ENCORE_RELEASE() {
    before_unlock();
    if (state_.exchange(kFree, std::memory_order_release) == kHeldAndAwaited) [[unlikely]] {
      wake_one();
    }
    after_unlock();
  }
  bool try_lock() ENCORE_TRY_ACQUIRE(true) {
    std::uint32_t seen = kFree;
    const bool taken = state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire,
                                                      std::memory_order_relaxed);
    after_try(taken);
    return taken;
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kHeldAndAwaited = 2;  // somebody may sleep

  void lock_slowly();
  void wake_one();

  // The thread sanitizer sees what the states mean, and so the order in which mutexes are taken.
#if defined(ENCORE_THREAD_SANITIZER)
  void before_lock() { __tsan_mutex_pre_lock(this, 0); }
  void after_lock() { __tsan_mutex_post_lock(this, 0, 0); }
  void before_unlock() { __tsan_mutex_pre_unlock(this, 0); }
  void after_unlock() { __tsan_mutex_post_unlock(this, 0); }
  void after_try(bool taken) {
    __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
    __tsan_mutex_post_lock(
        this, __tsan_mutex_try_lock | (taken ? 0U : unsigned{__tsan_mutex_try_lock_failed}), 0);
  }
#else
  void before_lock() {}
  void after_lock() {}
  void before_unlock() {}
  void after_unlock() {}
  void after_try(bool /*taken*/) {}
#endif

  std::atomic<std::uint32_t> state_ = kFree;
};

// Holds a Mutex for a scope.
class ENCORE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ENCORE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() ENCORE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace encore
