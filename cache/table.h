// Table: the entries of one shard: index, chains of variants, times, eviction order, and the order
// of what is on probation. Knows nothing of admission, budget or locks. Thread-compatible, confined
// to its shard.
#pragma once

#include <cstdint>
#include <memory>

#include "cache/counter.h"
#include "cache/entry_slab.h"
#include "cache/eviction.h"
#include "cache/index.h"
#include "cache/removals.h"
#include "cache/types.h"
#include "cache/waiting_order.h"

namespace encore::cache {

class Table {
 public:
  explicit Table(EvictionPolicy policy, const EvictionSettings& settings = {});

  // The latest stored variant; kNoEntry if the key is absent.
  EntryRef find(const filter::Hash128& key) const { return index_.find(key); }
  EntryRef find(const filter::Hash128& key, std::uint64_t variant) const;
  EntryRef find_mixed(const MixedKey& key) const { return index_.find_mixed(key); }
  // The variant stored before this one.
  EntryRef next(EntryRef ref) const {
    return slab_.has_cold() ? slab_.cold(ref).next_variant : kNoEntry;
  }

  // Walks the key's variants from the latest: removes what is past its time, until `matches`
  // (payload -> Match) takes one, which then counts as used. Undecided, it leaves all as it was.
  template <typename Matches>
  LookupResult lookup(const filter::Hash128& key, const Access& access, Matches&& matches,
                      Removals& gone);

  // Stores first in the key's chain. Removes the same variant, and what is beyond `variants_max`.
  // kOutOfMemory: nothing has changed.
  enum class Inserted : std::uint8_t { kNew, kReplaced, kOutOfMemory };
  struct Limits {
    std::uint32_t variants_max = 0;
    const Arrival* arrival = nullptr;  // not null: the entry waits, in that place
  };
  // REQUIRES: stored.charge_bytes is complete (overhead included) and below 2^40.
  Inserted insert(const filter::Hash128& key, const Stored& stored, const Access& access,
                  const Limits& limits, Removals& gone);

  // It takes more or less than before.
  void set_charge(EntryRef ref, std::uint64_t charge_bytes);
  // New times, charge and payload.
  void update(EntryRef ref, const Stored& stored, Removals& gone);
  void mark_stale(EntryRef ref, MonotonicTime now);
  void erase(EntryRef ref, Removal why, Removals& gone);

  // Treatment of a pass in which each entry was used since its last inspection: kSpare evicts none
  // of them, and says so.
  enum class Used : std::uint8_t { kSpare, kEvict };
  // kMore: none yet, ask again.
  enum class Evicted : std::uint8_t { kOne, kMore, kEachUsed, kNothingLeft };
  // It evicts a waiting entry only if entries are not kept waiting.
  Evicted evict_one(Removals& gone, Used used);
  // The key that evict_one(kEvict) would remove now; false where there is none, or it would take
  // long to find. Moves the eviction order on as evict_one() would.
  bool next_victim(filter::Hash128& key);

  // An entry waits until evict_waiting() evicts it, whatever uses it. Else, and so from
  // the beginning, it is evicted before all others, and a hit gives it a place among them.
  void keep_waiting(bool keeps) { keeps_waiting_ = keeps; }
  bool keeps_waiting() const { return keeps_waiting_; }
  bool waits(EntryRef ref) const { return slab_.hot(ref).epoch == kWaitingEpoch; }
  // It was found since it was stored.
  bool was_used(EntryRef ref) const { return slab_.hot(ref).reused != 0; }
  const WaitingOrder& waiting() const { return waiting_; }
  // Hits on what waits.
  const Counter& waiting_hits() const { return waiting_hits_; }
  // The key of the oldest one, which is removed. REQUIRES: waiting() is not empty.
  filter::Hash128 evict_waiting(Removals& gone);

  // See EvictionOrder; false where the policy knows no future.
  bool knows_future() const { return order_->knows_future(); }
  bool bypasses(const InsertCandidate& candidate) { return order_->bypasses(candidate); }

  // Entries move to the new order when they are used; until then the old one gives the victims. A
  // second change before the first is worked off empties the old order immediately.
  void change_policy(EvictionPolicy policy, const Access& access);

