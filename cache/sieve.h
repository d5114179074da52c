// SIEVE: Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is simpler than LRU" (NSDI 2024). Entries stay
// in the order of their insertion; a hit sets one bit; a hand moves from the oldest to the newest,
// clears bits and evicts the first entry without one.
#pragma once

#include "cache/entry_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Sieve {
 public:
  explicit Sieve(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).policy_bits = 0;
    list_.push_newest(slab_, ref);
    ++entries_;
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    if (entry.policy_bits == 0) {  // a popular entry's line stays clean
      entry.policy_bits = 1;
    }
  }

  void remove(EntryRef ref, Removal /*why*/) {
    if (hand_ == ref) {
      hand_ = slab_.hot(ref).newer;
    }
    list_.unlink(slab_, ref);
    --entries_;
  }

  EntryRef victim() {
    EntryRef ref = hand_ == kNoEntry ? list_.oldest() : hand_;
    for (std::uint32_t looked_at = 0; ref != kNoEntry; ++looked_at) {
      HotEntry& entry = slab_.hot(ref);
      hand_ = ref;
      if (entry.policy_bits == 0) {
        spared_ = 0;
        return ref;
      }
      if (looked_at == kSearchMax) {
        return kSearching;
      }
      entry.policy_bits = 0;
      ref = entry.newer == kNoEntry ? list_.oldest() : entry.newer;
      if (++spared_ >= entries_) {
        spared_ = 0;
        hand_ = ref;
        return kAllUsed;
      }
    }
    return kNoEntry;
  }

 private:
  EntrySlab& slab_;
  EntryList list_;
  EntryRef hand_ = kNoEntry;  // kNoEntry: at the oldest
  std::uint32_t entries_ = 0;
  std::uint32_t spared_ = 0;  // by the hand since it found a victim, or said that all are used
};
static_assert(EvictionOrder<Sieve>);

}  // namespace encore::cache
