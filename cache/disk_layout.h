// How a disk of so many bytes is divided: what lies before its segments, and how many there are.
// Pure functions, thread-safe. What lies there, proxy/disk knows.
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
  std::uint64_t purge_bytes = 0;  // of each of two copies
  std::uint64_t data_offset = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t segments = 0;
  friend bool operator==(const DiskLayout&, const DiskLayout&) = default;
};

// Segments of a new disk: 64 to 127 of them, as a power of two allows, of at most 64 MiB, 256
// beyond 4 TiB; of at least 4 MiB, so that they take what large bodies lie in, where that
// leaves 32.
std::uint64_t default_segment_bytes(std::uint64_t disk_bytes);

// Divides a disk of so many bytes into segments of a size that KernelOptions takes. Errors: room
// for fewer than kDiskSegmentsMin, for more than kSegmentsMax; the message shows the sizes.
Result<DiskLayout> lay_out_disk(std::uint64_t disk_bytes, std::uint64_t segment_bytes);

// Whether a record of so many bytes, which varies by names of so many, fits a segment that has
// nothing else.
bool fits_empty_segment(std::uint64_t record_bytes, std::uint32_t names_bytes,
                        std::uint64_t segment_bytes);

// What lay_out_disk() can take at all, with segments of some size.
inline constexpr std::uint64_t kDiskBytesMin =
    2 * kSecondSuperblock + 2 * kPurgeBytesMin + kDiskSegmentsMin * kSegmentBytesMin;
inline constexpr std::uint64_t kDiskBytesMax = kSegmentsMax * kSegmentBytesMax;

}  // namespace encore::cache
