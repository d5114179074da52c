// LFU: the entry that was used least since its insertion goes first; among equals the one that has
// been so for longest. Entries of one frequency are a list, and the lists stand in the order of
// their frequencies, so that no step depends on the number of entries. Shah, Mitra, Matani: "An
// O(1) algorithm for implementing the LFU cache eviction scheme" (2010). 4 bytes an entry, and 32
// for each frequency in use.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/chunked_vector.h"
#include "cache/entry_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Lfu {
 public:
  explicit Lfu(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    while (groups_of_.size() <= ref) {
      groups_of_.push_back(kNone);
    }
    if (lowest_ == kNone || groups_[lowest_].frequency != 1) {
      lowest_ = add_group(1, kNone, lowest_);
    }
    put(ref, lowest_);
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    const std::uint32_t from = groups_of_[ref];
    const std::uint64_t frequency = groups_[from].frequency + 1;
    const std::uint32_t above = groups_[from].higher;
    const bool has_group = above != kNone && groups_[above].frequency == frequency;
    if (!has_group && is_alone(ref, from)) {
      groups_[from].frequency = frequency;
      return;
    }
    const std::uint32_t to = has_group ? above : add_group(frequency, from, above);
    take(ref, from);
    put(ref, to);
  }

  void remove(EntryRef ref, Removal /*why*/) { take(ref, groups_of_[ref]); }

  EntryRef victim() { return lowest_ == kNone ? kNoEntry : groups_[lowest_].entries.oldest(); }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  // Entries of one frequency.
  struct Group {
    std::uint64_t frequency = 0;
    EntryList entries;
    std::uint32_t lower = kNone;
    std::uint32_t higher = kNone;  // in a free place: the next one
  };

  bool is_alone(EntryRef ref, std::uint32_t group) const {
    return groups_[group].entries.newest() == ref && groups_[group].entries.oldest() == ref;
  }
  void put(EntryRef ref, std::uint32_t group) {
    groups_of_[ref] = group;
    groups_[group].entries.push_newest(slab_, ref);
  }
  // Its group goes with the last of its entries.
  void take(EntryRef ref, std::uint32_t group) {
    Group& from = groups_[group];
    from.entries.unlink(slab_, ref);
    if (from.entries.newest() != kNoEntry) {
      return;
    }
    (from.lower == kNone ? lowest_ : groups_[from.lower].higher) = from.higher;
    if (from.higher != kNone) {
      groups_[from.higher].lower = from.lower;
    }
    from.higher = free_;
    free_ = group;
  }
  // Returns a group between these two, either of which may be none.
  std::uint32_t add_group(std::uint64_t frequency, std::uint32_t lower, std::uint32_t higher) {
    std::uint32_t made = free_;
    if (made == kNone) {
      made = static_cast<std::uint32_t>(groups_.size());
      groups_.emplace_back();
    } else {
      free_ = groups_[made].higher;
    }
    groups_[made] = {.frequency = frequency, .entries = {}, .lower = lower, .higher = higher};
    if (lower != kNone) {
      groups_[lower].higher = made;
    }
    if (higher != kNone) {
      groups_[higher].lower = made;
    }
    return made;
  }

  EntrySlab& slab_;
  ChunkedVector<std::uint32_t> groups_of_;  // by entry
  std::vector<Group> groups_;
  std::uint32_t lowest_ = kNone;
  std::uint32_t free_ = kNone;
};
static_assert(EvictionOrder<Lfu>);

}  // namespace encore::cache
