#include "cache/lrb.h"

#include <algorithm>

namespace encore::cache {

Lrb::Lrb(EntrySlab& slab, const EvictionSettings& settings)
    : slab_(slab),
      window_share_(settings.values.share(kParameters, "window")),
      sample_(settings.values.count(kParameters, "sample")),
      batch_(settings.values.count(kParameters, "batch")),
      by_size_(settings.values.count(kParameters, "by-size") != 0),
      draws_(settings.values.count(kParameters, "seed")) {
  if (settings.make_regressor != nullptr) {
    model_ = settings.make_regressor(
        {.width = UseHistory::kFeatures,
         .trees = static_cast<std::uint32_t>(settings.values.count(kParameters, "trees")),
         .leaves = static_cast<std::uint32_t>(settings.values.count(kParameters, "leaves")),
         .rate = settings.values.real(kParameters, "rate"),
         .seed = settings.values.count(kParameters, "seed")});
  }
}

void Lrb::insert(EntryRef ref, const Access& /*access*/) {
  begin_request();
  const std::uint64_t key = filter::remix(slab_.hot(ref).key);
  auto number = static_cast<std::uint32_t>(evicted_.take(key));
  if (number == kNone) {
    number = allocate(key);
    know(number);
  }
  records_[number].ref = ref;
  slab_.hot(ref).newer = number;
  slab_.hot(ref).older = static_cast<EntryRef>(entries_.size());
  entries_.push_back(ref);
  links_.cover(ref);
  recency_.push_newest(links_, ref);
  use(number);
}

void Lrb::hit(EntryRef ref, const Access& /*access*/) {
  begin_request();
  forget_victim(ref);
  recency_.unlink(links_, ref);
  recency_.push_newest(links_, ref);
  use(slab_.hot(ref).newer);
}

void Lrb::remove(EntryRef ref, Removal why) {
  forget_victim(ref);
  recency_.unlink(links_, ref);
  const EntryRef place = slab_.hot(ref).older;
  entries_[place] = entries_.back();
  slab_.hot(entries_[place]).older = place;
  entries_.pop_back();
  const std::uint32_t number = slab_.hot(ref).newer;
  records_[number].ref = kNoEntry;
  filled_ = filled_ || why == Removal::kEvicted;
  if (why == Removal::kRemoved || model_ == nullptr || is_overdue(number)) {
    drop(number);
    return;
  }
  // Another variant of the key may have been evicted before.
  if (const auto other = static_cast<std::uint32_t>(evicted_.take(records_[number].key))) {
    drop(other);
  }
  evicted_.set(records_[number].key, number);
}

EntryRef Lrb::victim() {
  if (victim_ == kNoEntry && !entries_.empty()) {
    // The least recent entries are the overdue ones.
    victim_ = is_trained_ && !is_overdue(slab_.hot(recency_.oldest()).newer) ? farthest()
                                                                             : recency_.oldest();
  }
  return victim_;
}

}  // namespace encore::cache
