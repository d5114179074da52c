// Segmented LRU: Karedla, Love, Wherry: "Caching strategies to improve disk system performance"
// (1994). A hit lifts an entry into a protected segment, four fifths of the entries; what falls out
// of it gets another chance on probation.
#pragma once

#include <array>

#include "cache/counted_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Slru {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("protected", 0.8, 0, 1, "protected segment, of all entries")};

  explicit Slru(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab), protected_share_(settings.values.share(kParameters, "protected")) {}

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
    if (protected_share_.exceeded_by(protected_.size(), all)) {
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
  EntrySlab& slab_;
  const Share protected_share_;
  CountedList probation_;
  CountedList protected_;
};
static_assert(EvictionOrder<Slru>);

}  // namespace encore::cache
