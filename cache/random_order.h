// Random: any entry goes, each as likely as the others (Belady 1966, who compared policies with
// it). The draws are those of a generator of its own, so that a run can be repeated. 4 bytes an
// entry.
#pragma once

#include <array>
#include <cstdint>

#include "cache/chunked_vector.h"
#include "cache/draws.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class RandomOrder {
 public:
  static constexpr std::array kParameters = {kSeedParameter};

  explicit RandomOrder(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab), draws_(settings.values.count(kParameters, "seed")) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).newer = static_cast<EntryRef>(entries_.size());
    entries_.push_back(ref);
  }
  void hit(EntryRef /*ref*/, const Access& /*access*/) {}
  void remove(EntryRef ref, Removal /*why*/) {
    victim_ = victim_ == ref ? kNoEntry : victim_;
    const std::uint32_t place = slab_.hot(ref).newer;
    entries_[place] = entries_[entries_.size() - 1];
    slab_.hot(entries_[place]).newer = place;
    entries_.pop_back();
  }
  EntryRef victim() {
    if (victim_ == kNoEntry && !entries_.empty()) {
      victim_ = entries_[draws_.below(entries_.size())];
    }
    return victim_;
  }

 private:
  EntrySlab& slab_;
  ChunkedVector<EntryRef> entries_;
  Draws draws_;
  EntryRef victim_ = kNoEntry;  // chosen, until it goes
};
static_assert(EvictionOrder<RandomOrder>);

}  // namespace encore::cache
