// Times for the tables: a wall clock and a monotonic one that began far apart.
#pragma once

#include <array>
#include <string>

#include "proxy/http/date.h"
#include "proxy/http/freshness.h"

namespace encore::http {

inline constexpr UnixSeconds kNow = 1'790'000'000;
inline constexpr MonotonicTime kArrived{std::chrono::hours(100)};

inline std::string date_text(UnixSeconds time) {
  std::array<char, kDateBytes> text{};
  write_date(time, text);
  return {text.data(), text.size()};
}

// An exchange that took `delay` and whose response arrived half a second into kNow.
inline Exchange exchange(Nanoseconds delay = Nanoseconds(0)) {
  return {.response_wall = WallTime(std::chrono::seconds(kNow) + std::chrono::milliseconds(500)),
          .response_time = kArrived,
          .request_time = kArrived - delay};
}

}  // namespace encore::http
