// HTTP dates as they are sent (RFC 9110 5.6.7). Pure, thread-safe. To read one: proxy/http/date.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace encore {

// As HTTP and the logs of all servers write them.
inline constexpr std::array<std::string_view, 12> kMonthNames = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// "Sun, 06 Nov 1994 08:49:37 GMT"
inline constexpr std::size_t kHttpDateBytes = 29;
// `time` is in seconds since 1970-01-01 00:00:00 UTC. REQUIRES: years 0 to 9999.
void write_http_date(std::int64_t time, std::span<char, kHttpDateBytes> out) noexcept;

}  // namespace encore
