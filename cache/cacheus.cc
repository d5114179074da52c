#include "cache/cacheus.h"

#include <algorithm>

namespace encore::cache {

Cacheus::Cacheus(EntrySlab& slab, const EvictionSettings& settings)
    : slab_(slab),
      new_share_(settings.values.share(kParameters, "new")),
      ghost_share_(settings.values.share(kParameters, "ghost")),
      draws_(settings.values.count(kParameters, "seed")) {}

void Cacheus::insert(EntryRef ref, const Access& /*access*/) {
  count_request(false);
  Ghost ghost;
  const bool came_back = take_ghost(ref, ghost);
  links_.cover(ref);
  frequencies_.insert(slab_, ref, ghost.frequency + 1);
  if (came_back || !filled_) {
    put(ref, kReused);
  } else {
    put(ref, kNew);
  }
  limit_reused();
}

void Cacheus::hit(EntryRef ref, const Access& /*access*/) {
  count_request(true);
  forget_victim(ref);
  frequencies_.change(slab_, ref, frequencies_.priority(slab_, ref) + 1);
  const std::uint32_t was = slab_.hot(ref).policy_bits;
  if (was == kDemoted) {
    // As many as one that was evicted unused is worth.
    const std::uint64_t limit = new_limit();
    new_limit_ = limit - std::min(limit - 1, ratio(evicted_new_, demoted_));
  }
  take(ref);
  put(ref, kReused);
  limit_reused();
}

void Cacheus::remove(EntryRef ref, Removal why) {
  const std::uint32_t was = slab_.hot(ref).policy_bits;
  if (why == Removal::kEvicted && ref == victim_ && victim_of_ != kBoth) {
    remember(victim_of_, slab_.hot(ref).key,
             {.frequency = frequencies_.priority(slab_, ref), .was_new = was == kNew});
  }
  forget_victim(ref);
  take(ref);
  frequencies_.remove(slab_, ref);
}

EntryRef Cacheus::victim() {
  if (victim_ != kNoEntry || frequencies_.empty()) {
    return victim_;
  }
  if (!filled_) {
    filled_ = true;
    new_limit_ = std::max<std::uint64_t>(new_share_.of(entries()), 1);
    learning_rate_.begin(entries());
  }
  limit_reused();
  const EntryRef oldest = new_.oldest();
  const EntryRef rarest = frequencies_.at(0).ref;
  const Expert drawn = draws_.unit() < lru_weight_ ? kLru : kLfu;
  victim_ = drawn == kLru ? oldest : rarest;
  victim_of_ = oldest == rarest ? kBoth : drawn;
  return victim_;
}

}  // namespace encore::cache
