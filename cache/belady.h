// Belady's MIN (1966) with bypass: the entry whose next use is farthest in the future goes first,
// and an object that would be that one is not stored at all. The hint of an access is the number of
// the request that uses the entry next (all ones: none does), so only a simulation can run it.
//
// Belady's MIN. If all entries have the same charge, in one shard and with nothing that becomes
// stale, no policy misses less, whatever it admits. With different charges MIN is not optimal, and
// this is a good guess instead of a bound (sim/replay/offline_bounds.h has bounds): it evicts the
// entry with the largest product of charge and distance, the best of 64 entries drawn by a
// generator of its own.
#pragma once

#include <array>

#include "cache/entry_heap.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Belady {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::count("sample", 64, 1, 65536,
                             "where sizes differ: entries that are compared"),
      kSeedParameter};

  explicit Belady(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        sample_(settings.values.count(kParameters, "sample")),
        random_(settings.values.count(kParameters, "seed")) {}

  void insert(EntryRef ref, const Access& access) {
    victim_ = kNoEntry;
    const std::uint64_t charge = slab_.hot(ref).charge;
    sizes_differ_ = sizes_differ_ || differs(charge);
    charge_ = charge;
    heap_.insert(slab_, ref, priority(access.hint));
  }
  // The entry that is used now was the one with the nearest next use: `now_` follows from it.
  void hit(EntryRef ref, const Access& access) {
    victim_ = kNoEntry;
    const double was = -heap_.priority(slab_, ref);
    now_ = was < kNever && was > now_ ? was : now_;
    heap_.change(slab_, ref, priority(access.hint));
  }
  void resized(EntryRef /*ref*/) {
    victim_ = kNoEntry;
    sizes_differ_ = true;
  }
  void remove(EntryRef ref, Removal /*why*/) {
    victim_ = kNoEntry;
    heap_.remove(slab_, ref);
  }

  EntryRef victim() {
    if (victim_ == kNoEntry && !heap_.empty()) {
      victim_ = choose();
    }
    return victim_;
  }

  // True if a candidate is the one that goes first.
  bool bypasses(const InsertCandidate& candidate) {
    if (candidate.hint == UINT64_MAX) {
      return true;
    }
    if (!candidate.needs_room || heap_.empty()) {
      return false;
    }
    sizes_differ_ = sizes_differ_ || differs(candidate.charge_bytes);
    const EntryRef other = victim();
    const double other_next = -heap_.priority(slab_, other);
    const auto next = static_cast<double>(candidate.hint);
    return sizes_differ_ && other_next < kNever
               ? cost(next, candidate.charge_bytes) >= cost(other_next, slab_.hot(other).charge)
               : next >= other_next;
  }

 private:
  static constexpr double kNever = 0x1p63;
  // The farthest is the lowest.
  static double priority(std::uint64_t hint) { return -static_cast<double>(hint); }
  bool differs(std::uint64_t charge) const { return !heap_.empty() && charge != charge_; }
  double cost(double next, std::uint64_t charge) const {
    return (next - now_) * static_cast<double>(charge);
  }
  EntryRef choose() {
    if (!sizes_differ_ || -heap_.at(0).priority >= kNever) {
      return heap_.at(0).ref;
    }
    EntryRef best = kNoEntry;
    double most = -1;
    const std::uint64_t compared = sample_;
    for (std::uint64_t i = 0; i < compared; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      const EntryHeap::Node& node = heap_.at((random_ >> 33U) % heap_.size());
      const double of_node = cost(-node.priority, slab_.hot(node.ref).charge);
      if (of_node > most) {
        most = of_node;
        best = node.ref;
      }
    }
    return best == kNoEntry ? heap_.at(0).ref : best;
  }

  EntrySlab& slab_;
  const std::uint64_t sample_;
  EntryHeap heap_;
  double now_ = 0;
  std::uint64_t charge_ = 0;
  bool sizes_differ_ = false;
  std::uint64_t random_;
  EntryRef victim_ = kNoEntry;  // chosen, until an entry comes, is used or goes
};
static_assert(EvictionOrder<Belady>);

}  // namespace encore::cache
