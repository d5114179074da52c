// How the commands of `encore disk` show times, and paths in what they print. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "proxy/disk/format.h"

namespace encore::disk {

// The largest unit of which there is one at least, rounded down: "0s", "59s", "12m", "47h", "3d".
std::string shown_span(std::uint64_t seconds);
// "2026-11-23 07:28:30 UTC"
std::string shown_time(WallSeconds time);
// So many seconds have passed since; 0 where it lies ahead.
constexpr std::uint64_t age_at(WallSeconds now, WallSeconds then) {
  return now > then ? now - then : 0;
}

}  // namespace encore::disk
