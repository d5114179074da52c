// The purge log: what was purged and may still lie on the disk. A record is dead if a purge of a
// higher version is of its key, or has a pattern that it fits. Without the log a start would bring
// back what was purged; so it is durable before a purge is answered, and lies on the disk twice.
//
// A copy is a row of frames. The first, up to one that says so, are all there was when the copy was
// rewritten, with a new epoch; what was purged since follows. No page is written twice in an epoch,
// so a torn write loses nothing that was durable, and what one copy has lost the other has. They
// are rewritten one after the other, the purges of one key or pattern as one.
//
// A log that is full all the same becomes less exact, and never covers less than was purged: one
// purge of all that was stored before the newest of them replaces them. A running proxy goes on
// with its index; the next start finds nothing older. Why no purge is refused: docs/decisions/0294.
//
// Thread-compatible: confined to what writes the disk.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"
#include "proxy/disk/purge_frame.h"

namespace encore::disk {

struct LogPosition {
  std::uint64_t epoch = 0;
  std::uint64_t end = 0;  // bytes of the epoch
  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

class PurgeLog {
 public:
  // `file` is borrowed.
  PurgeLog(File& file, const Superblock& superblock) : file_(file), superblock_(superblock) {}

  // An empty log on a new disk, durable.
  Result<void> make();
  // Reads the log, in the order of append(). Errors: neither copy can be read: nobody knows then
  // what was purged, and nothing of the disk may be used.
  Result<void> load(const VisitPurge& visit);

  // Durable when it returns. Errors: the device's; what of it holds is then not known. The next
  // call tries to mend it. REQUIRES: make() or load() went well.
  Result<void> append(std::span<const Purge> purges);
  // Segments of a lower sequence are not on the disk any more, and neither are the records purged
  // in them: forgets those purges, once they are half of all. Makes durable first what was written
  // to the file. REQUIRES: as append(); `sequence_min` is SegmentWriter's.
  Result<void> prune(std::uint64_t sequence_min);

  // A frame that one copy has lost, or was not given yet; the other has it.
  struct Gap {
    std::uint64_t offset = 0;   // offset on the disk
    bool is_unwritten = false;  // the earlier contents are still there, after a crash
  };
  // Reads both copies. REQUIRES: load() went well, and nothing was added since.
  std::vector<Gap> gaps();

  // How far the log is: only ever greater, and never less than what was durable once, unless an
  // older copy of the disk takes its place.
  LogPosition position() const { return {epoch_, end_}; }
  // Kept, whether forgotten already or not.
  std::uint64_t entries() const { return entries_; }
  std::uint64_t used_bytes() const { return end_; }
  // Times that one purge took the place of all, since it was made or loaded.
  std::uint64_t overflows() const { return overflows_; }
  // The highest version that it ever had since it was loaded; 0: none.
  cache::DiskVersion version_max() const { return version_max_; }

 private:
  static constexpr std::size_t kCopies = 2;
  static constexpr std::size_t kMergedMax = std::size_t{1} << 20U;  // some 64 MiB while they are

  struct FoundFrame {
    Frame frame;
    std::span<const std::byte> bytes;  // bytes of its pages
  };
  std::uint64_t place(std::size_t copy, std::uint64_t offset) const {
    return superblock_.purge_offset + copy * superblock_.purge_bytes + offset;
  }
  // The frame of `epoch` at `offset` of a copy, in `memory`. Nothing: there is none.
  Result<std::optional<FoundFrame>> find(std::size_t copy, std::uint64_t offset,
                                         std::uint64_t epoch, AlignedBuffer& memory);
  Result<std::optional<FoundFrame>> find_in_either(std::uint64_t offset, std::uint64_t epoch);
  // Visits what there is of an epoch, and how far it goes. Nothing: its snapshot is not whole.
  Result<std::optional<std::uint64_t>> walk(std::uint64_t epoch, const VisitPurge& visit);
  bool is_unwritten(std::size_t copy, std::uint64_t offset);
  // Epoch of the frame that a copy begins with; 0: none.
  std::uint64_t first_epoch(std::size_t copy);

  // Both copies have all of the epoch afterwards.
  Result<void> heal();
  // Rewrites the log with the remaining purges, or with `only` in place of all.
  Result<void> rewrite(const Purge* only = nullptr);
  // Visits what the second copy has.
  Result<void> visit_second(const VisitPurge& visit);
  // Writes them into the first copy; how far they go.
  class Snapshot;
  Result<std::uint64_t> write_kept(std::uint64_t epoch);
  Result<std::uint64_t> write_only(std::uint64_t epoch, const Purge& purge);
  // Returns a purge of all that was stored before the newest of `purges` and of the log's own.
  Purge all_before(std::span<const Purge> purges) const;
  Result<void> append_frames(std::span<const Purge> purges);
  void count(const Purge& purge);

  File& file_;
  Superblock superblock_;
  std::uint64_t epoch_ = 0;
  std::uint64_t end_ = 0;           // end of the frames, in each copy
  std::uint64_t sequence_min_ = 0;  // purges of older turns only are dropped
  bool is_broken_ = true;           // has to be rewritten before anything is added
  std::uint64_t entries_ = 0;
  std::uint64_t overflows_ = 0;
  std::map<std::uint64_t, std::uint64_t> entries_by_sequence_;
  cache::DiskVersion version_max_ = 0;
  std::array<AlignedBuffer, kCopies> memory_ = {AlignedBuffer(kFrameBytesMax),
                                                AlignedBuffer(kFrameBytesMax)};
};

}  // namespace encore::disk
