// Values of the disk tier: outcomes of writes, objects to move, records found at the start.
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

// Outcomes of a commit for the disk. kNotWanted: the object was not to be written, or was not
// stored at all. kPlaced: the caller writes the record there and then reports it (Kernel::written).
// With all others the object is dropped. In order: it expires too soon; the caller's queue is full;
// write_rate_max is used up; no segment is free. Or it is larger than a segment takes; the index
// has no space in memory; the key has its maximum of variants on disk; no disk is in service.
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

// Reasons why an entry that had been written, or was to be, left the index, other than replacement,
// invalidation and purges. kDropped: its segment was reclaimed and it was not worth a move, or
// there was no space for it. kOffline: the same, but its disk was out of service.
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

// Request for a place for a part of a body (cache/disk_parts.h). kPlaced: as with a commit.
struct PartRequest {
  std::uint64_t bytes = 0;  // size of the record
  bool queue_full = false;  // nothing can be written at the moment
  // Its object is of no use from then on: where that is too soon, no part needs to be written.
  MonotonicTime useless_from = MonotonicTime::max();
};

// Why a part is not found. kNotWritten: it is still on its way to its disk, while its head may have
// reached another one; nothing is lost.
enum class PartMissing : std::uint8_t { kAbsent, kNotWritten };

// Records of a key that are older than `version` must not be found again after a restart, and the
// disks alone do not see to it. version 0: nothing of the kind.
struct DiskTombstone {
  DiskVersion version = 0;
  explicit operator bool() const { return version != 0; }
  friend bool operator==(const DiskTombstone&, const DiskTombstone&) = default;
};

// Places are decided under the kernel's locks and reported without them, so a writer may receive
// them in another order: `order` restores it.
struct DiskDecision {
  DiskOutcome outcome = DiskOutcome::kNotWanted;
  DiskPlace place{};          // place of the record
  SegmentTurn turn{};         // segment to open first; sequence 0: none
  std::uint64_t order = 0;    // number among all places that the disk has given since the start: 1,
                              // 2, ...
  DiskVersion version = 0;    // the record's
  DiskTombstone tombstone{};  // for this variant alone
};

// A record to be copied; it is at its new place for the index already, so until it is written there
// the bytes are at hand elsewhere (the old place stays as it is until Kernel::free_segment).
struct DiskRelocation {
  DiskPlace from;
  DiskPlace to;
  SegmentTurn turn;         // to be opened first; sequence 0: nothing
  std::uint64_t order = 0;  // as DiskDecision's, from the same count
  friend bool operator==(const DiskRelocation&, const DiskRelocation&) = default;
};

// Result of one step of reclaiming.
struct DiskReclaim {
  // kNothing: no segment has to be reclaimed. kMore: ask again. kDone: nothing of the segment is in
  // the index any more. Once the records to move are written or dropped, and nobody reads in the
  // segment, the caller erases its header and calls Kernel::free_segment.
  enum class State : std::uint8_t { kNothing, kMore, kDone };
  State state = State::kNothing;
  std::uint32_t segment = 0;
  std::uint64_t sequence = 0;  // sequence of the segment's turn; records placed there may still be
                               // on their way
  std::uint32_t dropped = 0;
  std::uint32_t parts_dropped = 0;  // the parts of bodies among `dropped`
  std::vector<DiskRelocation> moves;
  // If a younger segment goes before an older one (the disk has become smaller), older records of
  // the dropped entries may be left: each of these keys and variants needs this tombstone.
  DiskTombstone tombstone{};
  std::vector<DiskPlace> buried;
};

// A record that was found on a disk at the start. Borrows nothing.
struct DiskRecord {
  filter::Hash128 key{};
  std::uint32_t variant = 0;  // the low half
  std::uint16_t names = 0;
  bool visited = false;
  bool part = false;  // a part of a body: its own key, variant 0, no names, no end of its times
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
