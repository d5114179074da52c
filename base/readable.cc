#include "base/readable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace encore {

std::string about_duration(std::chrono::seconds duration) {
  constexpr std::int64_t kLeast = 120;
  struct Unit {
    std::int64_t seconds;
    char name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  std::int64_t left = duration.count();
  if (left < kLeast) return std::to_string(left) + "s";
  std::string text;
  std::size_t first = 0;
  while (left < kUnits[first].seconds) ++first;
  for (std::size_t i = first; i < std::min(first + 2, kUnits.size()); ++i) {
    const std::int64_t count = left / kUnits[i].seconds;
    left %= kUnits[i].seconds;
    if (count == 0) continue;
    text += (text.empty() ? "" : " ") + std::to_string(count) + kUnits[i].name;
  }
  return text;
}

std::string plain_number(double value, int digits) {
  constexpr int kDecimalsMax = 30;
  if (!std::isfinite(value) || value == 0) return value == 0 ? "0" : std::to_string(value);
  const int before = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
  const int decimals = std::clamp(digits - before, 0, kDecimalsMax);
  std::array<char, 400> room{};
  const int size = std::snprintf(room.data(), room.size(), "%.*f", decimals, value);
  std::string text(room.data(), static_cast<std::size_t>(size));
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace encore
