#include "cache/lecar.h"

#include <algorithm>

namespace encore::cache {

Lecar::Lecar(EntrySlab& slab, const EvictionSettings& settings)
    : slab_(slab),
      learning_rate_(settings.values.real(kParameters, "learning-rate")),
      discount_(settings.values.real(kParameters, "discount")),
      ghost_share_(settings.values.share(kParameters, "ghost")),
      lru_weight_(settings.values.real(kParameters, "lru")),
      draws_(settings.values.count(kParameters, "seed")) {}

void Lecar::insert(EntryRef ref, const Access& /*access*/) {
  ++clock_;
  double frequency = 1;
  for (const Expert expert : {kLru, kLfu}) {
    if (const auto ghost = histories_[expert].take(slab_.hot(ref).key)) {
      frequency = ghost->frequency + 1;
      regret(expert, clock_ - ghost->evicted);
    }
  }
  links_.cover(ref);
  recency_.push_newest(links_, ref);
  frequencies_.insert(slab_, ref, frequency);
}

void Lecar::hit(EntryRef ref, const Access& /*access*/) {
  ++clock_;
  forget_victim(ref);
  recency_.unlink(links_, ref);
  recency_.push_newest(links_, ref);
  frequencies_.change(slab_, ref, frequencies_.priority(slab_, ref) + 1);
}

void Lecar::remove(EntryRef ref, Removal why) {
  if (why == Removal::kEvicted && ref == victim_ && victim_of_ != kBoth) {
    auto& history = histories_[victim_of_];
    history.take(slab_.hot(ref).key);  // another variant's
    const std::uint64_t limit = ghost_share_.of(frequencies_.size());
    if (limit != 0) {
      history.insert(slab_.hot(ref).key, {frequencies_.priority(slab_, ref), clock_});
    }
    while (history.size() > limit) {
      history.take_oldest();
    }
  }
  forget_victim(ref);
  recency_.unlink(links_, ref);
  frequencies_.remove(slab_, ref);
}

EntryRef Lecar::victim() {
  if (victim_ != kNoEntry || frequencies_.empty()) {
    return victim_;
  }
  const EntryRef oldest = recency_.oldest();
  const EntryRef rarest = frequencies_.at(0).ref;
  const Expert drawn = draws_.unit() < lru_weight_ ? kLru : kLfu;
  victim_ = drawn == kLru ? oldest : rarest;
  victim_of_ = oldest == rarest ? kBoth : drawn;
  return victim_;
}

}  // namespace encore::cache
