// SegmentBytes: reads a segment from its beginning to its end, a window at a time, and the records
// in it as they come. Blocks in the device; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"
#include "proxy/disk/record.h"

namespace encore::disk {

class SegmentBytes {
 public:
  static constexpr std::uint64_t kWindowBytes = 1U << 20U;
  // `file` is borrowed. `window_bytes`: size of one read at least, a multiple of kPageBytes.
  SegmentBytes(File& file, const Superblock& superblock, std::uint32_t segment,
               std::uint64_t window_bytes = kWindowBytes)
      : file_(file),
        offset_(superblock.segment_offset(segment)),
        size_(superblock.segment_bytes),
        window_bytes_(window_bytes) {}

  // Until the next call. Nothing: beyond the segment, or the device failed.
  std::optional<std::span<const std::byte>> get(std::uint64_t begin, std::uint64_t bytes);
  bool has(std::uint64_t begin, std::uint64_t bytes) const {
    return begin <= size_ && bytes <= size_ - begin;
  }
  // True if the device has ever failed; error() is its last error.
  bool has_failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  bool load(std::uint64_t begin, std::uint64_t end);
  bool read(std::uint64_t begin, std::uint64_t end);

  File& file_;
  std::uint64_t offset_;
  std::uint64_t size_;
  std::uint64_t window_bytes_;
  AlignedBuffer window_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::string error_;
};

// A front that outlives the window. Move-only: its views are of its own bytes.
struct OwnedRecordFront {
  std::vector<std::byte> bytes;
  RecordFront front;

  OwnedRecordFront() = default;
  OwnedRecordFront(OwnedRecordFront&&) = default;
  OwnedRecordFront& operator=(OwnedRecordFront&&) = default;
  OwnedRecordFront(const OwnedRecordFront&) = delete;
  OwnedRecordFront& operator=(const OwnedRecordFront&) = delete;
  ~OwnedRecordFront() = default;
};
// The header of the record that begins at this offset, and the front that it says there is.
std::expected<RecordHeader, Damage> read_header(SegmentBytes& segment, Salt salt,
                                                std::uint64_t offset);
std::expected<OwnedRecordFront, Damage> read_front(SegmentBytes& segment,
                                                   const RecordHeader& header, Salt salt,
                                                   std::uint64_t offset);
std::expected<OwnedRecordFront, Damage> read_front(SegmentBytes& segment, Salt salt,
                                                   std::uint64_t offset);
// Each block of the body that lies in the record.
std::expected<void, Damage> check_body(SegmentBytes& segment, const RecordFront& front);

}  // namespace encore::disk
