// SlowReaders: where the slowest readers are. Each worker says about once a second how fast the
// slowest of its own is; who finds no memory has the worker of the slowest one cut it, on that
// worker's own loop: no reader is ever named by another thread. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"

namespace encore::server {

class Worker;

class SlowReaders {
 public:
  // Among whom the slowest is looked for.
  enum class Scope : std::uint8_t {
    kOverShare,  // those of clients that hold more than their share
    kAll,
  };
  static constexpr std::uint64_t kNone = UINT64_MAX;
  // Bytes a second of a worker's slowest reader that holds memory.
  struct Slowest {
    std::uint64_t over_share = kNone;
    std::uint64_t all = kNone;
  };

  // The worker is borrowed until remove().
  void add(Worker& worker);
  void remove(Worker& worker);

  // What a look at the worker's readers has found; publish_done() after what cut() has asked for.
  void publish(Worker& worker, const Slowest& slowest);
  void publish_done(Worker& worker, const Slowest& slowest);

  // Has the slowest readers cut, until `bytes` are free. One such request is under way at a time,
  // over all workers. False where nobody has a slow reader.
  bool cut(Scope scope, std::uint64_t bytes, MonotonicTime now);

 private:
  struct Entry {
    Worker* worker = nullptr;
    Slowest slowest;
  };
  static std::uint64_t rate_of(const Entry& entry, Scope scope) {
    return scope == Scope::kAll ? entry.slowest.all : entry.slowest.over_share;
  }
  Entry* find(const Worker& worker) ENCORE_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Entry> entries_ ENCORE_GUARDED_BY(mutex_);
  bool cutting_ ENCORE_GUARDED_BY(mutex_) = false;
  MonotonicTime cutting_since_ ENCORE_GUARDED_BY(mutex_){};
};

}  // namespace encore::server
