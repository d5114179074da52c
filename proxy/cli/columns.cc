#include "proxy/cli/columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace encore::cli {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (cell == "-" || (cell[0] >= '0' && cell[0] <= '9'));
}

std::string cut(const std::string& cell, std::size_t most) {
  if (cell.size() <= most) return cell;
  return cell.substr(0, most - 3) + "...";
}

}  // namespace

std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t first_max) {
  if (rows.empty()) return {};
  const std::size_t count = rows.front().size();
  std::vector<std::size_t> widths(count, 0);
  std::vector<bool> right(count, true);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& cell = rows[row][i];
      widths[i] = std::max(widths[i], i == 0 ? std::min(cell.size(), first_max) : cell.size());
      if (row != 0 && !is_number(cell)) right[i] = false;
    }
  }
  right[0] = false;
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string cell = i == 0 ? cut(row[i], first_max) : row[i];
      const std::string space(widths[i] - cell.size(), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? space + cell : cell + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string short_number(double value) {
  constexpr double kTen = 10;
  constexpr double kHundred = 100;
  if (value >= kHundred || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return value >= kTen ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string short_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kStep = 1024;
  std::size_t unit = 0;
  while (bytes >= kStep && unit + 1 < kUnits.size()) {
    bytes /= kStep;
    ++unit;
  }
  return short_number(unit == 0 ? std::round(bytes) : bytes) + std::string(kUnits[unit]);
}

std::string short_seconds(double seconds) {
  constexpr double kMilli = 1e3;
  return seconds < 1 ? short_number(seconds * kMilli) + " ms" : short_number(seconds) + " s";
}

}  // namespace encore::cli
