// ChangedKeys: the URLs whose content changed, hour by hour, told of by any thread and read by any.
// A mutex for as long as a key takes; only what has changed asks for it, never a hit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "proxy/publish/hourly_filters.h"

namespace encore::publish {

class ChangedKeys {
 public:
  explicit ChangedKeys(HourlyFilters hours) : hours_(std::move(hours)) {}

  // The content at this URL has changed: a normalised URI as the cache keys have it.
  void note(std::string_view url, WallTime now) {
    const MutexLock lock(mutex_);
    hours_.add(url, now);
  }
  // Time has passed; whether another hour has begun.
  bool advance(WallTime now) {
    const MutexLock lock(mutex_);
    return hours_.advance(now);
  }
  // An hour that has ended by now is saved as over, although nobody has noticed its end yet:
  // otherwise a restart would take it for one that was not watched to its end, and forget the next.
  std::string save(WallTime now) {
    const MutexLock lock(mutex_);
    hours_.advance(now);
    return hours_.save();
  }
  void replace(HourlyFilters hours) {
    const MutexLock lock(mutex_);
    hours_ = std::move(hours);
  }

  // Calls read(HourlyFilters&) while nobody else has them.
  template <typename Read>
  auto with(Read read) {
    const MutexLock lock(mutex_);
    return read(hours_);
  }

 private:
  Mutex mutex_;
  HourlyFilters hours_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::publish
