// RecordReader: reads one record, and trusts none of its bytes before they are verified: header,
// front and key before the first byte of the body, each block of it before that is shown. A small
// record is one read; of a longer one the first window has 256 KiB, each later one 1 MiB.
//
// A caller that wants only a piece of a record can read its front alone, and then exactly the
// blocks with that piece: Wanted::first_bytes.
//
// Blocks in the device. Thread-compatible: any one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/disk_place.h"
#include "filter/hash.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"
#include "proxy/disk/record.h"

namespace encore::disk {

class RecordReader {
 public:
  static constexpr std::size_t kFirstWindowBytes = 256U << 10U;
  static constexpr std::size_t kWindowBytes = 1U << 20U;

  // `file` is borrowed.
  RecordReader(File& file, const Superblock& superblock) : file_(file), superblock_(superblock) {}

  struct Wanted {
    cache::DiskPlace place;
    std::uint64_t sequence = 0;          // its segment's, when the record was placed
    std::optional<filter::Hash128> key;  // nothing: whichever
    std::string_view key_text = {};      // empty: not compared
    // Read with the front, in whole pages and at most a window.
    std::size_t first_bytes = kFirstWindowBytes;
    // Not empty: the front's first page is read alone, and in the same call the bytes after it,
    // which are the body if it is long, into this memory. Aligned (kIoAlign), whole pages; the
    // caller's until read_room().
    std::span<std::byte> body_room = {};
  };
  // Wanted::first_bytes for the front of a part alone: it is shorter.
  static constexpr std::size_t kPartFrontBytes = kPageBytes;
  // The record's front; its views stay until the next open().
  std::expected<const RecordFront*, Damage> open(const Wanted& wanted);

  // Verified bytes of the body from `begin` on: at least one, not beyond `end`, and at most a
  // window. They stay until the next call. REQUIRES: open() went well; begin < end <= the bytes
  // that lie in this record.
  std::expected<std::span<const std::byte>, Damage> read(std::uint64_t begin, std::uint64_t end);
  // The same into memory of the caller's, and how many: whole blocks, and the last one. Without a
  // copy where the body begins with a page, the memory is aligned (kIoAlign), and has room for
  // whole pages; what is in it behind those bytes is of no meaning. REQUIRES: `begin` is a multiple
  // of kBlockBytes; room for a block, or what is left.
  std::expected<std::size_t, Damage> read_into(std::uint64_t begin, std::span<std::byte> out);

  // Returns the number of verified bytes of the body, from its first, in Wanted::body_room: whole
  // blocks, or the whole body. None if it lies otherwise. Bytes behind them have no meaning.
  // REQUIRES: open() went well.
  std::expected<std::size_t, Damage> read_room() const;

  // Error of the last Damage::kRead.
  const std::string& error() const { return error_; }

 private:
  // Bytes of the segment, in memory.
  struct Window {
    AlignedBuffer memory;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::span<const std::byte> bytes(std::uint64_t from, std::uint64_t size) const {
      return {memory.data() + (from - begin), static_cast<std::size_t>(size)};
    }
  };
  static_assert(kRecordBodyMax / kBlockBytes <= 64, "a bit for each block");
  // A run of the body's blocks.
  struct Blocks {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  std::expected<void, Damage> load(Window& window, std::uint64_t begin, std::uint64_t end);
  std::expected<void, Damage> load_first(const Wanted& wanted);
  std::expected<void, Damage> load_front(const Wanted& wanted);
  std::expected<void, Damage> verify(Blocks blocks, std::span<const std::byte> bytes) const;
  // Begin and end of block i in the segment.
  std::uint64_t begin_of(std::size_t block) const;
  std::uint64_t end_of(std::size_t block) const;
  std::expected<std::span<const std::byte>, Damage> read_first(std::uint64_t begin,
                                                               std::uint64_t end);

  File& file_;
  Superblock superblock_;
  std::uint64_t segment_offset_ = 0;
  std::uint64_t record_offset_ = 0;  // in the segment
  std::uint64_t room_ = 0;
  Salt salt_ = 0;
  Window first_;                          // with the front
  std::uint64_t first_verified_ = 0;      // a bit for each block of the body
  std::span<const std::byte> body_room_;  // with what follows the first page
  Window later_;                          // for the body alone
  Blocks later_blocks_;                   // verified
  RecordFront front_;
  std::string error_;
};

}  // namespace encore::disk
