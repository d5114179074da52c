#include "proxy/disk/cli/wear.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/units.h"
#include "proxy/disk/cli/inspected_disk.h"
#include "proxy/disk/cli/shown.h"

namespace encore::disk {
namespace {

constexpr std::uint64_t kDaySeconds = 86'400;
constexpr double kDaysAYear = 365.25;
// Bytes written in less time are no rate.
constexpr std::uint64_t kRateSecondsMin = 3600;

std::string shown_years(double years) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), years < 10 ? "%.1f" : "%.0f", years);
  return years > 1000 ? "more than 1000" : std::string(text.data());
}

}  // namespace

std::optional<std::uint64_t> written_a_day(const Written& written, WallSeconds now) {
  const std::uint64_t seconds = age_at(now, written.oldest.opened_at);
  if (seconds < kRateSecondsMin) return std::nullopt;
  const auto bytes = static_cast<double>(written.newest.sequence - written.oldest.sequence) *
                         static_cast<double>(written.segment_bytes) +
                     static_cast<double>(written.newest_end);
  return static_cast<std::uint64_t>(bytes * kDaySeconds / static_cast<double>(seconds));
}

std::string shown_wear(std::uint64_t bytes_a_day, std::uint64_t rated_bytes) {
  std::string text = format_bytes(bytes_a_day) + " a day";
  if (rated_bytes == 0 || bytes_a_day == 0) return text;
  const double years =
      static_cast<double>(rated_bytes) / static_cast<double>(bytes_a_day) / kDaysAYear;
  return text + ", at which the " + format_bytes(rated_bytes) +
         " that its device is rated for last " + shown_years(years) + " years";
}

Result<std::optional<std::string>> look_at_wear(const std::string& path, std::uint64_t rated_bytes,
                                                WallSeconds now) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  const auto disk = InspectedDisk::open(path);
  if (!disk) return std::unexpected(disk.error());
  const auto headers = disk->read_headers();
  // The newest segment is not read to its end; with no other there is nothing to count.
  const auto bytes = headers.size() < 2
                         ? std::nullopt
                         : written_a_day({.newest = headers.front(),
                                          .oldest = headers.back(),
                                          .newest_end = 0,
                                          .segment_bytes = disk->superblock().segment_bytes},
                                         now);
  if (!bytes) return "unknown yet: the disk has less than an hour, or two segments, of writes";
  return shown_wear(*bytes, rated_bytes);
}

}  // namespace encore::disk
