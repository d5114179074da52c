#include "base/http_date.h"

#include <algorithm>
#include <chrono>

namespace encore {
namespace {

constexpr std::array<std::string_view, 7> kDayNames = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};

char* put(char* out, std::string_view text) noexcept { return std::ranges::copy(text, out).out; }

char* put_two(char* out, std::int64_t value) noexcept {
  *out++ = static_cast<char>('0' + value / 10);
  *out++ = static_cast<char>('0' + value % 10);
  return out;
}

}  // namespace

void write_http_date(std::int64_t time, std::span<char, kHttpDateBytes> out) noexcept {
  const std::chrono::sys_seconds instant{std::chrono::seconds(time)};
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::int64_t second = (instant - day).count();
  const int year = static_cast<int>(date.year());
  char* p = put(out.data(), kDayNames[std::chrono::weekday(day).c_encoding()]);
  p = put_two(put(p, ", "), static_cast<unsigned>(date.day()));
  p = put(put(p, " "), kMonthNames[static_cast<unsigned>(date.month()) - 1]);
  p = put_two(put_two(put(p, " "), year / 100), year % 100);
  p = put_two(put(p, " "), second / 3600);
  p = put_two(put(p, ":"), second / 60 % 60);
  p = put_two(put(p, ":"), second % 60);
  put(p, " GMT");
}

}  // namespace encore
