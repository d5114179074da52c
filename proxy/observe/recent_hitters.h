// RecentHitters: the names with the most weight of the last one to two minutes, in bounded memory:
// a sketch of the minute that runs, and one of the minute before it. Thread-compatible; it receives
// the time.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "proxy/observe/heavy_hitters.h"

namespace encore::server {

class RecentHitters {
 public:
  static constexpr Nanoseconds kMinute = std::chrono::minutes(1);

  void add(std::string_view name, std::uint64_t weight, WallTime now);
  // Adds both minutes to `sum`.
  void add_to(HeavyHitters& sum, WallTime now) const;
  // The time that a sum at `now` covers: from the beginning of the minute before.
  static Nanoseconds covered(WallTime now);

 private:
  // Minutes since 1970.
  static std::int64_t minute_of(WallTime now);

  std::int64_t minute_ = 0;  // that `current_` counts
  HeavyHitters current_;
  HeavyHitters before_;  // the minute before that
};

}  // namespace encore::server
