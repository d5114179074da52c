// Records: what a segment holds. Pure functions, thread-safe; bytes from a disk are not trusted.
//
//   header   128 bytes: "ENRC", kind, sizes, version, key's hash, variant, wall times, checksums
//   key text, names that it varies by, meta, head, checksums of the body's blocks
//   body     from the next page on where it has 256 KiB or more, else at once
//
// Those of earlier versions have it at a page from 64 KiB on: their headers have another layout
// number.
//
// A body that is longer than a record may be lies in parts, records of their own, each found by a
// key that follows from the object's and the body's number (cache/disk_parts.h); the object's own
// record is a head then. Nothing on a disk says where something else of it lies.
//
// All before the body is the front. The header's checksum covers the header alone, so that a record
// with other damage can be passed over; the front's covers the rest. Bytes between a record and the
// next have no meaning.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "cache/disk_parts.h"
#include "cache/disk_place.h"
#include "filter/hash.h"
#include "proxy/disk/format.h"

namespace encore::disk {

enum class RecordKind : std::uint8_t {
  kObject = 1,  // a stored response, with its whole body
  kPart = 2,    // a piece of a longer body; no key text, no head
  kHead = 3,    // a stored response whose body lies in parts; no byte of it here
};

// Why a record is not what was looked for, or a read failed.
enum class Damage : std::uint8_t {
  kRead,    // the device's error
  kHeader,  // none of this place and turn, or damaged
  kFront,   // its text is
  kBody,    // a block is
  kKey,     // has another key: two hash the same, or the index is wrong
};
std::string_view to_string(Damage damage);

inline constexpr std::size_t kRecordHeaderBytes = 128;
inline constexpr std::uint64_t kEarlierPageAligned = 64ULL << 10U;
inline constexpr std::uint64_t kRecordBodyMax = cache::kWholeBodyMax;
inline constexpr std::uint64_t kFrontBytesMax = 4ULL << 20U;
// Limit of a body in parts: beyond any device.
inline constexpr std::uint64_t kBodyBytesMax = 1ULL << 50U;

struct RecordFields {
  RecordKind kind = RecordKind::kObject;
  std::uint32_t part = 0;  // for kPart: its number, 0, 1, ...
  filter::Hash128 key;     // for kPart: the key that finds it, which no object has
  std::uint64_t variant = 0;
  cache::DiskVersion version = 0;
  WallSeconds fresh_until = 0;
  WallSeconds keep_until = 0;
  WallSeconds stored_at = 0;
  std::uint64_t body_bytes = 0;  // for kPart: in it; for others: in the whole body
  // For kPart and kHead: the number of the body, which no other of these disks ever had
  // (Disks::new_body_number); never 0.
  std::uint64_t body = 0;
  friend bool operator==(const RecordFields&, const RecordFields&) = default;
};

struct RecordText {
  std::string_view key;
  std::string_view names;  // at most cache::kNamesBytesMax
  std::string_view meta;
  std::string_view head;
};

// A record to write. Everything is borrowed.
struct Record {
  RecordFields fields;
  RecordText text;
  std::span<const iovec> body;  // body_bytes of them; of kHead none
};

// The sizes that determine the size of a record.
struct RecordShape {
  std::uint32_t key_bytes = 0;
  std::uint32_t names_bytes = 0;
  std::uint32_t meta_bytes = 0;
  std::uint32_t head_bytes = 0;
  std::uint64_t body_bytes = 0;  // that lie in it
  bool is_earlier = false;       // written by a version that had bodies at pages sooner
  friend bool operator==(const RecordShape&, const RecordShape&) = default;
};
RecordShape shape_of(const Record& record);

constexpr std::uint64_t front_bytes(const RecordShape& shape) {
  return kRecordHeaderBytes + std::uint64_t{shape.key_bytes} + shape.names_bytes +
         shape.meta_bytes + shape.head_bytes + kSumBytes * block_count(shape.body_bytes);
}
// Bodies of so many bytes begin at a page, so that they can be read to where they are wanted. For
// smaller ones, a page and a half of room is dearer than the copy that it saves.
constexpr std::uint64_t page_aligned_from(bool is_earlier) {
  return is_earlier ? kEarlierPageAligned : cache::kDiskPageAligned;
}
// Offset of the body from the record's begin.
constexpr std::uint64_t body_begin(const RecordShape& shape) {
  const std::uint64_t front = front_bytes(shape);
  if (shape.body_bytes < page_aligned_from(shape.is_earlier)) return front;
  return (front + kPageBytes - 1) / kPageBytes * kPageBytes;
}
// The size for the kernel, which makes space for it (cache::disk_room).
constexpr std::uint64_t record_bytes(const RecordShape& shape) {
  return body_begin(shape) + shape.body_bytes;
}
// True if there may be such a record.
bool is_sound(const RecordShape& shape);

// Writes the front, for a record that begins `offset` bytes into the segment of `salt`.
// REQUIRES: out has front_bytes(shape_of(record)); is_sound(); a part and a head have the number of
// their body, and that is at most kBodyBytesMax long.
void encode_front(const Record& record, Salt salt, std::uint64_t offset, std::span<std::byte> out);

struct RecordHeader {
  RecordFields fields;
  RecordShape shape;
  std::uint64_t front_sum = 0;
};
// Nothing: no record begins here, or its header is damaged.
std::optional<RecordHeader> decode_header(std::span<const std::byte, kRecordHeaderBytes> bytes,
                                          Salt salt, std::uint64_t offset);

// A record's front, as it was written. Views are of the bytes that it was decoded from.
struct RecordFront {
  RecordFields fields;
  RecordShape shape;
  RecordText text;
  std::span<const std::byte> block_sums;
  Salt salt = 0;
  std::uint64_t body_offset = 0;  // in the segment

  // True if these are the bytes of block i. REQUIRES: there is one; all of its bytes.
  bool is_block(std::size_t i, std::span<const std::byte> bytes) const;
  std::size_t block_bytes(std::size_t i) const;
};
// `bytes`: front_bytes(header.shape) from the record's begin.
std::expected<RecordFront, Damage> decode_front(const RecordHeader& header,
                                                std::span<const std::byte> bytes, Salt salt,
                                                std::uint64_t offset);

}  // namespace encore::disk
