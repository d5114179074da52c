#include "cache/shard_probation.h"

#include <algorithm>

namespace encore::cache {
namespace {

// The least share of the memory left for entries that do not wait: copies of objects on disk.
constexpr std::uint64_t kCopiesShare = 8;
// More than this of the disks, a sixteenth of both, gains nothing. Why the rest is for copies:
// docs/decisions/0425.
constexpr std::uint64_t kWaitingShare = 15;
// Waiting keys take memory in addition to the objects', with a limit of their own.
constexpr std::uint64_t kKeysShare = 8;

ProbationView view_of(const filter::Hash128& key, const Budget& budget, const DiskTier& tier)
    ENCORE_REQUIRES(budget.mutex, tier.mutex) {
  return {.disks = tier.load_for(key),
          .rule = tier.rule,
          .shards = tier.shards(),
          .keys_max = waiting_max(budget, tier) / kKeysShare / tier.shards()};
}

}  // namespace

std::uint64_t waiting_max(const Budget& budget, const DiskTier& tier) {
  const std::uint64_t capacity = budget.options().capacity_bytes;
  const std::uint64_t entries = capacity - std::min(capacity, tier.index_bytes());
  return std::min(entries - entries / kCopiesShare, tier.bytes_in_service() / kWaitingShare);
}

std::optional<AdmitReason> decide_on_probation(Shard& shard, const Key& key,
                                               const AdmitRequest& request, MonotonicTime now,
                                               Budget& budget, const DiskTier& tier) {
  const ProbationView view = view_of(key.hash, budget, tier);
  const bool fits_memory = request.size_bytes <= shard.max_object_bytes;
  if (request.rule.kind != AdmissionRule::Kind::kPolicy || view.disks.size_bytes == 0 ||
      (!fits_memory && !request.disk_only) || shard.is_on_disk(key)) {
    return std::nullopt;
  }
  if (const EntryRef ref = shard.table.find(key.hash); ref != kNoEntry) {
    return shard.table.waits(ref) && fits_memory ? AdmitReason::kWaits : AdmitReason::kResident;
  }
  const AdmitReason reason = shard.admission.probation()->fetched(
      {.key = key,
       .size_bytes = request.size_bytes,
       .may_wait = fits_memory,
       .alone = shard.table.waiting().empty(),
       .hinted = request.hinted,
       .arrival = {.number = budget.next_arrival(), .since = now}},
      view);
  shard.count_waiting();
  return reason;
}

Left leave_oldest(Shard& shard, Removals& gone, MonotonicTime now, const Budget& budget,
                  const DiskTier& tier) {
  ProbationAdmission* const probation = shard.admission.probation();
  const WaitingOrder& waiting = shard.table.waiting();
  const auto oldest = shard.oldest_waiting();
  Left left = Left::kNothing;
  if (oldest && (waiting.empty() || waiting.oldest_arrival().number != oldest->number)) {
    probation->let_key_leave(view_of({}, budget, tier), now);
    left = Left::kKey;
  } else if (oldest) {
    const std::uint64_t before = gone.bytes();
    const filter::Hash128 key = shard.table.evict_waiting(gone);
    gone.mark_evicted();
    shard.counters.evictions.add();
    shard.counters.evicted_bytes.add(gone.bytes() - before);
    // A variant that waits still, or lies on disk, speaks for the key (docs/decisions/0425).
    if (shard.table.find(key) == kNoEntry && !shard.is_on_disk({key, {}})) {
      probation->remember(key, view_of(key, budget, tier), now);
    }
    left = Left::kObject;
  }
  shard.count_entries();
  shard.count_waiting();
  return left;
}

WaitingTotals look_at_waiting(std::span<const std::unique_ptr<Shard>> shards) {
  WaitingTotals waits;
  std::uint64_t number = 0;
  for (const auto& shard : shards) {
    const ShardCounters& counters = shard->counters;
    waits.bytes += counters.waiting_bytes.get();
    waits.has_others = waits.has_others || counters.objects.get() > counters.waiting_objects.get();
    const std::uint64_t oldest = counters.oldest_waiting.get();
    if (oldest != 0 && (!waits.oldest || oldest < number)) {
      waits.oldest = shard->number;
      number = oldest;
    }
  }
  return waits;
}

}  // namespace encore::cache
