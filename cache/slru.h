// Segmented LRU: Karedla, Love, Wherry: "Caching strategies to improve disk system performance"
// (1994). A hit lifts an entry into a protected segment, four fifths of the entries; what falls out
// of it gets another chance on probation.
#pragma once

#include "cache/counted_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Slru {
 public:
  explicit Slru(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).policy_bits = 0;
    probation_.push_newest(slab_, ref);
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    (entry.policy_bits != 0 ? protected_ : probation_).unlink(slab_, ref);
    entry.policy_bits = 1;
    protected_.push_newest(slab_, ref);
    const std::uint64_t all = std::uint64_t{protected_.size()} + probation_.size();
    if (std::uint64_t{protected_.size()} * kParts > all * kProtectedParts) {
      const EntryRef falls = protected_.oldest();
      protected_.unlink(slab_, falls);
      slab_.hot(falls).policy_bits = 0;
      probation_.push_newest(slab_, falls);
    }
  }

  void remove(EntryRef ref, Removal /*why*/) {
    (slab_.hot(ref).policy_bits != 0 ? protected_ : probation_).unlink(slab_, ref);
  }

  EntryRef victim() {
    return probation_.oldest() != kNoEntry ? probation_.oldest() : protected_.oldest();
  }

 private:
  static constexpr std::uint64_t kParts = 5;
  static constexpr std::uint64_t kProtectedParts = 4;
  EntrySlab& slab_;
  CountedList probation_;
  CountedList protected_;
};
static_assert(EvictionOrder<Slru>);

}  // namespace encore::cache
