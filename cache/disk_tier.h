// DiskTier: what all shards share of the disks: the rings of segments, the number of the next
// version, the names that objects vary by, what may be written. Its mutex is taken inside the
// budget's, and a change of anything here gets its event's number under it. Each shard knows where
// the records of its keys lie (DiskTable). Why the kernel gives the places: docs/decisions/0110.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cache/disk_types.h"
#include "cache/optional_mutex.h"
#include "cache/options.h"
#include "cache/probation.h"
#include "cache/reinsert_budget.h"
#include "cache/segment_log.h"
#include "cache/statistics.h"

namespace encore::cache {

class DiskTier {
 public:
  explicit DiskTier(const KernelOptions& options);

  OptionalMutex mutex;

  // The text of a number; empty: no such number. Needs no lock.
  std::string_view names(std::uint16_t number) const;
  // 0 for the empty text; nothing where it is longer than kNamesBytesMax, or where its names are
  // unusual (disk_names.h) and there are as many such texts as have numbers.
  std::optional<std::uint16_t> intern(std::string_view text) ENCORE_REQUIRES(mutex);

  // A record that is to be written: place() says where it goes, or why it does not.
  struct PlaceRequest {
    filter::Hash128 key{};
    std::uint64_t bytes = 0;
    std::uint16_t names = 0;
    bool queue_full = false;
    bool part = false;   // a part of a body
    bool waits = false;  // it is on probation
    MonotonicTime useless_from{};
    MonotonicTime now{};
  };
  DiskDecision place(const PlaceRequest& request) ENCORE_REQUIRES(mutex);
  // True if what waits is written there because it was never full.
  bool is_filling(std::uint16_t disk) const ENCORE_REQUIRES(mutex) {
    return !states_[disk].full_once;
  }
  // A further place for what lies at `from`, which it leaves; nothing where there is none.
  std::optional<PlacedRecord> place_move(const DiskPlace& from, std::uint16_t names)
      ENCORE_REQUIRES(mutex);
  DiskVersion next_version() ENCORE_REQUIRES(mutex) { return ++version_; }
  // The version of a tombstone for entries that were removed; 0 where there is nothing that could
  // be found again.
  DiskVersion version_of_removal(std::uint32_t removed) ENCORE_REQUIRES(mutex) {
    return removed != 0 || hides_records() ? next_version() : 0;
  }

  // --- entries, in bytes of the index ------------------------------------------------------------

  // An entry that is or was in the index, and its place.
  struct Entry {
    DiskPlace place;
    bool part = false;
  };
  void on_entry_added(const Entry& entry) ENCORE_REQUIRES(mutex);
  void on_entry_removed(const Entry& entry) ENCORE_REQUIRES(mutex);
  std::uint64_t index_bytes() const ENCORE_REQUIRES(mutex) { return entries_ * kDiskEntryBytes; }
  // True if so many bytes more go into a share that is `index_max` large.
  bool has_room(std::uint64_t bytes, std::uint64_t index_max) const ENCORE_REQUIRES(mutex) {
    return index_bytes() + bytes <= index_max;
  }

  // --- reclaiming --------------------------------------------------------------------------------

  // The shard whose turn it is on a disk; nothing where nothing has to be reclaimed. Segments that
  // are free are meant to be a few; an index beyond its share has to become smaller.
  std::optional<std::uint32_t> reclaim_shard(std::uint16_t disk, std::uint64_t index_max) const
      ENCORE_REQUIRES(mutex);
  // The segment that is being reclaimed, begun now where there is none; `counts`: the shards are
  // asked twice then, and count first. REQUIRES: reclaim_shard().
  std::uint32_t reclaimed_segment(std::uint16_t disk, std::uint64_t index_max, bool counts)
      ENCORE_REQUIRES(mutex);
  std::uint64_t sequence_of(std::uint16_t disk, std::uint32_t segment) const
      ENCORE_REQUIRES(mutex) {
    return logs_[disk].segment(segment).sequence;
  }
  // True if there are older ones.
  bool has_older(std::uint16_t disk, std::uint32_t segment) const ENCORE_REQUIRES(mutex);
  // Records that may move are counted, shard after shard, before any does (DiskPolicy::compares).
  bool is_counting(std::uint16_t disk) const ENCORE_REQUIRES(mutex) {
    return states_[disk].is_counting;
  }
  ReinsertBudget& choice(std::uint16_t disk) ENCORE_REQUIRES(mutex) { return states_[disk].choice; }
  void shard_counted(std::uint16_t disk, std::uint32_t shard) ENCORE_REQUIRES(mutex);
  // Nothing of this shard is in the segment; true where that was the last one.
  bool shard_reclaimed(std::uint16_t disk, std::uint32_t shard) ENCORE_REQUIRES(mutex);
  bool free_segment(std::uint16_t disk, std::uint32_t segment) ENCORE_REQUIRES(mutex);

  // --- disks -------------------------------------------------------------------------------------

