// How much is written to a disk, and for how long its device bears that. Blocks in the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "proxy/disk/format.h"

namespace encore::disk {

// Bytes a day since `oldest` was opened, by the segments opened after it and the `newest_end` bytes
// of the newest one. Nothing: that is less than an hour ago.
struct Written {
  SegmentHeader newest;
  SegmentHeader oldest;
  std::uint64_t newest_end = 0;
  std::uint64_t segment_bytes = 0;
};
std::optional<std::uint64_t> written_a_day(const Written& written, WallSeconds now);

// A sentence for --check-config and `encore disk stat`. `rated_bytes`: of the device, 0 where that
// is not known. "4.9MiB a day, at which the 150TiB that its device is rated for last 83000 years".
std::string shown_wear(std::uint64_t bytes_a_day, std::uint64_t rated_bytes);

// The same of the disk at `path` as it is now, or that it is not known; nothing where none is
// there. Errors: it cannot be looked at.
Result<std::optional<std::string>> look_at_wear(const std::string& path, std::uint64_t rated_bytes,
                                                WallSeconds now);

}  // namespace encore::disk
