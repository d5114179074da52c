// Greedy-Dual by frequency: the entry with the lowest priority goes first, the least recent among
// equals.
//
// Gdsf: Greedy-Dual-Size-Frequency (Cherkasova 1998), priority = L + frequency / size, where L is
// the priority of the last victim: small and popular objects stay, old fame fades.
// Lfuda: LFU with dynamic aging (Arlitt, Cherkasova, Dilley, Friedrich, Jin 1999), the same without
// the size, for hits by bytes.
#pragma once

#include <algorithm>

#include "cache/entry_heap.h"
#include "cache/eviction_order.h"

namespace encore::cache {

inline constexpr std::uint32_t kFrequencyMax = 0xffff;

template <bool kBySize>
class GreedyDual {
 public:
  explicit GreedyDual(EntrySlab& slab) : slab_(slab) {}
  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).policy_bits = 1;
    heap_.insert(slab_, ref, priority(ref));
  }
  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    if (entry.policy_bits != kFrequencyMax) {
      ++entry.policy_bits;
    }
    heap_.change(slab_, ref, priority(ref));
  }
  void resized(EntryRef ref) {
    if constexpr (kBySize) {
      heap_.change(slab_, ref, priority(ref));
    }
  }
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
    const auto size = kBySize ? static_cast<double>(std::max<std::uint64_t>(entry.charge, 1)) : 1.0;
    return inflation_ + static_cast<double>(entry.policy_bits) / size;
  }

  EntrySlab& slab_;
  EntryHeap heap_;
  double inflation_ = 0;
};
using Gdsf = GreedyDual<true>;
using Lfuda = GreedyDual<false>;
static_assert(EvictionOrder<Gdsf>);
static_assert(EvictionOrder<Lfuda>);

}  // namespace encore::cache
