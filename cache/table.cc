#include "cache/table.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::uint64_t kEpochMask = 3;  // HotEntry::epoch

// True if it is the first.
bool note_use(HotEntry& entry) {
  const bool first = entry.reused == 0;
  entry.reused = 1;
  return first;
}

bool needs_cold(const Stored& stored) {
  return stored.payload != 0 || stored.variant != 0 || stored.fresh_until != MonotonicTime::max();
}

}  // namespace

Table::Table(EvictionPolicy policy, const EvictionSettings& settings)
    : order_(std::make_unique<Eviction>(policy, slab_, settings)) {}

EntryRef Table::find(const filter::Hash128& key, std::uint64_t variant) const {
  EntryRef ref = index_.find(key);
  if (!slab_.has_cold()) {
    return variant == 0 ? ref : kNoEntry;
  }
  while (ref != kNoEntry && slab_.cold(ref).variant != variant) {
    ref = slab_.cold(ref).next_variant;
  }
  return ref;
}

MonotonicTime Table::keep_until(const ColdEntry& cold) {
  const Nanoseconds room = MonotonicTime::max() - std::max(cold.fresh_until, MonotonicTime{});
  const Nanoseconds keep = Nanoseconds(std::int64_t{cold.keep_seconds} * kNanosecondsPerSecond);
  return cold.keep_seconds == kKeepForever || keep >= room ? MonotonicTime::max()
                                                           : cold.fresh_until + keep;
}

std::uint32_t Table::keep_seconds(MonotonicTime fresh_until, MonotonicTime keep_until) {
  if (keep_until <= fresh_until) {
    return 0;
  }
  if (keep_until == MonotonicTime::max()) {
    return kKeepForever;
  }
  // Unsigned, for a fresh_until before the start of time is a legal way to say "long ago".
  const std::uint64_t apart = static_cast<std::uint64_t>(keep_until.time_since_epoch().count()) -
                              static_cast<std::uint64_t>(fresh_until.time_since_epoch().count());
  const std::uint64_t seconds = (apart - 1) / kNanosecondsPerSecond + 1;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(seconds, kKeepForever));
}

void Table::set_times(ColdEntry& cold, const Stored& stored) {
  cold.fresh_until = stored.fresh_until;
  cold.keep_seconds = keep_seconds(stored.fresh_until, stored.keep_until);
}

EntryView Table::view(EntryRef ref) const {
  const HotEntry& hot = slab_.hot(ref);
  EntryView view{.key = hot.key,
                 .charge_bytes = hot.charge,
                 .fresh_until = MonotonicTime::max(),
                 .keep_until = MonotonicTime::max()};
  if (slab_.has_cold()) {
    const ColdEntry& cold = slab_.cold(ref);
    view.variant = cold.variant;
    view.fresh_until = cold.fresh_until;
    view.keep_until = keep_until(cold);
    view.payload = cold.payload;
  }
  return view;
}

bool Table::hit(EntryRef ref, const Access& access) {
  // A hit brings an entry of an earlier policy into the present order. One that waits stays where
  // it is (docs/decisions/0425).
  if (in_other_order(ref)) [[unlikely]] {
    if (keeps_waiting_ && waits(ref)) {
      waiting_hits_.add();
      return note_use(slab_.hot(ref));
    }
    leave_other_order(ref, Removal::kRemoved);
    slab_.hot(ref).epoch = epoch_ & kEpochMask;
    order_->insert(ref, access);
  }
  order_->hit(ref, access);
  return note_use(slab_.hot(ref));
}

void Table::leave_other_order(EntryRef ref, Removal why) {
  if (waits(ref)) {
    waiting_.remove(ref);
  } else {
    old_order_->remove(ref, why);
  }
}

Table::Inserted Table::insert(const filter::Hash128& key, const Stored& stored,
                              const Access& access, const Limits& limits, Removals& gone) {
  if (!slab_.has_cold() && needs_cold(stored) && !slab_.need_cold()) {
    return Inserted::kOutOfMemory;
  }
  // Before the erase below: without memory the earlier entry stays.
  const EntryRef ref = slab_.allocate();
  if (ref == kNoEntry) {
    return Inserted::kOutOfMemory;
  }
  const EntryRef same = find(key, stored.variant);
  if (same != kNoEntry) {
    erase(same, Removal::kRemoved, gone);
  }
  HotEntry& hot = slab_.hot(ref);
  hot.key = key;
  hot.charge = stored.charge_bytes & ((std::uint64_t{1} << 40U) - 1);
  charged_bytes_ += hot.charge;
  hot.policy_bits = 0;
  hot.reused = 0;
  hot.epoch = (limits.arrival == nullptr ? epoch_ : kWaitingEpoch) & kEpochMask;
  const EntryRef first = index_.find(key);
  if (slab_.has_cold()) {
    ColdEntry& cold = slab_.cold(ref);
    cold = {stored.payload, stored.variant, stored.fresh_until, 0, first};
    set_times(cold, stored);
  }
  if (first == kNoEntry) {
    index_.insert(key, ref);
  } else {
    index_.replace(key, ref);
  }
  if (limits.arrival == nullptr) [[likely]] {
    order_->insert(ref, access);
  } else {
    waiting_.insert(ref, *limits.arrival);
  }
  if (first != kNoEntry) {
    drop_beyond(key, limits, gone);
  }
  return same == kNoEntry ? Inserted::kNew : Inserted::kReplaced;
}

