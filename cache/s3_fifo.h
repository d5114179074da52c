// S3-FIFO: Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction" (SOSP
// 2023). New entries go to a small queue, a tenth of the cache; those asked for twice there go on
// to the main queue, the others leave a ghost, which sends them to the main queue when they come
// back. The main queue gives an entry another round for each hit, up to three. Queues are measured
// in entries, for a freshening may change what an entry takes.
#pragma once

#include <array>

#include "cache/counted_list.h"
#include "cache/eviction_order.h"
#include "cache/ghost_queue.h"

namespace encore::cache {

class S3Fifo {
 public:
  static constexpr std::array kParameters = {
      PolicyParameter::share("small", 0.1, 0.0001, 0.9999, "small queue, of all entries"),
      PolicyParameter::share("ghost", 1, 0, 100, "ghosts, of the entries of the main queue"),
      PolicyParameter::count("promote", 2, 1, 3,
                             "hits in the small queue that lead to the main one")};

  explicit S3Fifo(EntrySlab& slab, const EvictionSettings& settings = {})
      : slab_(slab),
        small_share_(settings.values.share(kParameters, "small")),
        ghost_share_(settings.values.share(kParameters, "ghost")),
        promote_(static_cast<std::uint32_t>(settings.values.count(kParameters, "promote"))) {}

  void insert(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    // Until the first eviction there is room for all: what the small queue has no place for goes
    // to the main one.
    const bool to_main =
        ghosts_.take(entry.key) || (!filled_ && small_share_.exceeded_by(small_.size(), total()));
    entry.policy_bits = to_main ? kMain : 0;
    (to_main ? main_ : small_).push_newest(slab_, ref);
  }

  void hit(EntryRef ref, const Access& /*access*/) {
    HotEntry& entry = slab_.hot(ref);
    if ((entry.policy_bits & kHits) != kHitsMax) {
      ++entry.policy_bits;
    }
  }

  void remove(EntryRef ref, Removal why) {
    filled_ = filled_ || why == Removal::kEvicted;
    const HotEntry& entry = slab_.hot(ref);
    const bool in_main = (entry.policy_bits & kMain) != 0;
    if (!in_main && why == Removal::kEvicted) {
      ghosts_.insert(entry.key);
      ghosts_.shrink_to(ghost_share_.of(main_.size()));
    }
    (in_main ? main_ : small_).unlink(slab_, ref);
  }

  void expect(const filter::Hash128& key) const { ghosts_.prefetch(key); }

  EntryRef victim() {
    for (std::uint32_t looked_at = 0; looked_at < kSearchMax; ++looked_at) {
      const bool from_small =
          small_.size() != 0 &&
          (main_.size() == 0 || small_share_.reached_by(small_.size(), total()));
      const EntryRef ref = (from_small ? small_ : main_).oldest();
      if (ref == kNoEntry) {
        return kNoEntry;
      }
      HotEntry& entry = slab_.hot(ref);
      const std::uint32_t hits = entry.policy_bits & kHits;
      if (from_small ? hits < promote_ : hits == 0) {
        return ref;
      }
      (from_small ? small_ : main_).unlink(slab_, ref);
      entry.policy_bits = static_cast<std::uint16_t>(kMain | (from_small ? 0U : hits - 1));
      main_.push_newest(slab_, ref);
    }
    return kSearching;
  }

 private:
  static constexpr std::uint32_t kHits = 3;
  static constexpr std::uint32_t kHitsMax = 3;
  static constexpr std::uint32_t kMain = 4;
  std::uint64_t total() const { return std::uint64_t{small_.size()} + main_.size(); }

  EntrySlab& slab_;
  const Share small_share_;
  const Share ghost_share_;
  const std::uint32_t promote_;
  CountedList small_;
  CountedList main_;
  GhostQueue ghosts_;
  bool filled_ = false;
};
static_assert(EvictionOrder<S3Fifo>);

}  // namespace encore::cache
