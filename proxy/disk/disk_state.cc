#include "proxy/disk/disk_state.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "proxy/disk/record_reader.h"

namespace encore::disk {

WallSeconds DiskClocks::wall_seconds() const {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(wall().time_since_epoch()).count();
  return static_cast<WallSeconds>(
      std::clamp<std::int64_t>(seconds, 0, std::numeric_limits<WallSeconds>::max()));
}

MonotonicTime monotonic_of(WallSeconds time, MonotonicTime now, WallTime wall) {
  if (time == std::numeric_limits<WallSeconds>::max()) return MonotonicTime::max();
  // 32 bits of seconds, and a clock that counts nanoseconds in 64 bits: 136 years of 292.
  const Nanoseconds since = std::chrono::seconds(time) - wall.time_since_epoch();
  const Nanoseconds begin = now.time_since_epoch();
  if (since > Nanoseconds::max() - begin) return MonotonicTime::max();
  return std::max(MonotonicTime{}, MonotonicTime(begin + since));
}

std::uint64_t DiskState::oldest_sequence() const {
  std::uint64_t oldest = 0;
  for (const auto& each : sequences_) {
    const std::uint64_t sequence = each.load();
    if (sequence != 0 && (oldest == 0 || sequence < oldest)) oldest = sequence;
  }
  return oldest;
}

void DiskState::take_offline() {
  if (is_offline_.exchange(true)) return;
  common->kernel.use(
      [&](cache::Kernel& kernel) { kernel.take_offline(number, common->clocks.monotonic()); });
}

bool DiskState::lose(const filter::Hash128& key, const cache::DiskPlace& place) {
  const auto tombstone = common->kernel.use([&](cache::Kernel& kernel) {
    return kernel.lost({key, {}}, place, common->clocks.monotonic());
  });
  if (tombstone) common->add_tombstone(key, tombstone);
  return static_cast<bool>(tombstone);
}

std::optional<cache::DiskVersion> DiskState::version_at(const cache::DiskPlace& place,
                                                        const filter::Hash128& key) {
  const cache::DiskPlace where = moves.begin_reading(place);
  RecordReader reader(file, superblock);
  const auto front = reader.open({.place = where, .sequence = sequence(where.segment), .key = key});
  const auto version = front ? std::optional((*front)->fields.version) : std::nullopt;
  readings.end(where);
  return version;
}

}  // namespace encore::disk
