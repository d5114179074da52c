// Belady's MIN (1966): the entry whose next use is farthest in the future goes first. The hint of
// an access is the number of the request that uses the entry next (all ones: none does), so only a
// simulation can run it. Where sizes differ MIN is not optimal: then the largest size times
// distance goes, the best of 64 entries drawn by a generator of its own, as an estimate of the
// bound.
#pragma once

#include <limits>

#include "cache/entry_heap.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Belady {
 public:
  explicit Belady(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& access) {
    const std::uint64_t charge = slab_.hot(ref).charge;
    sizes_differ_ = sizes_differ_ || (!heap_.empty() && charge != charge_);
    charge_ = charge;
    heap_.insert(slab_, ref, priority(access));
  }
  // The entry that is used now was the one with the nearest next use: `now_` follows from it.
  void hit(EntryRef ref, const Access& access) {
    const double was = -heap_.priority(slab_, ref);
    now_ = was < kNever && was > now_ ? was : now_;
    heap_.change(slab_, ref, priority(access));
  }
  void resized(EntryRef /*ref*/) { sizes_differ_ = true; }
  void remove(EntryRef ref, Removal /*why*/) { heap_.remove(slab_, ref); }

  EntryRef victim() {
    if (heap_.empty()) {
      return kNoEntry;
    }
    if (!sizes_differ_ || -heap_.at(0).priority >= kNever) {
      return heap_.at(0).ref;
    }
    EntryRef best = kNoEntry;
    double most = -1;
    for (std::uint32_t i = 0; i < kSample; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      const EntryHeap::Node& node = heap_.at((random_ >> 33U) % heap_.size());
      const double distance = -node.priority - now_;
      const double cost = distance * static_cast<double>(slab_.hot(node.ref).charge);
      if (cost > most) {
        most = cost;
        best = node.ref;
      }
    }
    return best == kNoEntry ? heap_.at(0).ref : best;
  }

 private:
  static constexpr std::uint32_t kSample = 64;
  static constexpr double kNever = 0x1p63;
  // The farthest is the lowest.
  static double priority(const Access& access) { return -static_cast<double>(access.hint); }

  EntrySlab& slab_;
  EntryHeap heap_;
  double now_ = 0;
  std::uint64_t charge_ = 0;
  bool sizes_differ_ = false;
  std::uint64_t random_ = 1;
};
static_assert(EvictionOrder<Belady>);

}  // namespace encore::cache
