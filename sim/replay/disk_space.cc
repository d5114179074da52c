#include "sim/replay/disk_space.h"

#include <algorithm>

#include "base/check.h"

namespace encore::sim {

void DiskSpace::placed(const cache::DiskPlace& place, std::uint64_t body_bytes) {
  segments_[{place.disk, place.segment}].push_back(
      {.unit = place.unit,
       .room_units = static_cast<std::uint32_t>(place.bytes / cache::kDiskUnit),
       .body_bytes = body_bytes});
}

void DiskSpace::moved(const cache::DiskPlace& from, const cache::DiskPlace& to) {
  const auto& records = segments_[{from.disk, from.segment}];
  const auto record = std::ranges::lower_bound(records, from.unit, {}, &Record::unit);
  ENCORE_CHECK(record != records.end() && record->unit == from.unit, "what moves was placed");
  placed(to, record->body_bytes);
}

DiskSpace::Sums DiskSpace::sums(const cache::DiskStatistics& disks) const {
  Sums sums;
  std::uint64_t room = 0;
  std::uint64_t live = 0;
  for (const cache::DiskStatistics::Disk& disk : disks.disks) {
    sums.free_bytes += disk.segments * disk.segment_bytes;  // those that hold something: see below
    live += disk.live_bytes;
  }
  for (const auto& [number, records] : segments_) {
    const std::uint64_t segment_bytes = disks.disks[number.first].segment_bytes;
    const std::uint64_t footer =
        cache::footer_bytes({.records = static_cast<std::uint32_t>(records.size())});
    std::uint64_t end = cache::kSegmentHeaderBytes;
    for (const Record& record : records) {
      const std::uint64_t begin = std::uint64_t{record.unit} * cache::kDiskUnit;
      const std::uint64_t bytes = std::uint64_t{record.room_units} * cache::kDiskUnit;
      sums.gap_bytes += begin - end;
      sums.body_bytes += record.body_bytes;
      room += bytes;
      end = begin + bytes;
    }
    sums.described_bytes += cache::kSegmentHeaderBytes + footer;
    sums.unfilled_bytes += segment_bytes - end - footer;
    sums.free_bytes -= segment_bytes;
  }
  sums.beside_bytes = room - sums.body_bytes;
  sums.dead_bytes = room - live;
  return sums;
}

}  // namespace encore::sim
