// GDSF: Greedy-Dual-Size-Frequency (Cherkasova 1998), priority = L + frequency / size, where L is
// the priority of the last victim: small and popular objects stay, old fame fades. The lowest goes
// first, the least recent among equals.
#pragma once

#include <algorithm>

#include "cache/entry_heap.h"
#include "cache/eviction_order.h"

namespace encore::cache {

inline constexpr std::uint32_t kFrequencyMax = 0xffff;

class Gdsf {
 public:
  explicit Gdsf(EntrySlab& slab) : slab_(slab) {}
  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).policy_bits = 1;
    heap_.insert(slab_, ref, priority(ref));
  }
  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    if (entry.policy_bits != kFrequencyMax) {
      ++entry.policy_bits;
    }
    resized(ref);
  }
  void resized(EntryRef ref) { heap_.change(slab_, ref, priority(ref)); }
  void remove(EntryRef ref, Removal why) {
    if (why == Removal::kEvicted) {
      inflation_ = std::max(inflation_, heap_.priority(slab_, ref));
    }
    heap_.remove(slab_, ref);
  }
  EntryRef victim() { return heap_.empty() ? kNoEntry : heap_.at(0).ref; }

 private:
  double priority(EntryRef ref) const {
    const HotEntry& entry = slab_.hot(ref);
    const auto size = static_cast<double>(std::max<std::uint64_t>(entry.charge, 1));
    return inflation_ + static_cast<double>(entry.policy_bits) / size;
  }

  EntrySlab& slab_;
  EntryHeap heap_;
  double inflation_ = 0;
};
static_assert(EvictionOrder<Gdsf>);

}  // namespace encore::cache
