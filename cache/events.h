// Events: one record for each thing that the kernel did, in one critical section of it. Applied in
// the order of their sequence numbers to a fresh kernel with the same options they give the same
// records again (cache/replay.h), whatever number of threads made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "cache/disk_types.h"
#include "filter/hash.h"

namespace encore::cache {

// A reservation that has to evict takes as many kReserve records as critical sections, at least one
// per shard; the last one has the outcome. kReload is the new options, kReloadShard their arrival
// in a shard. kPurge and kPurgeSoftly are one entry each, as a visitor decided. From kWritten on,
// the disk tier: the kernel's functions of these names.
//  enumerator     name
#define ENCORE_EVENT_KINDS(X)     \
  X(kLookup, "lookup")            \
  X(kAdmit, "admit")              \
  X(kReserve, "reserve")          \
  X(kAbort, "abort")              \
  X(kCommit, "commit")            \
  X(kFreshen, "freshen")          \
  X(kInvalidate, "invalidate")    \
  X(kRemove, "remove")            \
  X(kMarkStale, "mark-stale")     \
  X(kPurge, "purge")              \
  X(kPurgeSoftly, "purge-softly") \
  X(kReclaim, "reclaim")          \
  X(kReload, "reload")            \
  X(kReloadShard, "reload-shard") \
  X(kRestore, "restore")          \
  X(kMakeRoom, "make-room")       \
  X(kAdopt, "adopt")              \
  X(kWritten, "written")          \
  X(kLost, "lost")                \
  X(kDiskReclaim, "disk-reclaim") \
  X(kFreeSegment, "free-segment") \
  X(kLoad, "load")                \
  X(kAttach, "attach")            \
  X(kLoaded, "loaded")            \
  X(kOffline, "offline")          \
  X(kResize, "resize")            \
  X(kNames, "names")              \
  X(kPurgeRule, "purge-rule")     \
  X(kPart, "part")                \
  X(kPartFound, "part-found")     \
  X(kGrow, "grow")                \
  X(kFollow, "follow")            \
  X(kLeave, "leave")

#define ENCORE_ENUMERATOR(id, name) id,
enum class EventKind : std::uint8_t { ENCORE_EVENT_KINDS(ENCORE_ENUMERATOR) };
#undef ENCORE_ENUMERATOR
inline constexpr std::size_t kEventKindCount =
    static_cast<std::size_t>(EventKind::kLeave) + 1;  // the last one

std::string_view to_string(EventKind kind) noexcept;

// The step of a reservation did not end it: more has to go, here or in the next shard.
inline constexpr std::uint8_t kReserveNextShard = 100;
inline constexpr std::uint8_t kReserveSameShard = 101;
// The entry that was to grow has gone, so that nothing was reserved.
inline constexpr std::uint8_t kReserveGone = 102;
// Event::requests of a kReserve: no further shard was tried; what was used lately was spared, where
// something had to go; it was for an entry that grows; what waits on probation had to leave.
inline constexpr std::uint32_t kReserveLast = 1;
inline constexpr std::uint32_t kReserveSpares = 2;
inline constexpr std::uint32_t kReserveGrows = 4;
inline constexpr std::uint32_t kReserveWaiting = 8;
// The step of a freshening needs `freed_bytes` more first.
inline constexpr std::uint8_t kFreshenNeedsRoom = 100;
// A part was found; else the outcome is why not.
inline constexpr std::uint8_t kPartIsWritten = 100;
// An entry has grown; else it was not there any more.
inline constexpr std::uint8_t kGrown = 100;

// Event::disk_flags. Lookup: the selected one lies on disk, and is to be promoted. Commit: the
// queue was full; it came from disk (from `place`); its version is that of a tombstone as well; it
// is for the disk only; it waits. Commit, freshen: it was overtaken. Part: the queue was full.
// Admit: it is for the disk only; it is hinted.
inline constexpr std::uint8_t kFoundOnDisk = 1;
inline constexpr std::uint8_t kPromote = 2;
inline constexpr std::uint8_t kQueueFull = 4;
inline constexpr std::uint8_t kFromDisk = 8;
inline constexpr std::uint8_t kTombstone = 16;
inline constexpr std::uint8_t kDiskOnly = 32;
inline constexpr std::uint8_t kOvertaken = 64;
inline constexpr std::uint8_t kHinted = 64;
inline constexpr std::uint8_t kOnProbation = 128;

// A field that a kind does not name is zero.
struct Event {
  std::uint64_t sequence = 0;  // from 1, without gaps
  EventKind kind = EventKind::kLookup;
  // The enumerator of the kind's outcome: LookupState, AdmitReason, ReserveOutcome (or one of the
  // numbers above), CommitOutcome, FreshenOutcome, PartMissing. reload-shard, adopt: 1 if it was
  // refused. follow: 1 if the rule writes all. leave: 1 if all left, however short they waited.
  std::uint8_t outcome = 0;
  bool any_resident = false;  // lookup
  std::uint32_t shard = 0;
  MonotonicTime now{};
  filter::Hash128 key{};
  // lookup: the selected one; admit, commit, freshen, grow, remove, purge, mark-stale: the one
  // meant; reserve: the one that grows; follow: the rule's window, bit by bit.
  std::uint64_t variant = 0;
  // reserve, abort, make-room: the bytes asked for; admit: size_bytes
  std::uint64_t charge_bytes = 0;
  // commit, freshen, grow, part: what the reservation holds; admit: AdmissionRule::encoded();
  // follow: the rule's chance, bit by bit
  std::uint64_t reserved_bytes = 0;
  // admit; reserve: kReserveLast and those that follow it; reclaim, make-room: victims at
  // most; adopt: the generations that were taken
  std::uint32_t requests = 0;
  MonotonicTime fresh_until{};  // lookup: of the selected one; commit, freshen: as given
  MonotonicTime keep_until{};   // part: useless_from
  // Entries that left the cache: expired, evicted, replaced, removed.
  std::uint32_t removed = 0;
  std::uint64_t freed_bytes = 0;
  std::uint64_t removed_digest = 0;  // exclusive or of a mix of key and variant over them
  // --- the disk tier
  std::uint8_t disk_flags = 0;
  std::uint8_t disk_outcome = 0;  // commit, part: DiskOutcome
  std::uint16_t names = 0;        // commit: as given; names: what it came to
  // Lookup, part-found: where the selected one is; commit, part: where it goes, or came from;
  // written, lost, purge of an entry on disk: the one meant. disk-reclaim, free-segment, load,
  // attach, loaded, offline, resize: disk and segment.
  DiskPlace place{};
  std::uint64_t turn = 0;   // commit, part: sequence of the segment to be opened first
  DiskVersion version = 0;  // commit, part: the record's; where something went: the tombstone's
  std::uint64_t disk_bytes = 0;  // commit, part: as given; disk-reclaim: of what was moved
  // Entries on disk: removed, replaced, found, marked stale, loaded; disk-reclaim: moved. (There
  // `removed` and `freed_bytes` are of what was dropped, and the digest is of both.)
  std::uint32_t disk_entries = 0;
  // Borrowed for the call. admit: the key's text, where the filter takes it; reload: the options as
  // encoded by the journal; disk-reclaim, load, attach: the arguments (cache/disk_codec.h); names:
  // the text. (restore, adopt: charge_bytes and removed_digest are the size and checksum of the
  // shard's saved state, or of the whole one that was adopted.)
  std::string_view text{};

  friend bool operator==(const Event&, const Event&) = default;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Called under the lock of event.shard, so calls for different shards come at the same time and
  // not in the order of their numbers. Must do no more than append to a buffer.
  virtual void record(const Event& event) = 0;
};

}  // namespace encore::cache
