// HTTP dates (RFC 9110 5.6.7), whole seconds since 1970 UTC. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/http_date.h"
#include "base/time.h"

namespace encore::http {

// Seconds since 1970-01-01 00:00:00 UTC.
using UnixSeconds = std::int64_t;
// No such date.
inline constexpr UnixSeconds kNoDate = INT64_MIN;

// The second that `time` lies in.
constexpr UnixSeconds to_unix(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Reads IMF-fixdate, RFC 850 and asctime dates: names of days, months and GMT in any case,
// everything else exactly as the grammar has it. A two-digit year that would lie more than 50
// years ahead of `now` is in the past. The name of the day is checked to be one, not to agree. A
// second of 60 counts as the next minute's first.
std::optional<UnixSeconds> parse_date(std::string_view text, UnixSeconds now) noexcept;

// "Sun, 06 Nov 1994 08:49:37 GMT"
inline constexpr std::size_t kDateBytes = kHttpDateBytes;
// REQUIRES: years 0 to 9999.
inline void write_date(UnixSeconds time, std::span<char, kDateBytes> out) noexcept {
  write_http_date(time, out);
}

}  // namespace encore::http
