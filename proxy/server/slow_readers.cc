#include "proxy/server/slow_readers.h"

#include <algorithm>

#include "proxy/server/relief.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

// A worker that is asked and ends before it comes to it never answers.
constexpr Nanoseconds kAnswerMax = std::chrono::seconds(1);

}  // namespace

void SlowReaders::add(Worker& worker) {
  const MutexLock lock(mutex_);
  entries_.push_back({&worker, {}});
}

void SlowReaders::remove(Worker& worker) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.worker == &worker; });
}

SlowReaders::Entry* SlowReaders::find(const Worker& worker) {
  const auto found = std::ranges::find(entries_, &worker, &Entry::worker);
  return found == entries_.end() ? nullptr : &*found;
}

void SlowReaders::publish(Worker& worker, const Slowest& slowest) {
  const MutexLock lock(mutex_);
  if (Entry* entry = find(worker)) entry->slowest = slowest;
}

void SlowReaders::publish_done(Worker& worker, const Slowest& slowest) {
  const MutexLock lock(mutex_);
  if (Entry* entry = find(worker)) entry->slowest = slowest;
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
  Worker* worker = slowest->worker;
  worker->post([worker, scope, bytes] { worker->relief().cut(scope, bytes); });
  return true;
}

}  // namespace encore::server
