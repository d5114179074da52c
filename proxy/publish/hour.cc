#include "proxy/publish/hour.h"

#include <array>
#include <cstdio>

namespace encore::publish {
namespace {

constexpr std::string_view kPattern = "dddd/dd/dd/dd";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

unsigned number_at(std::string_view text, std::size_t begin, std::size_t digits) noexcept {
  unsigned number = 0;
  for (const char c : text.substr(begin, digits))
    number = 10 * number + static_cast<unsigned>(c - '0');
  return number;
}

}  // namespace

std::string to_path(Hour hour) {
  const auto whole = std::chrono::sys_time<std::chrono::hours>(std::chrono::hours(hour.number));
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d/%02u/%02u/%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>((whole - day).count()));
  return text.data();
}

std::optional<Hour> parse_hour(std::string_view path) noexcept {
  if (path.size() != kPattern.size()) return std::nullopt;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (kPattern[i] == 'd' ? !is_digit(path[i]) : path[i] != kPattern[i]) return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number_at(path, 0, 4))),
                                         std::chrono::month(number_at(path, 5, 2)),
                                         std::chrono::day(number_at(path, 8, 2)));
  const unsigned hour = number_at(path, 11, 2);
  constexpr std::chrono::year kFirst(1970);
  if (!date.ok() || date.year() < kFirst || hour > 23) return std::nullopt;
  const auto hours = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour);
  return Hour{std::chrono::duration_cast<std::chrono::hours>(hours).count()};
}

}  // namespace encore::publish
