// Divides a disk of N bytes: the areas before its segments, and the number of segments. Pure
// functions, thread-safe. proxy/disk knows the contents of those areas.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "cache/options.h"

namespace encore::cache {

// Bytes from the disk's beginning. Two superblocks come first, each in a page of its own.
inline constexpr std::uint64_t kSecondSuperblock = 65536;
inline constexpr std::uint64_t kPurgeBytesMin = 65536;
inline constexpr std::uint64_t kPurgeBytesMax = 256ULL << 20U;

struct DiskLayout {
  std::uint64_t purge_offset = 0;
  std::uint64_t purge_bytes = 0;  // per copy; there are two
  std::uint64_t data_offset = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t segments = 0;
  friend bool operator==(const DiskLayout&, const DiskLayout&) = default;
};

// Segments of a new disk: 64 to 127 of them, as a power of two allows, of at most 64 MiB, or 256
// MiB beyond 4 TiB. They have at least 4 MiB, so that the parts of large bodies fit, if that leaves
// 32 segments.
std::uint64_t default_segment_bytes(std::uint64_t disk_bytes);

// Divides a disk of so many bytes into segments of a size that KernelOptions takes. Errors: room
// for fewer than kDiskSegmentsMin, for more than kSegmentsMax; the message shows the sizes.
Result<DiskLayout> lay_out_disk(std::uint64_t disk_bytes, std::uint64_t segment_bytes);

// True if a record of so many bytes, which varies by names of so many, fits a segment that has
// nothing else.
bool fits_empty_segment(std::uint64_t record_bytes, std::uint32_t names_bytes,
                        std::uint64_t segment_bytes);

// The smallest and largest disks that lay_out_disk() accepts, with any size of segments.
inline constexpr std::uint64_t kDiskBytesMin =
    2 * kSecondSuperblock + 2 * kPurgeBytesMin + kDiskSegmentsMin * kSegmentBytesMin;
inline constexpr std::uint64_t kDiskBytesMax = kSegmentsMax * kSegmentBytesMax;

}  // namespace encore::cache
