// How a disk begins, and each of its segments. Pure functions, thread-safe; every number is
// little-endian and of fixed width.
//
//   0          superblock: a page; a copy of it at kSecondSuperblock
//   purges     two copies of the purge log (purge_log.h), purge_bytes each
//   data       the segments, segment_bytes each: a header (a page), records (record.h), and at the
//              segment's very end its footer (footer.h)
//
//   superblock  "ENCODISK"  version  generation  uuid  identity seed  purge offset  purge bytes
//               data offset  segment bytes  segments  made at  number of the newest run
//               runs  of them valid from  zeros  the runs (runs.h)  zeros  checksum
//   header      "ENCOSEGM"  number  sequence  versions seen  opened at  zeros  checksum
//
// Both are in a page's first sector, 512 bytes, which a device writes whole or not at all; the rest
// of the page is zeros and not looked at.
//
// In all versions of the format the magic, the version behind it and the checksum stay where they
// are, so that a newer one is known as such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "cache/disk_layout.h"
#include "cache/disk_place.h"
#include "filter/hash.h"
#include "proxy/disk/checksum.h"
#include "proxy/disk/runs.h"

namespace encore::disk {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kPageBytes = cache::kDiskPage;
inline constexpr std::size_t kSectorBytes = 512;
using cache::kPurgeBytesMax;
using cache::kPurgeBytesMin;
using cache::kSecondSuperblock;

using Page = std::span<std::byte, kPageBytes>;
using ConstPage = std::span<const std::byte, kPageBytes>;

// No disk gets to a higher version or sequence; what says so was not written by us.
inline constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 55U;

// Whole seconds since 1970-01-01 00:00:00 UTC, until 2106.
using WallSeconds = std::uint32_t;

struct Superblock {
  std::uint64_t generation = 1;  // the higher of two valid copies is the newer
  Uuid uuid;
  filter::Seed identity_seed;  // seed of the keys' hashes: secret
  std::uint64_t purge_offset = 0;
  std::uint64_t purge_bytes = 0;  // size of each copy
  std::uint64_t data_offset = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t segments = 0;
  WallSeconds made_at = 0;
  RunHistory runs;  // empty: an earlier version had it last

  std::uint64_t segment_offset(std::uint32_t segment) const {
    return data_offset + segment * segment_bytes;
  }
  std::uint64_t disk_bytes() const { return segment_offset(segments); }
  Salt salt(std::uint32_t segment, std::uint64_t sequence) const {
    return salt_of(uuid, segment, sequence);
  }
  friend bool operator==(const Superblock&, const Superblock&) = default;
};

// Divides a disk of so many bytes; identity and times are left to the caller. Errors: as
// cache::lay_out_disk().
Result<Superblock> lay_out(std::uint64_t disk_bytes, std::uint64_t segment_bytes);

// How many segments of a disk as it is fit into so many bytes.
std::uint64_t segments_in(const Superblock& superblock, std::uint64_t disk_bytes);

enum class PageKind : std::uint8_t {
  kOurs,
  kBlank,    // zeros
  kForeign,  // anything else
  kNewer,    // has a later version
  kDamaged,  // ours once
};

struct DecodedSuperblock {
  PageKind kind = PageKind::kForeign;
  std::uint32_t version = 0;  // for kOurs and kNewer
  Superblock superblock;      // for kOurs
};

// `offset`: where the copy lies.
void encode(const Superblock& superblock, std::uint64_t offset, Page out);
DecodedSuperblock decode_superblock(ConstPage page, std::uint64_t offset);

struct SegmentHeader {
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;
  // The highest version that had been written to the disk when the segment was opened.
  cache::DiskVersion versions_seen = 0;
  WallSeconds opened_at = 0;
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

void encode(const SegmentHeader& header, const Uuid& disk, Page out);
// Nothing: never opened, of another disk or another place, damaged.
std::optional<SegmentHeader> decode_segment_header(ConstPage page, const Uuid& disk,
                                                   std::uint32_t segment);
// Returns the kind of a page that begins a segment. Foreign includes pages of an earlier disk;
// damaged are pages written since this disk was made.
PageKind kind_of_header(ConstPage page, const Superblock& superblock, std::uint32_t segment);

}  // namespace encore::disk
