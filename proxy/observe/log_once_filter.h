// LogOnceFilter: subjects of warnings that are logged once each, however often their cause returns.
// Thread-safe.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "base/mutex.h"

namespace encore::server {

class LogOnceFilter {
 public:
  // Subjects beyond this number are not logged: clients must not choose how many there are.
  static constexpr std::size_t kSubjectsMax = 1024;

  // True at the first call with a subject.
  bool is_first(const std::string& subject) {
    const MutexLock lock(mutex_);
    return subjects_.size() < kSubjectsMax && subjects_.insert(subject).second;
  }

 private:
  Mutex mutex_;
  std::set<std::string> subjects_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
