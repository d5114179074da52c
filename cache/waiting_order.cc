#include "cache/waiting_order.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {
namespace {

// An entry that waits is in no eviction order, whose two links hold the number of its arrival.
std::uint64_t number_of(const HotEntry& entry) {
  return entry.newer | std::uint64_t{entry.older} << 32U;
}

}  // namespace

void WaitingOrder::insert(EntryRef ref, const Arrival& arrival) {
  ENCORE_CHECK(slots_.empty() || slots_.back().arrival.number < arrival.number,
               "who comes later has a higher number");
  HotEntry& entry = slab_.hot(ref);
  entry.newer = static_cast<EntryRef>(arrival.number);
  entry.older = static_cast<EntryRef>(arrival.number >> 32U);
  slots_.push_back({arrival, ref});
  ++objects_;
  bytes_ += entry.charge;
}

void WaitingOrder::remove(EntryRef ref) {
  const HotEntry& entry = slab_.hot(ref);
  const auto slot = std::ranges::lower_bound(slots_, number_of(entry), {},
                                             [](const Slot& at) { return at.arrival.number; });
  ENCORE_CHECK(slot != slots_.end() && slot->ref == ref, "an entry that waits has a place");
  slot->ref = kNoEntry;
  --objects_;
  bytes_ -= entry.charge;
  while (!slots_.empty() && slots_.front().ref == kNoEntry) {
    slots_.pop_front();
  }
}

}  // namespace encore::cache
