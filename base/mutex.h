// A mutex that clang's -Wthread-safety understands. What a mutex guards says so with
// ENCORE_GUARDED_BY; a function that needs it held says ENCORE_REQUIRES. Other compilers see
// plain std::mutex.
#pragma once

#include <mutex>

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

class ENCORE_CAPABILITY("mutex") Mutex {
 public:
  void lock() ENCORE_ACQUIRE() { mutex_.lock(); }
  void unlock() ENCORE_RELEASE() { mutex_.unlock(); }
  bool try_lock() ENCORE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // For std::condition_variable only.
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
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