  EntryView view(EntryRef ref) const;
  std::uint64_t charge(EntryRef ref) const { return slab_.hot(ref).charge; }
  Payload payload(EntryRef ref) const { return slab_.has_cold() ? slab_.cold(ref).payload : 0; }
  // REQUIRES: some entry was stored with a payload.
  void set_payload(EntryRef ref, Payload payload) { slab_.cold(ref).payload = payload; }

  std::uint32_t slots() const { return slab_.slots(); }
  bool holds(EntryRef ref) const { return slab_.holds(ref); }
  std::uint32_t size() const { return slab_.size(); }
  // The sum of the entries' charges.
  std::uint64_t charged_bytes() const { return charged_bytes_; }
  void prefetch(const filter::Hash128& key) const { index_.prefetch(key); }
  std::uint64_t memory_bytes() const { return slab_.memory_bytes() + index_.memory_bytes(); }

 private:
  static MonotonicTime keep_until(const ColdEntry& cold);
  static std::uint32_t keep_seconds(MonotonicTime fresh_until, MonotonicTime keep_until);
  void set_times(ColdEntry& cold, const Stored& stored);
  static constexpr std::uint64_t kWaitingEpoch = 2;

  bool in_other_order(EntryRef ref) const { return slab_.hot(ref).epoch != epoch_; }
  // REQUIRES: it is in another order than order_.
  void leave_other_order(EntryRef ref, Removal why);
  // True if it is the first.
  bool hit(EntryRef ref, const Access& access);
  // The victim of the order that gives the victims now.
  EntryRef victim(Used used);
  void unlink_variant(EntryRef ref);
  // Erases the expired entries from `ref` on, up to `end`.
  void erase_expired(EntryRef ref, EntryRef end, MonotonicTime now, Removals& gone);
  void drop_beyond(const filter::Hash128& key, const Limits& limits, Removals& gone);

  EntrySlab slab_;
  Index index_{slab_};
  std::uint64_t charged_bytes_ = 0;
  std::unique_ptr<Eviction> order_;
  std::unique_ptr<Eviction> old_order_;  // null, or being worked off
  WaitingOrder waiting_{slab_};
  Counter waiting_hits_;
  bool keeps_waiting_ = false;
  // Entries of this epoch (0 or 1) are in order_, those of kWaitingEpoch in waiting_, others in
  // old_order_.
  std::uint64_t epoch_ = 0;
};

template <typename Matches>
LookupResult Table::lookup(const filter::Hash128& key, const Access& access, Matches&& matches,
                           Removals& gone) {
  LookupResult result;
  EntryRef ref = index_.find(key);
  if (ref == kNoEntry) {
    return result;
  }
  if (!slab_.has_cold()) {  // one variant, for ever, without a payload
    result.any_resident = true;
    const Match match = matches(Payload{0});
    if (match == Match::kUndecided) {
      return {.is_undecided = true};
    }
    if (match == Match::kYes) {
      result.is_first_use = hit(ref, access);
      result.state = LookupState::kFresh;
      result.fresh_until = MonotonicTime::max();
    }
    return result;
  }
  const EntryRef first = ref;
  bool expired = false;
  for (; ref != kNoEntry; ref = slab_.cold(ref).next_variant) {
    const ColdEntry& cold = slab_.cold(ref);
    if (access.now >= cold.fresh_until && access.now >= keep_until(cold)) [[unlikely]] {
      expired = true;
      continue;
    }
    result.any_resident = true;
    const Match match = matches(cold.payload);
    if (match == Match::kUndecided) [[unlikely]] {
      return {.is_undecided = true};
    }
    if (match == Match::kYes) {
      result.state = access.now < cold.fresh_until ? LookupState::kFresh : LookupState::kStale;
      result.payload = cold.payload;
      result.variant = cold.variant;
      result.fresh_until = cold.fresh_until;
      break;
    }
  }
  // Not before it is certain that this lookup counts.
  if (expired) [[unlikely]] {
    erase_expired(first, ref, access.now, gone);
  }
  if (ref != kNoEntry) {
    result.is_first_use = hit(ref, access);
  }
  return result;
}

}  // namespace encore::cache
