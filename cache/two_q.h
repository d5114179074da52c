// 2Q: Johnson, Shasha: "2Q: a low overhead high performance buffer management replacement
// algorithm" (VLDB 1994), the full version. A FIFO for new entries (a quarter of the cache), ghosts
// of entries that left it (half), and an LRU list for those that came back.
#pragma once

#include <array>

#include "cache/counted_list.h"
#include "cache/eviction_order.h"
#include "cache/ghost_queue.h"

namespace encore::cache {

class TwoQ {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("in", 0.25, 0, 1, "FIFO of new entries (A1in), of all entries"),
      PolicyParameter::share("ghost", 0.5, 0, 100, "ghosts (A1out), of the entries")};

  explicit TwoQ(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        in_share_(settings.values.share(kParameters, "in")),
        ghost_share_(settings.values.share(kParameters, "ghost")) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    entry.policy_bits = ghosts_.take(entry.key) ? 1 : 0;
    list_of(ref).push_newest(slab_, ref);
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    if (slab_.hot(ref).policy_bits != 0 && main_.newest() != ref) {
      main_.unlink(slab_, ref);
      main_.push_newest(slab_, ref);
    }
  }

  void remove(EntryRef ref, Removal why) {
    const HotEntry& entry = slab_.hot(ref);
    if (entry.policy_bits == 0 && why == Removal::kEvicted) {
      ghosts_.insert(entry.key);
      ghosts_.shrink_to(ghost_share_.of(std::uint64_t{in_.size()} + main_.size()));
    }
    list_of(ref).unlink(slab_, ref);
  }

  EntryRef victim() {
    const std::uint64_t all = std::uint64_t{in_.size()} + main_.size();
    const bool from_in =
        in_.size() != 0 && (main_.size() == 0 || in_share_.exceeded_by(in_.size(), all));
    return (from_in ? in_ : main_).oldest();
  }

 private:
  CountedList& list_of(EntryRef ref) { return slab_.hot(ref).policy_bits != 0 ? main_ : in_; }

  EntrySlab& slab_;
  const Share in_share_;
  const Share ghost_share_;
  CountedList in_;
  CountedList main_;
  GhostQueue ghosts_;
};
static_assert(EvictionOrder<TwoQ>);

}  // namespace encore::cache
