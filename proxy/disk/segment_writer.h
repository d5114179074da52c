// SegmentWriter: writes records where the kernel has placed them. They are copied and checksummed
// into a buffer, which goes out when it is full or on flush(); the page that is not full yet stays,
// and is written again with what follows. Sealing a segment adds its footer and makes it durable.
//
// Written records may be lost in a crash until then, and readers verify. Only the reopening of a
// segment has to be durable before the next one is, for purges are dropped by it.
//
// Thread-compatible: confined to what writes the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "cache/disk_place.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/format.h"
#include "proxy/disk/record.h"

namespace encore::disk {

class SegmentWriter {
 public:
  // State found on the disk, or nothing for a new one.
  struct FoundState {
    std::vector<std::uint64_t> sequences;  // sequences of the segments' headers; 0: none
    cache::DiskVersion version_max = 0;
    // There may be another one that could not be read, of any sequence.
    bool has_unknown = false;
  };
  // `file` is borrowed.
  SegmentWriter(File& file, const Superblock& superblock, FoundState found);

  // Seals the segment before, and begins this one. The next call tries again after a failure.
  // REQUIRES: as the kernel gives it: each sequence is higher than all before.
  Result<void> open(const cache::SegmentTurn& turn, WallSeconds now);
  // Everything is copied. Whether it could be written shows later, in take_written().
  // REQUIRES: a place of the open segment, behind all that were added to it;
  // is_sound(shape_of(record)).
  void add(const Record& record, const cache::DiskPlace& place);
  // Writes what is buffered; not durable. The error is of the device.
  Result<void> flush();
  // Writes and makes durable the segment and all before it; nothing is open afterwards. For the
  // next turn, and for a clean stop.
  Result<void> seal();

  // A start finds nothing of this segment any more; durable. May be tried again after a failure.
  // REQUIRES: it is not open.
  Result<void> erase(std::uint32_t segment);

  // The records whose result is known, in the order of add(); each is reported once.
  struct Written {
    cache::DiskVersion version = 0;
    cache::DiskPlace place;
    bool is_written = false;  // and may be read; else it is not there
  };
  std::vector<Written> take_written() { return std::exchange(written_, {}); }

  // The lowest sequence of the segments whose records a start may find; if there is none, above the
  // highest that was begun. 0 if that is not known.
  std::uint64_t sequence_min() const;
  // The highest that was begun; 0: none.
  std::uint64_t sequence_max() const { return sequence_max_; }
  // True if all of this turn that was to come has come.
  bool is_past(std::uint64_t sequence) const {
    return sequence < sequence_max_ || (sequence == sequence_max_ && !turn_);
  }
  cache::DiskVersion version_max() const { return version_max_; }
  // Given to the device, since the start.
  std::uint64_t written_bytes() const { return written_bytes_; }

  static constexpr std::size_t kBufferBytes = 1U << 20U;

 private:
  struct Pending {
    std::uint64_t end = 0;  // offset in the segment
    Written written;
    RecordLine line;
  };

  Result<void> begin_turn();
  Result<void> write_header(const SegmentHeader& header);
  Result<void> write(std::span<const std::byte> bytes, std::uint64_t offset);
  Result<void> write_footer();
  // Goes on at this offset of the segment; what is between is zeros, or left as it is.
  void seek(std::uint64_t offset);
  // False where the device failed: the record is lost.
  bool append(std::span<const std::byte> bytes);
  Result<void> write_out();
  void finish(std::uint64_t end, bool is_written);

  File& file_;
  Superblock superblock_;
  std::vector<std::uint64_t> sequences_;
  bool has_unknown_;
  std::uint64_t sequence_max_ = 0;
  cache::DiskVersion version_max_;
  std::uint64_t written_bytes_ = 0;

  std::optional<SegmentHeader> turn_;
  bool has_header_ = false;                // the open segment's is written
  std::optional<SegmentHeader> doubtful_;  // the last one sealed, where that may not be durable
  Salt salt_ = 0;
  Footer footer_;  // footer of the written records
  std::deque<Pending> pending_;
  std::vector<Written> written_;

  AlignedBuffer buffer_{kBufferBytes};
  std::uint64_t begin_ = 0;    // offset of the buffer in the segment, a whole page
  std::size_t filled_ = 0;     // bytes of it
  std::size_t unchanged_ = 0;  // the first ones, which are already on the disk
  std::vector<std::byte> front_;
};

}  // namespace encore::disk
