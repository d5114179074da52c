// The place of a record on a disk. A disk is a row of segments of one size; a segment is a header,
// records and, at its very end, a footer; a record lies in one segment. The kernel decides places,
// as a pure function of the order of its calls; writers obey them. Values.
#pragma once

#include <bit>
#include <cstdint>

namespace encore::cache {

inline constexpr std::uint32_t kDiskUnit = 64;  // records begin at multiples of it
// Footers begin at multiples of it, and records of at least kDiskPageAligned bytes. Why smaller
// records need no page: docs/decisions/0427.
inline constexpr std::uint32_t kDiskPage = 4096;
inline constexpr std::uint64_t kDiskPageAligned = 256ULL << 10U;
inline constexpr std::uint32_t kSegmentHeaderBytes = 4096;
inline constexpr std::uint64_t kSegmentBytesMin = 64ULL << 10U;  // powers of two
inline constexpr std::uint64_t kSegmentBytesMax = 256ULL << 20U;
inline constexpr std::uint32_t kDisksMax = 16;
inline constexpr std::uint32_t kSegmentsMax = 1U << 20U;  // per disk

// The footer: a head and its checksum, a line a record, and the texts of the names that records of
// this segment vary by, each with its number and length.
inline constexpr std::uint32_t kFooterHeadBytes = 64;
inline constexpr std::uint32_t kFooterEntryBytes = 48;
inline constexpr std::uint32_t kFooterNameBytes = 4;   // in addition to the text
inline constexpr std::uint32_t kDiskNamesMax = 4096;   // texts, over all disks; number 0: no Vary
inline constexpr std::uint32_t kNamesBytesMax = 1024;  // per text

// Bytes of the footer of a segment with so many records, and so many bytes of names (the texts and
// kFooterNameBytes for each): a multiple of kDiskPage.
struct FooterContent {
  std::uint32_t records = 0;
  std::uint32_t names_bytes = 0;
};
constexpr std::uint64_t footer_bytes(const FooterContent& content) {
  const std::uint64_t bytes =
      kFooterHeadBytes + content.names_bytes + std::uint64_t{kFooterEntryBytes} * content.records;
  return (bytes + kDiskPage - 1) / kDiskPage * kDiskPage;
}

// The room that a record of so many bytes takes: a multiple of kDiskUnit with at most
// kRoomDigits binary digits, so that the index keeps it in two bytes. Exact up to 128 KiB, at most
// 1/1024 more beyond that.
inline constexpr int kRoomDigits = 11;
constexpr std::uint64_t disk_room(std::uint64_t bytes) {
  std::uint64_t units = (bytes + kDiskUnit - 1) / kDiskUnit;
  const int excess = static_cast<int>(std::bit_width(units)) - kRoomDigits;
  if (excess > 0) {
    const std::uint64_t step = std::uint64_t{1} << static_cast<unsigned>(excess);
    units = (units + step - 1) / step * step;
  }
  return units * kDiskUnit;
}

struct DiskPlace {
  std::uint16_t disk = 0;
  std::uint32_t segment = 0;
  std::uint32_t unit = 0;   // offset in the segment / kDiskUnit
  std::uint64_t bytes = 0;  // the room: disk_room() of the record's size; what is over stays as is

  constexpr std::uint64_t offset() const { return std::uint64_t{unit} * kDiskUnit; }
  friend bool operator==(const DiskPlace&, const DiskPlace&) = default;
};

// A segment was opened anew, with this sequence number: 1, 2, ... a disk, so that the lowest of a
// disk is its oldest. Told with the first place in it; all places before it on that disk are full.
struct SegmentTurn {
  std::uint16_t disk = 0;
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;  // 0: none was opened

  friend bool operator==(const SegmentTurn&, const SegmentTurn&) = default;
};

// The number of the commit that placed a record: 1, 2, ... over all disks. A record that is moved
// keeps it; of two records of a key and variant the higher version is the newer.
using DiskVersion = std::uint64_t;

}  // namespace encore::cache
