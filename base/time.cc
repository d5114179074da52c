#include "base/time.h"

#include <ctime>

namespace encore {
namespace {

Nanoseconds read_clock(clockid_t clock) noexcept {
  timespec value{};
  ::clock_gettime(clock, &value);
  return std::chrono::seconds(value.tv_sec) + Nanoseconds(value.tv_nsec);
}

}  // namespace

MonotonicTime monotonic_now() noexcept { return MonotonicTime(read_clock(CLOCK_MONOTONIC)); }

WallTime wall_now() noexcept { return WallTime(read_clock(CLOCK_REALTIME)); }

}  // namespace encore