void Table::drop_beyond(const filter::Hash128& key, const Limits& limits, Removals& gone) {
  EntryRef ref = index_.find(key);
  // The chain of a key begins with the latest, so that those stored longest ago go.
  for (std::uint32_t kept = 0; kept < limits.variants_max && ref != kNoEntry; ++kept) {
    ref = next(ref);
  }
  while (ref != kNoEntry) {
    const EntryRef older = next(ref);
    erase(ref, Removal::kRemoved, gone);
    ref = older;
  }
}

void Table::set_charge(EntryRef ref, std::uint64_t charge_bytes) {
  HotEntry& hot = slab_.hot(ref);
  if (hot.charge == charge_bytes) return;
  const std::uint64_t before = hot.charge;
  charged_bytes_ += charge_bytes - before;
  hot.charge = charge_bytes & ((std::uint64_t{1} << 40U) - 1);
  if (waits(ref)) [[unlikely]] {
    waiting_.resized(before, hot.charge);
  } else {
    (in_other_order(ref) ? *old_order_ : *order_).resized(ref);
  }
}

void Table::update(EntryRef ref, const Stored& stored, Removals& gone) {
  set_charge(ref, stored.charge_bytes);
  if (!slab_.has_cold()) {
    if (!needs_cold(stored)) {
      return;
    }
    ENCORE_CHECK(slab_.need_cold(), "memory for the cold halves of the entries");
  }
  ColdEntry& cold = slab_.cold(ref);
  set_times(cold, stored);
  if (cold.payload != stored.payload) {
    gone.add_payload(cold.payload);
    cold.payload = stored.payload;
  }
}

void Table::mark_stale(EntryRef ref, MonotonicTime now) {
  if (!slab_.has_cold()) {
    ENCORE_CHECK(slab_.need_cold(), "memory for the cold halves of the entries");
  }
  ColdEntry& cold = slab_.cold(ref);
  if (cold.fresh_until > now) {
    const MonotonicTime keep = keep_until(cold);
    cold.fresh_until = now;
    cold.keep_seconds = keep_seconds(now, keep);
  }
}

void Table::unlink_variant(EntryRef ref) {
  const filter::Hash128& key = slab_.hot(ref).key;
  const EntryRef after = next(ref);
  EntryRef before = index_.find(key);
  if (before == ref) {
    if (after == kNoEntry) {
      index_.erase(key);
    } else {
      index_.replace(key, after);
    }
    return;
  }
  while (next(before) != ref) {
    before = next(before);
    ENCORE_CHECK(before != kNoEntry, "an entry is in the chain of its key");
  }
  slab_.cold(before).next_variant = after;
}

void Table::erase(EntryRef ref, Removal why, Removals& gone) {
  gone.add(view(ref));
  if (in_other_order(ref)) {
    leave_other_order(ref, why);
  } else {
    order_->remove(ref, why);
  }
  charged_bytes_ -= slab_.hot(ref).charge;
  unlink_variant(ref);
  slab_.release(ref);
}

void Table::erase_expired(EntryRef ref, EntryRef end, MonotonicTime now, Removals& gone) {
  while (ref != end) {
    const ColdEntry& cold = slab_.cold(ref);
    const EntryRef next = cold.next_variant;
    if (now >= cold.fresh_until && now >= keep_until(cold)) {
      erase(ref, Removal::kRemoved, gone);
    }
    ref = next;
  }
}

EntryRef Table::victim(Used used) {
  // Nothing is on probation any more: what waits goes first (docs/decisions/0425).
  if (!keeps_waiting_ && !waiting_.empty()) [[unlikely]] {
    return waiting_.oldest();
  }
  const auto ask = [used](Eviction& order) {
    const EntryRef ref = order.victim();
    return ref == kAllUsed && used == Used::kEvict ? order.victim() : ref;
  };
  if (old_order_ != nullptr) {
    const EntryRef ref = ask(*old_order_);
    if (ref != kNoEntry) {
      return ref;
    }
    old_order_.reset();
  }
  return ask(*order_);
}

Table::Evicted Table::evict_one(Removals& gone, Used used) {
  const EntryRef ref = victim(used);
  switch (ref) {
    case kNoEntry:
      return Evicted::kNothingLeft;
    case kSearching:
      return Evicted::kMore;
    case kAllUsed:
      return Evicted::kEachUsed;
    default:
      break;
  }
  erase(ref, Removal::kEvicted, gone);
  return Evicted::kOne;
}

filter::Hash128 Table::evict_waiting(Removals& gone) {
  const EntryRef ref = waiting_.oldest();
  const filter::Hash128 key = slab_.hot(ref).key;
  erase(ref, Removal::kEvicted, gone);
  return key;
}

bool Table::next_victim(filter::Hash128& key) {
  const EntryRef ref = victim(Used::kEvict);
  if (ref == kNoEntry || ref == kSearching) {
    return false;
  }
  key = slab_.hot(ref).key;
  return true;
}

void Table::change_policy(EvictionPolicy policy, const Access& access) {
  if (order_->policy() == policy) {
    return;
  }
  if (old_order_ != nullptr) {
    // There is room for one order of before: what is left of an earlier one joins it.
    for (EntryRef ref = old_order_->victim(); ref != kNoEntry; ref = old_order_->victim()) {
      if (ref != kSearching && ref != kAllUsed) {
        old_order_->remove(ref, Removal::kRemoved);
        slab_.hot(ref).epoch = epoch_ & kEpochMask;
        order_->insert(ref, access);
      }
    }
  }
  old_order_ = std::move(order_);
  order_ = std::make_unique<Eviction>(policy, slab_);
  epoch_ ^= 1U;
}

}  // namespace encore::cache
