// LRU-K for K = 2: O'Neil, O'Neil, Weikum: "The LRU-K page replacement algorithm for database disk
// buffering" (SIGMOD 1993). The entry goes first whose last use but one is longest ago; before all
// of these go those that were used once, the least recent first. The last use of evicted keys is
// remembered, of as many as there are entries: one that comes back soon was used twice. No period
// is taken for correlated. 32 bytes an entry, 45 to 67 for each remembered key.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "cache/chunked_vector.h"
#include "cache/entry_heap.h"
#include "cache/eviction_order.h"
#include "cache/ghost_queue.h"

namespace encore::cache {

class LruTwo {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("ghost", 1, 0, 100, "remembered evicted keys, of the entries")};

  explicit LruTwo(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab), ghost_share_(settings.values.share(kParameters, "ghost")) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    while (last_.size() <= ref) {
      last_.push_back(0);
    }
    const std::uint64_t before = remembered_.take(filter::remix(slab_.hot(ref).key));
    last_[ref] = ++clock_;
    heap_.insert(slab_, ref, before == 0 ? once(clock_) : static_cast<double>(before));
  }
  void hit(EntryRef ref, const Access& /*access*/) {
    heap_.change(slab_, ref, static_cast<double>(last_[ref]));
    last_[ref] = ++clock_;
  }
  void remove(EntryRef ref, Removal why) {
    if (why == Removal::kEvicted) {
      const std::uint64_t key = filter::remix(slab_.hot(ref).key);
      remembered_.set(key, last_[ref]);
      order_.push_back({key, last_[ref]});
      while (order_.size() > ghost_share_.of(heap_.size())) {
        remembered_.erase(order_.front().key, order_.front().last);
        order_.pop_front();
      }
    }
    heap_.remove(slab_, ref);
  }
  EntryRef victim() { return heap_.empty() ? kNoEntry : heap_.at(0).ref; }

 private:
  struct Remembered {
    std::uint64_t key;
    std::uint64_t last;
  };
  // Below all that were used twice, in the order of that one use.
  static double once(std::uint64_t time) { return static_cast<double>(time) - 0x1p53; }

  EntrySlab& slab_;
  const Share ghost_share_;
  EntryHeap heap_;
  ChunkedVector<std::uint64_t> last_;  // time of the last use, by entry
  GhostMap remembered_;                // that of evicted keys
  std::deque<Remembered> order_;       // first evicted first, also those that came back
  std::uint64_t clock_ = 0;            // accesses
};
static_assert(EvictionOrder<LruTwo>);

}  // namespace encore::cache
