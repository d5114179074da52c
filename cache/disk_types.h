// The words of the disk tier: what became of an object that was to be written, what is to be moved,
// what was found at the start. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cache/disk_place.h"
#include "cache/segment_log.h"
#include "filter/hash.h"

namespace encore::cache {

// What a commit came to for the disk. kNotWanted: it was not to be written, or was not stored at
// all. kPlaced: whoever asked writes the record there and then says so (Kernel::written). All
// others are dropped: it is useless too soon; the caller's queue is full; write_rate_max is used
// up; no segment is free; it is larger than a segment takes; the index has no room in the memory;
// the key has as many variants on disk as it may; no disk is in service.
//  enumerator     name
#define ENCORE_DISK_OUTCOMES(X) \
  X(kNotWanted, "not-wanted")   \
  X(kPlaced, "placed")          \
  X(kShortLived, "short-lived") \
  X(kQueueFull, "queue-full")   \
  X(kWriteRate, "write-rate")   \
  X(kNoSegment, "no-segment")   \
  X(kTooLarge, "too-large")     \
  X(kIndexFull, "index-full")   \
  X(kVariants, "variants")      \
  X(kOffline, "offline")

#define ENCORE_ENUMERATOR(id, name) id,
#define ENCORE_NAME(id, name) std::string_view(name),
enum class DiskOutcome : std::uint8_t { ENCORE_DISK_OUTCOMES(ENCORE_ENUMERATOR) };
inline constexpr std::array kDiskOutcomeNames = {ENCORE_DISK_OUTCOMES(ENCORE_NAME)};
inline constexpr std::size_t kDiskOutcomeCount = kDiskOutcomeNames.size();
constexpr std::string_view to_string(DiskOutcome outcome) noexcept {
  return kDiskOutcomeNames[static_cast<std::size_t>(outcome)];
}

// Why an entry that had been written, or was to be, left the index (but for what was replaced,
// invalidated or purged). kDropped: its segment was reclaimed and it was not worth a move, or there
// was no room for it; kOffline: so, and its disk was out of service.
//  enumerator       name
#define ENCORE_DISK_LOSSES(X)     \
  X(kWriteFailed, "write-failed") \
  X(kUnreadable, "unreadable")    \
  X(kDropped, "dropped")          \
  X(kOffline, "offline")

enum class DiskLoss : std::uint8_t { ENCORE_DISK_LOSSES(ENCORE_ENUMERATOR) };
inline constexpr std::array kDiskLossNames = {ENCORE_DISK_LOSSES(ENCORE_NAME)};
inline constexpr std::size_t kDiskLossCount = kDiskLossNames.size();
constexpr std::string_view to_string(DiskLoss loss) noexcept {
  return kDiskLossNames[static_cast<std::size_t>(loss)];
}
#undef ENCORE_NAME
#undef ENCORE_ENUMERATOR

// What is wanted for a part of a body (cache/disk_parts.h). kPlaced: as with a commit.
struct PartWish {
  std::uint64_t bytes = 0;  // of the record
  bool queue_full = false;  // nothing can be written at the moment
  // Its object is of no use from then on: where that is too soon, no part needs to be written.
  MonotonicTime useless_from = MonotonicTime::max();
};

// Why a part is not found. kNotWritten: it is on its way to its disk still, while its head may have
// come to another one; nothing is lost.
enum class PartMissing : std::uint8_t { kAbsent, kNotWritten };

// Records of a key that are older than `version` must not be found again after a restart, and the
// disks alone do not see to it. version 0: nothing of the kind.
struct DiskTombstone {
  DiskVersion version = 0;
  explicit operator bool() const { return version != 0; }
  friend bool operator==(const DiskTombstone&, const DiskTombstone&) = default;
};

// What is placed is decided under the kernel's locks and told without them, so it may reach who
// writes in another order than its places have: `order` brings it back into that.
struct DiskDecision {
  DiskOutcome outcome = DiskOutcome::kNotWanted;
  DiskPlace place{};          // where it goes
  SegmentTurn turn{};         // what has to be opened first; sequence 0: nothing
  std::uint64_t order = 0;    // of all places that the disk has given since the start: 1, 2, ...
  DiskVersion version = 0;    // the record's
  DiskTombstone tombstone{};  // for this variant alone
};

// A record to be copied; it is at its new place for the index already, so until it is written there
// the bytes are at hand elsewhere (the old place stays as it is until Kernel::free_segment).
struct DiskMove {
  DiskPlace from;
  DiskPlace to;
  SegmentTurn turn;         // to be opened first; sequence 0: nothing
  std::uint64_t order = 0;  // as DiskDecision's, from the same count
  friend bool operator==(const DiskMove&, const DiskMove&) = default;
};

// What one step of reclaiming came to.
struct DiskReclaim {
  // kNothing: no segment has to be reclaimed. kMore: ask again. kDone: nothing of the segment is in
  // the index any more; once what is to be moved is written, or given up, and nobody reads in the
  // segment, its header is erased and Kernel::free_segment called.
  enum class State : std::uint8_t { kNothing, kMore, kDone };
  State state = State::kNothing;
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;  // of its turn; what was placed there may still be on its way
  std::uint32_t dropped = 0;
  std::uint32_t parts_dropped = 0;  // of these, parts of bodies
  std::vector<DiskMove> moves;
  // Where a younger segment goes before an older one (the disk has become smaller), older records
  // of what was dropped may be left: the tombstone is for the key and variant of each of these.
  DiskTombstone tombstone{};
  std::vector<DiskPlace> buried;
};

// A record that was found on a disk at the start. Borrows nothing.
struct DiskRecord {
  filter::Hash128 key{};
  std::uint32_t variant = 0;  // the low half
  std::uint16_t names = 0;
  bool visited = false;
  bool part = false;  // of a body: its own key, variant 0, no names, no end of its times
  DiskPlace place{};
  MonotonicTime fresh_until{};
  MonotonicTime keep_until{};
  friend bool operator==(const DiskRecord&, const DiskRecord&) = default;
};

struct DiskLoaded {
  std::uint32_t inserted = 0;
  // Records of a key and variant that another disk has as well: the one of the lower version is to
  // be named to Kernel::lost(), the other one loaded again.
  struct Twins {
    std::size_t record = 0;  // which of those that were given
    DiskPlace other;
  };
  std::vector<Twins> twins;
  // Which of those that were given are not in the index, though they are the newest: older records
  // of their key and variant must not be given any more.
  struct Refused {
    std::size_t record = 0;
    // Its segment is reclaimed before any later one. Else it would be there at the next start, and
    // whatever has replaced or purged it by then not: it has to be buried.
    bool leaves = false;
  };
  std::vector<Refused> refused;
};

}  // namespace encore::cache
