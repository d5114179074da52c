#include "proxy/process/slow_readers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

// A worker that is asked and ends before its turn never answers.
constexpr Nanoseconds kAnswerMax = std::chrono::seconds(1);

}  // namespace

void SlowReaders::add(Cutter& cutter) {
  const MutexLock lock(mutex_);
  ENCORE_CHECK(find(cutter) == nullptr, "a worker has one entry");
  entries_.push_back({.cutter = &cutter});
}

void SlowReaders::remove(Cutter& cutter) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.cutter == &cutter; });
}

SlowReaders::Entry* SlowReaders::find(const Cutter& cutter) {
  const auto found = std::ranges::find(entries_, &cutter, &Entry::cutter);
  return found == entries_.end() ? nullptr : &*found;
}

void SlowReaders::publish(Cutter& cutter, const Slowest& slowest, MonotonicTime now) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(cutter);
  if (entry == nullptr) return;
  entry->slowest = slowest;
  entry->looked_before = std::exchange(entry->looked, now);
}

bool SlowReaders::have_looked_twice_since(MonotonicTime since) const {
  const MutexLock lock(mutex_);
  return std::ranges::all_of(entries_,
                             [since](const Entry& entry) { return entry.looked_before >= since; });
}

void SlowReaders::publish_done(Cutter& cutter, const Slowest& slowest) {
  const MutexLock lock(mutex_);
  if (Entry* entry = find(cutter)) entry->slowest = slowest;
  cutting_ = false;
}

bool SlowReaders::cut(Scope scope, std::uint64_t bytes, MonotonicTime now) {
  const MutexLock lock(mutex_);
  if (cutting_ && now - cutting_since_ < kAnswerMax) return true;
  const auto slowest = std::ranges::min_element(
      entries_, {}, [scope](const Entry& entry) { return rate_of(entry, scope); });
  if (slowest == entries_.end() || rate_of(*slowest, scope) == kNone) return false;
  cutting_ = true;
  cutting_since_ = now;
  slowest->cutter->cut_later(scope, bytes);
  return true;
}

}  // namespace encore::server