  bool attach(std::uint16_t disk, std::span<const std::uint64_t> sequences, DiskVersion newest)
      ENCORE_REQUIRES(mutex);
  void loaded(std::uint16_t disk) ENCORE_REQUIRES(mutex) { states_[disk].loading = false; }
  // Returns the sum of what is expected of all disks that are being loaded.
  std::uint64_t expect(std::uint16_t disk, std::uint64_t records) ENCORE_REQUIRES(mutex);
  void take_offline(std::uint16_t disk) ENCORE_REQUIRES(mutex);
  void resize(std::uint16_t disk, std::uint32_t segments) ENCORE_REQUIRES(mutex) {
    logs_[disk].resize(segments);
  }
  std::uint64_t sequence(std::uint16_t disk) const ENCORE_REQUIRES(mutex) {
    return logs_[disk].sequence();
  }
  bool is_offline(std::uint16_t disk) const ENCORE_REQUIRES(mutex) { return states_[disk].offline; }
  std::uint64_t bytes_in_service() const ENCORE_REQUIRES(mutex);
  // As probation sees them: those in service, and whether the one that the key is for was full
  // once.
  DiskLoad load_for(const filter::Hash128& key) const ENCORE_REQUIRES(mutex);
  // The rule that probation follows. Its readers are numbered under the mutex, as all here.
  ProbationRule rule ENCORE_GUARDED_BY(mutex);
  // True if a record may lie on some disk that the index does not know: not loaded yet, in a
  // segment that is being reclaimed, or found without room. Why such records leave first:
  // docs/decisions/0440.
  bool hides_records() const ENCORE_REQUIRES(mutex);
  // True if place `a` was given later than `b`; both are on one disk.
  bool is_later(const DiskPlace& a, const DiskPlace& b) const ENCORE_REQUIRES(mutex);
  // True if a record that was found there may go into the index.
  bool takes_found(const DiskPlace& place) const ENCORE_REQUIRES(mutex);
  void found(const Entry& entry, bool is_live) ENCORE_REQUIRES(mutex);
  // The index has no room for a record that was found there and is the newest of its key. Nothing
  // is known of it from then on: its segment and all before it leave first, in the order of the
  // log, for what is older than it must not outlive it.
  void found_without_room(const DiskPlace& place) ENCORE_REQUIRES(mutex);
  // True if such records may lie on another disk than this one.
  bool is_unknown_beside(std::uint16_t disk) const ENCORE_REQUIRES(mutex);

  std::uint32_t shards() const { return shards_; }
  std::uint16_t disks() const { return static_cast<std::uint16_t>(disk_count_); }
  DiskCounters counters ENCORE_GUARDED_BY(mutex);
  void add_to(DiskStatistics& statistics) const ENCORE_REQUIRES(mutex);

 private:
  struct State {
    bool offline = false;
    bool loading = false;
    std::uint64_t expected = 0;  // records, while it is loaded
    bool full_once = false;      // a segment had to be reclaimed for room, now or before the start
    std::optional<std::uint32_t> reclaimed;  // until it is free
    std::uint32_t reclaim_shard = 0;         // shards_: all are done
    bool is_counting = false;
    ReinsertBudget choice;
    std::uint64_t admitted_total = 0;
    std::uint64_t moved_total = 0;
    std::uint64_t parts = 0;          // in the index
    std::uint64_t unknown_until = 0;  // the last turn with a record that was found without room
  };

  // The segment to reclaim next; nothing: none has to be.
  std::optional<std::uint32_t> next_to_reclaim(std::uint16_t disk, std::uint64_t index_max) const
      ENCORE_REQUIRES(mutex);
  // True if a record that was found without room may still lie there.
  bool has_unknown(std::uint16_t disk) const ENCORE_REQUIRES(mutex);
  std::optional<std::uint16_t> disk_for(const filter::Hash128& key) const ENCORE_REQUIRES(mutex);
  void refill(MonotonicTime now) ENCORE_REQUIRES(mutex);

  const DiskRules rules_;
  const std::uint32_t shards_;
  const std::size_t disk_count_;
  std::vector<SegmentLog> logs_ ENCORE_GUARDED_BY(mutex);
  std::vector<State> states_ ENCORE_GUARDED_BY(mutex);
  DiskVersion version_ ENCORE_GUARDED_BY(mutex) = 0;
  std::uint64_t entries_ ENCORE_GUARDED_BY(mutex) = 0;  // parts included

  std::int64_t tokens_ ENCORE_GUARDED_BY(mutex);  // bytes; below 0: what was written too much
  std::optional<MonotonicTime> refilled_ ENCORE_GUARDED_BY(mutex);

  std::map<std::string, std::uint16_t, std::less<>> numbers_ ENCORE_GUARDED_BY(mutex);
  std::uint32_t unusual_texts_ ENCORE_GUARDED_BY(mutex) = 0;  // number of texts that are not usual
  // By number; the texts are the map's, which never gives one up.
  std::array<std::atomic<const std::string*>, kDiskNamesMax> texts_{};
};

}  // namespace encore::cache
