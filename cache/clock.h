// CLOCK: Corbató: "A paging experiment with the Multics system" (1968). Entries stand in a ring in
// the order of their insertion; a hit sets one bit; the hand evicts the first entry without it, and
// takes it from those that it passes. With more than one round a hit adds to a counter, and the
// hand subtracts one. SIEVE differs in where a new entry stands: there ahead of all others, here
// behind the hand.
#pragma once

#include <array>

#include "cache/entry_list.h"
#include "cache/eviction_order.h"

namespace encore::cache {

class Clock {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::count("rounds", 1, 1, 65535, "the most rounds of the hand that hits give")};

  explicit Clock(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        rounds_(static_cast<std::uint32_t>(settings.values.count(kParameters, "rounds"))) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    slab_.hot(ref).policy_bits = 0;
    ring_.push_newest(slab_, ref);
    ++entries_;
  }
  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    if (entry.policy_bits < rounds_) {  // a popular entry's line stays clean
      ++entry.policy_bits;
    }
  }
  void remove(EntryRef ref, Removal /*why*/) {
    ring_.unlink(slab_, ref);
    --entries_;
  }
  // The hand is at the oldest: what it passes becomes the newest.
  EntryRef victim() {
    for (std::uint32_t looked_at = 0; looked_at < kSearchMax; ++looked_at) {
      const EntryRef ref = ring_.oldest();
      if (ref == kNoEntry || slab_.hot(ref).policy_bits == 0) {
        passed_ = 0;
        return ref;
      }
      --slab_.hot(ref).policy_bits;
      ring_.unlink(slab_, ref);
      ring_.push_newest(slab_, ref);
      if (++passed_ >= entries_) {
        passed_ = 0;
        return kAllUsed;
      }
    }
    return kSearching;
  }

 private:
  EntrySlab& slab_;
  const std::uint32_t rounds_;
  EntryList ring_;
  std::uint32_t entries_ = 0;
  std::uint32_t passed_ = 0;  // since the hand found a victim, or said that all are used
};
static_assert(EvictionOrder<Clock>);

}  // namespace encore::cache
