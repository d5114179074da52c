// Greedy-Dual by frequency: the entry with the lowest priority goes first, the least recent among
// equals.
//
// Gdsf: Greedy-Dual-Size-Frequency (Cherkasova 1998), priority = L + frequency * cost / size, where
// L is the priority of the last victim: small and popular objects stay, old fame fades. The cost of
// a miss is 1 unless its parameter says otherwise.
// Lfuda: LFU with dynamic aging (Arlitt, Cherkasova, Dilley, Friedrich, Jin 1999), the same without
// the size, for hits by bytes.
#pragma once

#include <algorithm>
#include <array>

#include "cache/entry_heap.h"
#include "cache/eviction_order.h"
#include "cache/miss_cost.h"

namespace encore::cache {

inline constexpr std::uint32_t kFrequencyMax = 0xffff;

template <bool kBySize>
class GreedyDual {
 public:
  static constexpr std::array kParameters = {MissCost::kParameter};

  explicit GreedyDual(EntrySlab& slab) : slab_(slab) {}
  GreedyDual(EntrySlab& slab, const EvictionSettings& settings)
    requires kBySize
      : slab_(slab), cost_(settings.values.count(kParameters, MissCost::kName), settings.fetch) {}
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
    const auto frequency = static_cast<double>(entry.policy_bits);
    if constexpr (!kBySize) {
      return inflation_ + frequency;
    }
    const auto size = static_cast<double>(std::max<std::uint64_t>(entry.charge, 1));
    return inflation_ + frequency * cost_.of(size) / size;
  }

  EntrySlab& slab_;
  EntryHeap heap_;
  double inflation_ = 0;
  MissCost cost_{0, {}};
};
using Gdsf = GreedyDual<true>;
using Lfuda = GreedyDual<false>;
static_assert(EvictionOrder<Gdsf>);
static_assert(EvictionOrder<Lfuda>);

}  // namespace encore::cache
