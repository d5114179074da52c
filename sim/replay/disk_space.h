// DiskSpace: the use of the bytes of a replay's disk. It receives each placement and move, and each
// segment that is free again. Thread-compatible.
//
// Memory: 16 bytes a record.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cache/disk_place.h"
#include "cache/statistics.h"

namespace encore::sim {

class DiskSpace {
 public:
  // All but dead_bytes together are the disks.
  struct Sums {
    std::uint64_t body_bytes = 0;
    std::uint64_t beside_bytes = 0;     // in records, except bodies: heads, checksums, rounding
    std::uint64_t gap_bytes = 0;        // between records that begin at pages, and before them
    std::uint64_t described_bytes = 0;  // headers of segments, footers
    std::uint64_t unfilled_bytes = 0;   // no record fitted, or will come yet
    std::uint64_t free_bytes = 0;       // whole segments
    std::uint64_t dead_bytes = 0;       // in records that were rewritten or left the index
  };

  void placed(const cache::DiskPlace& place, std::uint64_t body_bytes);
  void moved(const cache::DiskPlace& from, const cache::DiskPlace& to);
  void freed(std::uint16_t disk, std::uint32_t segment) { segments_.erase({disk, segment}); }
  // REQUIRES: statistics of the disks whose placements it received.
  Sums sums(const cache::DiskStatistics& disks) const;

 private:
  struct Record {
    std::uint32_t unit = 0;
    std::uint32_t room_units = 0;
    std::uint64_t body_bytes = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<Record>> segments_;  // as they lie
};

}  // namespace encore::sim
