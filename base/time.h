// The two times of the house. MonotonicTime is for ages, timers and expiry; WallTime is for HTTP
// dates, logs and saved state only. They do not convert into each other by accident.
//
// Pure code (filter, cache, config, proxy/http, most of sim) takes `now` and never calls the
// clocks below; the event loop reads each clock at most once an event.
#pragma once

#include <chrono>
#include <cstdint>

namespace encore {

using Nanoseconds = std::chrono::nanoseconds;

// Tags: they have no now() of their own, so that a reading is always an explicit call.
struct MonotonicTag {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Nanoseconds;
  static constexpr bool is_steady = true;
};
struct WallTag {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = Nanoseconds;
  static constexpr bool is_steady = false;
};

// Nanoseconds since an arbitrary start (the machine's boot).
using MonotonicTime = std::chrono::time_point<MonotonicTag, Nanoseconds>;
// Nanoseconds since 1970-01-01 00:00:00 UTC.
using WallTime = std::chrono::time_point<WallTag, Nanoseconds>;

// Reads CLOCK_MONOTONIC.
MonotonicTime monotonic_now() noexcept;
// Reads CLOCK_REALTIME.
WallTime wall_now() noexcept;

}  // namespace encore
