#include "proxy/observe/recent_hitters.h"

#include <utility>

namespace encore::server {
namespace {

// Out of line: once a minute. `follows`: the new minute is the next one.
[[gnu::noinline]] void begin_minute(bool follows, HeavyHitters& current, HeavyHitters& before) {
  before = follows ? std::exchange(current, {}) : HeavyHitters();
  current = {};
}

}  // namespace

std::int64_t RecentHitters::minute_of(WallTime now) {
  return std::chrono::floor<std::chrono::minutes>(now.time_since_epoch()).count();
}

Nanoseconds RecentHitters::covered(WallTime now) {
  const auto since = now.time_since_epoch();
  return std::chrono::duration_cast<Nanoseconds>(since -
                                                 std::chrono::floor<std::chrono::minutes>(since)) +
         kMinute;
}

// A clock that is set back goes on with the minute that runs.
void RecentHitters::add(std::string_view name, std::uint64_t weight, WallTime now) {
  const std::int64_t minute = minute_of(now);
  if (minute > minute_) {
    begin_minute(minute == minute_ + 1, current_, before_);
    minute_ = minute;
  }
  current_.add(name, weight);
}

void RecentHitters::add_to(HeavyHitters& sum, WallTime now) const {
  const std::int64_t passed = minute_of(now) - minute_;
  if (passed > 1) return;
  sum.merge(current_);
  if (passed <= 0) sum.merge(before_);
}

}  // namespace encore::server
