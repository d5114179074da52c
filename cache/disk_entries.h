// DiskEntries: the objects of one shard on disk, and parts of bodies: which there are, and what
// comes and goes. Keeps the shard's index (DiskTable) in step with what all shards share: the
// budget pays for each entry, and the tier knows which records of a segment live. Decides by a
// DiskPolicy what is re-inserted and promoted. Knows no events and takes no lock.
//
// Guarded by the shard's lock. A caller that passes budget and tier holds their locks as well.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "cache/budget.h"
#include "cache/disk_policy.h"
#include "cache/disk_table.h"
#include "cache/disk_tier.h"
#include "cache/disk_types.h"
#include "cache/table.h"

namespace encore::cache {

class DiskEntries {
 public:
  // `memory` has the shard's entries in memory; it is borrowed.
  DiskEntries(std::span<const DiskOptions> disks, const Table& memory, std::uint32_t shard)
      : memory_(memory), shard_(shard), table_(disks) {}

  // REQUIRES: called before anything else; again when the options have changed.
  void configure(const DiskPolicy& policy, std::uint32_t variants_max) {
    policy_ = &policy;
    variants_max_ = variants_max;
  }

  // --- requests -------------------------------------------------------------------------------

  bool has(const Key& key) const { return table_.find(mixed_of(key)) != kNoEntry; }
  bool has(const Key& key, std::uint64_t variant) const {
    return table_.find(mixed_of(key), low_half(variant)) != kNoEntry;
  }
  bool has_at(const Key& key, const DiskPlace& place) const {
    return table_.find_at(mixed_of(key), place) != kNoEntry;
  }
  // Entries of the key whose variant is not in memory.
  std::uint32_t count_alone(const Key& key) const;
  // Calls the visitor for each written variant; its verdict is ignored.
  void peek(const Key& key, Visitor& visitor) const;
  std::expected<DiskPlace, PartMissing> find_part(const Key& part) const;

  // The variant that is selected, the latest where `selector` is null, as it was before this hit,
  // which counts; an empty view: none. REQUIRES: `result` is that of memory, which has none; here
  // it becomes that of both.
  DiskView find(const Key& key, MonotonicTime now, Selector* selector, LookupResult& result);
  // Gives the variant's entry its new times; false if there is none.
  bool freshen(const Key& key, const Stored& stored, MonotonicTime now);
  // All variants are stale from now on; how many there are.
  std::uint32_t mark_stale(const Key& key, MonotonicTime now);
  // Places the record of an object that was stored in memory, or is for the disk only, and removes
  // the one before.
  DiskDecision commit(const Key& key, const Stored& stored, MonotonicTime now, Budget& budget,
                      DiskTier& tier) ENCORE_REQUIRES(budget.mutex, tier.mutex);
  DiskDecision place_part(const Key& part, const PartRequest& wish, MonotonicTime now,
                          Budget& budget, DiskTier& tier) ENCORE_REQUIRES(budget.mutex, tier.mutex);

  // --- removal --------------------------------------------------------------------------------

  // Removes the key's entries, or that of one variant; how many there were.
  std::uint32_t remove(const Key& key, std::optional<std::uint32_t> variant, Budget& budget,
                       DiskTier& tier) ENCORE_REQUIRES(budget.mutex, tier.mutex);
  // Removes the entry that lies there. The version for a tombstone, 0 for a part, of which there is
  // no older one that could be found again; nothing if there is no such entry.
  std::optional<DiskVersion> lose(const Key& key, const DiskPlace& place, DiskLoss loss,
                                  Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  // The record there is written; false if there is no such entry.
  bool set_written(const Key& key, const DiskPlace& place);

  // --- slots, for sweeps ----------------------------------------------------------------------

  struct Slot {
    MixedKey key;
    DiskPlace place;
  };
  std::uint32_t slots() const { return table_.slots(); }
  // kKeep where the slot is empty or has a part: that has neither names nor text, and who purges
  // objects is not asked about it. REQUIRES: ref < slots().
  Verdict visit(EntryRef ref, Visitor& visitor) const;
  Slot slot(EntryRef ref) const { return {table_.key(ref), table_.place(ref)}; }
  // The slot of that record, kNoEntry if there is none.
  EntryRef find(const Slot& slot) const { return table_.find_at(slot.key, slot.place); }
  // REQUIRES: the verdict is not kKeep.
  void apply(EntryRef ref, Verdict verdict, MonotonicTime now, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);

  // --- reclaiming, loading --------------------------------------------------------------------

  // The bound of one critical section.
  static constexpr std::uint32_t kReclaimMax = 256;
  struct ReclaimStep {
    std::uint16_t disk = 0;
    std::span<const DiskPlace> being_read;
    MonotonicTime now;
  };
  struct Reclaimed {
    DiskReclaim done;
    bool counted = false;  // no more than that
    std::uint64_t moved_bytes = 0;
    std::uint64_t dropped_bytes = 0;
    std::uint64_t digest = 0;  // over all places
  };
  // At most kReclaimMax entries of the segment that is reclaimed are moved or dropped. REQUIRES: it
  // is this shard's turn (DiskTier::reclaim_shard).
  Reclaimed reclaim(const ReclaimStep& step, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);

  // Each record that is the newest of its key and variant, and for which there is room, is an entry
  // from now on.
  DiskLoaded load(std::span<const DiskRecord> records, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  // There will be about so many entries; 0: it is not known.
  void expect(std::uint64_t entries) { table_.expect(entries); }

 private:
  // An entry of the segment that is reclaimed.
  struct ReclaimCandidate {
    EntryRef ref = kNoEntry;
    std::uint32_t unit = 0;
    std::uint32_t visits = 0;
    bool in_memory = false;
  };

  static std::uint32_t low_half(std::uint64_t variant) {
    return static_cast<std::uint32_t>(variant);
  }
  static MixedKey mixed_of(const Key& key) { return EntryKeys::mixed_key(key.hash); }
  static bool is_full(const Budget& budget, const DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  void insert(const DiskTable::Record& record, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  void erase(EntryRef ref, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  void count_loss(EntryRef ref, DiskLoss loss, DiskTier& tier) const ENCORE_REQUIRES(tier.mutex);
  DiskObject object_of(const ReclaimCandidate& found, std::span<const DiskPlace> being_read) const;
  // In the order in which they come.
  std::vector<ReclaimCandidate> found_in(std::uint16_t disk, std::uint32_t segment,
                                         std::uint32_t entries_max) const;
  void drop(EntryRef ref, DiskLoss loss, Reclaimed& reclaimed, Budget& budget, DiskTier& tier)
      ENCORE_REQUIRES(budget.mutex, tier.mutex);
  bool load_one(std::size_t number, const DiskRecord& record, DiskLoaded& loaded, Budget& budget,
                DiskTier& tier) ENCORE_REQUIRES(budget.mutex, tier.mutex);

  const Table& memory_;
  const std::uint32_t shard_;
  const DiskPolicy* policy_ = nullptr;
  std::uint32_t variants_max_ = 0;
  DiskTable table_;
};

}  // namespace encore::cache
