// DiskTable: what of one shard's keys lies on disk: index, chains of the variants of a key, and of
// what lies in the same part of a segment; times and places. At most 46 bytes an entry, all in all.
// Knows nothing of locks, budget or room on the disks. Thread-compatible, confined to its shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/disk_slab.h"
#include "cache/index.h"
#include "cache/options.h"
#include "cache/types.h"

namespace encore::cache {

class DiskTable {
 public:
  struct Record {
    MixedKey key;
    std::uint32_t variant = 0;
    std::uint16_t names = 0;
    DiskPlace place;
    MonotonicTime fresh_until{};  // held rounded down to whole seconds, as keep_until is
    MonotonicTime keep_until{};
    bool written = false;
    bool visited = false;
    bool part = false;    // a part of a body: variant 0, no names
    bool filled = false;  // written for a disk that was never full
  };

  explicit DiskTable(std::span<const DiskOptions> disks);

  // The latest stored variant; kNoEntry if the key is absent.
  EntryRef find(const MixedKey& key) const { return index_.find(key); }
  EntryRef find(const MixedKey& key, std::uint32_t variant) const;
  // Asks for the memory in which the key is looked for, and inserted.
  void prefetch(const MixedKey& key) const { index_.prefetch_to_insert(key); }
  // There will be about so many keys; 0: it is not known.
  void expect(std::uint64_t keys) { index_.expect(keys); }
  // The key's entry that lies there.
  EntryRef find_at(const MixedKey& key, const DiskPlace& place) const;
  // The variant stored before this one.
  EntryRef next(EntryRef ref) const { return slab_.at(ref).next_variant; }
  std::uint32_t variants(const MixedKey& key) const;

  // First in the key's chain. REQUIRES: the key has no such variant. kNoEntry: no memory, nothing
  // has changed.
  EntryRef insert(const Record& record);
  void erase(EntryRef ref);
  // It lies elsewhere from now on.
  void move(EntryRef ref, const DiskPlace& place);
  void set_times(EntryRef ref, MonotonicTime fresh_until, MonotonicTime keep_until);
  void mark_stale(EntryRef ref, MonotonicTime now);
  void set_written(EntryRef ref) { slab_.at(ref).set_written(true); }
  // One hit more.
  void visit(EntryRef ref) {
    set_visits(ref, std::min(DiskEntry::kVisitsMax, slab_.at(ref).visits() + 1));
    slab_.at(ref).set_was_visited();
  }
  void set_visits(EntryRef ref, std::uint32_t visits) { slab_.at(ref).set_visits(visits); }
  std::uint32_t visits(EntryRef ref) const { return slab_.at(ref).visits(); }

  DiskView view(EntryRef ref) const;
  MixedKey key(EntryRef ref) const { return slab_.at(ref).key(); }
  DiskPlace place(EntryRef ref) const { return slab_.at(ref).place(); }
  bool written(EntryRef ref) const { return slab_.at(ref).written(); }
  bool is_part(EntryRef ref) const { return slab_.at(ref).is_part(); }
  bool is_filled(EntryRef ref) const { return slab_.at(ref).filled(); }
  bool was_visited(EntryRef ref) const { return slab_.at(ref).was_visited(); }

  // An entry of a segment, kNoEntry where there is none. Which one is a pure function of the order
  // of calls.
  EntryRef first_of(std::uint16_t disk, std::uint32_t segment) const;
  // Entries of a segment, at most so many: `visitor(ref)` for each, in the order of first_of(). It
  // changes nothing of the table.
  template <typename Visitor>
  void each_of(std::uint16_t disk, std::uint32_t segment, std::uint32_t refs_max,
               Visitor visitor) const;

  std::uint32_t size() const { return slab_.size(); }
  std::uint32_t slots() const { return slab_.slots(); }
  bool holds(EntryRef ref) const { return slab_.holds(ref); }
  std::uint64_t memory_bytes() const;

 private:
  // A segment has several chains, by where in it an entry lies, so that leaving one is no long
  // walk.
  static constexpr std::uint32_t kChains = 16;
  struct Chains {
    std::uint64_t part_units = 1;
    std::vector<EntryRef> heads;  // so many a segment, one after the other
  };

  EntryRef& head_of(const DiskPlace& place);
  void link(EntryRef ref);
  void unlink(EntryRef ref);

  DiskSlab slab_;
  DiskIndex index_{slab_};
  std::vector<Chains> disks_;
};

template <typename Visitor>
void DiskTable::each_of(std::uint16_t disk, std::uint32_t segment, std::uint32_t refs_max,
                        Visitor visitor) const {
  const std::vector<EntryRef>& heads = disks_[disk].heads;
  const std::size_t first = std::size_t{segment} * kChains;
  for (std::size_t head = first; head < std::min(heads.size(), first + kChains); ++head) {
    for (EntryRef ref = heads[head]; ref != kNoEntry && refs_max != 0; --refs_max) {
      visitor(ref);
      ref = slab_.at(ref).next_in_segment;
    }
  }
}

}  // namespace encore::cache
