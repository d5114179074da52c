#include "cache/disk_layout.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/units.h"

namespace encore::cache {
namespace {

// Alignment of segments, so that they begin at the borders of the blocks that a device erases.
constexpr std::uint64_t kDataAlign = kMiB;

// Two or three segments of a disk hold nothing: the one that is filled and those that are free. So
// there shall be many, and still each takes a part of a large body (kPartBytes), for what takes no
// part bounds the objects of the disk. On the smallest disks there are at least a few. Why there
// are many: docs/decisions/0426.
constexpr std::uint64_t kManySegments = 64;
constexpr std::uint64_t kFewSegments = 32;
constexpr std::uint64_t kTakesParts = 4 * kMiB;

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

// A thousandth of the disk: a purged key takes 33 bytes of it, an object 10 KiB and more.
std::uint64_t purge_bytes_of(std::uint64_t disk_bytes) {
  return std::clamp(round_up(disk_bytes / 1024, kDiskPage), kPurgeBytesMin, kPurgeBytesMax);
}

std::uint64_t data_offset_of(std::uint64_t disk_bytes, std::uint64_t segment_bytes) {
  return round_up(2 * kSecondSuperblock + 2 * purge_bytes_of(disk_bytes),
                  std::min(segment_bytes, kDataAlign));
}

// Returns the size of a disk with N segments. The area before the segments grows with the size, but
// far less.
std::uint64_t disk_bytes_of(std::uint64_t segments, std::uint64_t segment_bytes) {
  std::uint64_t bytes = 0;
  std::uint64_t last = 0;
  do {
    last = bytes;
    bytes = data_offset_of(last, segment_bytes) + segments * segment_bytes;
  } while (bytes != last);
  return bytes;
}

// A bound must read back as it is, not rounded.
std::string shown(std::uint64_t bytes) {
  std::string text = format_bytes(bytes);
  return parse_bytes(text) == bytes ? text : std::to_string(bytes) + " bytes";
}

}  // namespace

std::uint64_t default_segment_bytes(std::uint64_t disk_bytes) {
  if (disk_bytes > 4 * kTiB) return 256 * kMiB;
  const std::uint64_t many = std::bit_floor(std::max<std::uint64_t>(1, disk_bytes / kManySegments));
  const std::uint64_t few = std::bit_floor(std::max<std::uint64_t>(1, disk_bytes / kFewSegments));
  return std::clamp(std::max(many, std::min(few, kTakesParts)), kSegmentBytesMin, 64 * kMiB);
}

Result<DiskLayout> lay_out_disk(std::uint64_t disk_bytes, std::uint64_t segment_bytes) {
  const std::uint64_t data_offset = data_offset_of(disk_bytes, segment_bytes);
  const std::uint64_t segments =
      disk_bytes < data_offset ? 0 : (disk_bytes - data_offset) / segment_bytes;
  if (segments < kDiskSegmentsMin) {
    return fail("a disk of " + shown(disk_bytes) + " is too small: accepted are " +
                shown(disk_bytes_of(kDiskSegmentsMin, segment_bytes)) + " and more");
  }
  if (segments > kSegmentsMax) {
    return fail("a disk of " + shown(disk_bytes) + " is too large: accepted are " +
                shown(disk_bytes_of(kSegmentsMax, segment_bytes)) + " and less");
  }
  return DiskLayout{.purge_offset = 2 * kSecondSuperblock,
                    .purge_bytes = purge_bytes_of(disk_bytes),
                    .data_offset = data_offset,
                    .segment_bytes = segment_bytes,
                    .segments = static_cast<std::uint32_t>(segments)};
}

bool fits_empty_segment(std::uint64_t record_bytes, std::uint32_t names_bytes,
                        std::uint64_t segment_bytes) {
  if (record_bytes > segment_bytes) return false;
  const FooterContent footer{.records = 1,
                             .names_bytes = names_bytes == 0 ? 0 : kFooterNameBytes + names_bytes};
  return std::max(kSegmentHeaderBytes, kDiskPage) + disk_room(record_bytes) +
             footer_bytes(footer) <=
         segment_bytes;
}

}  // namespace encore::cache
