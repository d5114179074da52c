#include "base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace encore {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array kByteUnits = {
    Unit{"", 1},         Unit{"b", 1},        Unit{"kib", 1024.0}, Unit{"mib", 0x1p20},
    Unit{"gib", 0x1p30}, Unit{"tib", 0x1p40}, Unit{"kb", 1e3},     Unit{"mb", 1e6},
    Unit{"gb", 1e9},     Unit{"tb", 1e12},
};

constexpr std::array kDurationUnits = {
    Unit{"ns", 1},   Unit{"us", 1e3},   Unit{"ms", 1e6},    Unit{"s", 1e9},
    Unit{"m", 60e9}, Unit{"h", 3600e9}, Unit{"d", 86400e9},
};

constexpr double kInt64Limit = 0x1p63;

struct Quantity {
  double number;
  std::string unit;  // lower case, without white space around it
};

Result<Quantity> split_quantity(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return fail("empty");
  text.remove_prefix(first);
  double number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (status != std::errc{} || !std::isfinite(number)) return fail("not a number");
  if (number < 0 || std::signbit(number)) return fail("negative");
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::tolower(c); });
  return Quantity{number, std::move(unit)};
}

template <std::size_t N>
Result<std::int64_t> parse_quantity(std::string_view text, const std::array<Unit, N>& units,
                                    std::string_view accepted) {
  const auto describe = [&](std::string_view what) {
    return fail("\"" + std::string(text) + "\" is " + std::string(what) +
                "; accepted: " + std::string(accepted));
  };
  auto quantity = split_quantity(text);
  if (!quantity) return describe(quantity.error().message);
  const auto unit = std::ranges::find(units, quantity->unit, &Unit::name);
  if (unit == units.end()) {
    return describe(quantity->unit.empty() ? "without a unit" : "of an unknown unit");
  }
  const double scaled = std::round(quantity->number * unit->scale);
  if (scaled >= kInt64Limit) return describe("too large");
  return static_cast<std::int64_t>(scaled);
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto value =
      parse_quantity(text, kByteUnits, "a number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB");
  if (!value) return std::unexpected(value.error());
  return static_cast<std::uint64_t>(*value);
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 48> text{};
  const bool whole = value == std::floor(value);
  std::snprintf(text.data(), text.size(), whole ? "%.0f%s" : "%.1f%s", value, kNames.at(unit));
  return text.data();
}

Result<Nanoseconds> parse_duration(std::string_view text) {
  if (text == "0") return Nanoseconds(0);
  const auto value = parse_quantity(text, kDurationUnits, "a number with ns, us, ms, s, m, h or d");
  if (!value) return std::unexpected(value.error());
  return Nanoseconds(*value);
}

std::string format_duration(Nanoseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (auto unit = kDurationUnits.rbegin(); unit != kDurationUnits.rend(); ++unit) {
    const auto scale = static_cast<std::int64_t>(unit->scale);
    if (count % scale == 0) return std::to_string(count / scale) + std::string(unit->name);
  }
  return std::to_string(count) + "ns";
}

}  // namespace encore
