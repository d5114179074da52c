// SlowReaders: the places of the slowest readers. Each worker says about once a second how fast the
// slowest of its own is. A worker that finds no memory has the worker of the slowest one cut it, on
// that worker's own loop: no reader is ever named by another thread. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"

namespace encore::server {

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

  // Cuts the readers of one worker.
  class Cutter {
   public:
    // Any thread: has its slowest readers cut, in a later turn, until `bytes` are free;
    // publish_done() follows. Called with the lock held: it calls nothing of this class.
    virtual void cut_later(Scope scope, std::uint64_t bytes) = 0;

   protected:
    ~Cutter() = default;
  };

  // Borrowed until remove().
  void add(Cutter& cutter);
  void remove(Cutter& cutter);

  // Publishes the result of a check of a worker's readers; publish_done() after what cut() has
  // asked for.
  void publish(Cutter& cutter, const Slowest& slowest, MonotonicTime now);
  void publish_done(Cutter& cutter, const Slowest& slowest);

  // Has the slowest readers cut, until `bytes` are free. One such request is in progress at a time,
  // over all workers. False where nobody has a slow reader.
  bool cut(Scope scope, std::uint64_t bytes, MonotonicTime now);

  // True if every worker has looked at its readers twice since then: one that was slow before is
  // known by now, as late as the looks may have come.
  bool have_looked_twice_since(MonotonicTime since) const;

 private:
  struct Entry {
    Cutter* cutter = nullptr;
    Slowest slowest = {};
    MonotonicTime looked{};  // last, and before that
    MonotonicTime looked_before{};
  };
  static std::uint64_t rate_of(const Entry& entry, Scope scope) {
    return scope == Scope::kAll ? entry.slowest.all : entry.slowest.over_share;
  }
  Entry* find(const Cutter& cutter) ENCORE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Entry> entries_ ENCORE_GUARDED_BY(mutex_);
  bool cutting_ ENCORE_GUARDED_BY(mutex_) = false;
  MonotonicTime cutting_since_ ENCORE_GUARDED_BY(mutex_){};
};

}  // namespace encore::server
