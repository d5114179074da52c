#include "proxy/disk/cli/shown.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace encore::disk {
namespace {

struct Unit {
  std::uint64_t seconds;
  std::string_view name;
};
// Hours up to two days, days from there on: "47h" says more than "1d".
constexpr std::array kUnits = {Unit{86'400, "d"}, Unit{3600, "h"}, Unit{60, "m"}};
constexpr std::uint64_t kHoursUntil = 2 * 86'400;

}  // namespace

std::string shown_span(std::uint64_t seconds) {
  for (const Unit& unit : kUnits) {
    if (unit.name == "d" ? seconds >= kHoursUntil : seconds >= unit.seconds) {
      return std::to_string(seconds / unit.seconds) + std::string(unit.name);
    }
  }
  return std::to_string(seconds) + "s";
}

std::string shown_time(WallSeconds time) {
  using std::chrono::days;
  using std::chrono::floor;
  const std::chrono::sys_seconds moment{std::chrono::seconds(time)};
  const auto midnight = floor<days>(moment);
  const std::chrono::year_month_day date{midnight};
  const std::chrono::hh_mm_ss clock{moment - midnight};
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

}  // namespace encore::disk
