// ARC: Megiddo, Modha: "ARC: a self-tuning, low overhead replacement cache" (FAST 2003). Entries
// seen once (T1) and more often (T2), ghosts of both (B1, B2); a ghost that comes back moves the
// target size of T1. The victim is chosen before the candidate is known, so the paper's tie rule
// for keys of B2 is left out.
#pragma once

#include <algorithm>

#include "cache/counted_list.h"
#include "cache/eviction_order.h"
#include "cache/ghost_queue.h"

namespace encore::cache {

class Arc {
 public:
  explicit Arc(EntrySlab& slab) : slab_(slab) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    const auto once = static_cast<double>(std::max<std::size_t>(once_ghosts_.size(), 1));
    const auto often = static_cast<double>(std::max<std::size_t>(often_ghosts_.size(), 1));
    entry.policy_bits = 1;
    if (once_ghosts_.take(entry.key)) {
      target_ = std::min(target_ + std::max(1.0, often / once), all() + 1);
    } else if (often_ghosts_.take(entry.key)) {
      target_ = std::max(target_ - std::max(1.0, once / often), 0.0);
    } else {
      entry.policy_bits = 0;
    }
    list_of(ref).push_newest(slab_, ref);
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    list_of(ref).unlink(slab_, ref);
    slab_.hot(ref).policy_bits = 1;
    often_.push_newest(slab_, ref);
  }

  void remove(EntryRef ref, Removal why) {
    const HotEntry& entry = slab_.hot(ref);
    if (why == Removal::kEvicted) {
      (entry.policy_bits != 0 ? often_ghosts_ : once_ghosts_).insert(entry.key);
      // |T1| + |B1| <= c and all four together <= 2c.
      const auto c = static_cast<std::size_t>(all());
      once_ghosts_.shrink_to(c - std::min<std::size_t>(c, once_.size()));
      often_ghosts_.shrink_to(c - std::min(c, once_ghosts_.size()));
    }
    list_of(ref).unlink(slab_, ref);
  }

  void expect(const filter::Hash128& key) const {
    once_ghosts_.prefetch(key);
    often_ghosts_.prefetch(key);
  }

  EntryRef victim() {
    const bool from_once =
        once_.size() != 0 && (often_.size() == 0 || static_cast<double>(once_.size()) > target_);
    return (from_once ? once_ : often_).oldest();
  }

 private:
  double all() const { return static_cast<double>(once_.size()) + often_.size(); }
  CountedList& list_of(EntryRef ref) { return slab_.hot(ref).policy_bits != 0 ? often_ : once_; }

  EntrySlab& slab_;
  CountedList once_;
  CountedList often_;
  GhostQueue once_ghosts_;
  GhostQueue often_ghosts_;
  double target_ = 0;  // target size of once_, in entries
};
static_assert(EvictionOrder<Arc>);

}  // namespace encore::cache
