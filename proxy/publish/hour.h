// Hour: an hour of the calendar, in UTC, as the resources name it. Values, pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace encore::publish {

struct Hour {
  std::int64_t number = 0;  // whole hours since 1970-01-01 00:00 UTC
  friend auto operator<=>(const Hour&, const Hour&) = default;
};

constexpr Hour hour_of(WallTime time) noexcept {
  return {std::chrono::floor<std::chrono::hours>(time.time_since_epoch()).count()};
}
constexpr WallTime start_of(Hour hour) noexcept {
  return WallTime(std::chrono::hours(hour.number));
}
constexpr Hour after(Hour hour, std::int64_t hours = 1) noexcept { return {hour.number + hours}; }

// That of 2261-12-31: there are years after it that a path can name, but WallTime ends in April.
inline constexpr Hour kLastHour{2'559'623};

// "2026/11/22/19". REQUIRES: the years 1970 to 9999.
std::string to_path(Hour hour);
// Reads exactly that; nothing where it is no hour of the calendar.
std::optional<Hour> parse_hour(std::string_view path) noexcept;

}  // namespace encore::publish
