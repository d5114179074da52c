// Probation in the kernel: what waits in memory before disks, over all shards. Locks, in this
// order: a shard's, the budget's, the tier's; what reads how full the disks are has its event
// numbered under the tier's.
#include "cache/probation_admission.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "cache/budget.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/removals.h"
#include "cache/shard.h"

namespace encore::cache {
namespace {

// The least share of the memory left for entries that do not wait: copies of objects on disk.
constexpr std::uint64_t kCopiesShare = 8;
// More than this of the disks, a sixteenth of both, gains nothing.
constexpr std::uint64_t kWaitingShare = 15;
// Waiting keys take memory beside the objects', and have their bound of it.
constexpr std::uint64_t kKeysShare = 8;
// The bound of one critical section.
constexpr std::uint32_t kLeavesMax = 32;

}  // namespace

bool Kernel::runs_probation(const Shard& shard) { return shard.table.keeps_waiting(); }

std::uint64_t Kernel::waiting_max() const {
  const std::uint64_t capacity = budget_->options().capacity_bytes;
  const std::uint64_t entries = capacity - std::min(capacity, tier_->index_bytes());
  return std::min(entries - entries / kCopiesShare, tier_->bytes_in_service() / kWaitingShare);
}

ProbationView Kernel::probation_view(const filter::Hash128& key) const {
  return {.disks = tier_->load_for(key),
          .rule = tier_->rule,
          .shards = options_.shards,
          .keys_max = waiting_max() / kKeysShare / options_.shards};
}

AdmitReason Kernel::decide_on_probation(Shard& shard, const Key& key, const AdmitRequest& request,
                                        MonotonicTime now) const {
  const ProbationView view = probation_view(key.hash);
  const bool fits_memory = request.size_bytes <= shard.max_object_bytes;
  if (request.rule.kind != AdmissionRule::Kind::kPolicy || view.disks.size_bytes == 0 ||
      (!fits_memory && !request.disk_only) || is_on_disk(shard, key)) {
    return decide(shard, key, request, now);
  }
  if (const EntryRef ref = shard.table.find(key.hash); ref != kNoEntry) {
    return shard.table.waits(ref) && fits_memory ? AdmitReason::kWaits : AdmitReason::kResident;
  }
  const AdmitReason reason = shard.admission.probation()->fetched(
      {.key = key,
       .size_bytes = request.size_bytes,
       .may_wait = fits_memory,
       .alone = shard.table.waiting().empty(),
       .arrival = {.number = budget_->next_arrival(), .since = now}},
      view);
  shard.count_waiting();
  return reason;
}

Kernel::Left Kernel::leave_oldest(Shard& shard, Removals& gone, MonotonicTime now) const {
  ProbationAdmission* const probation = shard.admission.probation();
  const WaitingOrder& waiting = shard.table.waiting();
  const auto oldest = shard.oldest_waiting();
  Left left = Left::kNothing;
  if (oldest && (waiting.empty() || waiting.oldest_arrival().number != oldest->number)) {
    probation->let_key_leave(probation_view({}), now);
    left = Left::kKey;
  } else if (oldest) {
    const std::uint64_t before = gone.bytes();
    const filter::Hash128 key = shard.table.evict_waiting(gone);
    gone.mark_evicted();
    shard.counters.evictions.add();
    shard.counters.evicted_bytes.add(gone.bytes() - before);
    // A variant that waits still, or lies on disk, speaks for the key.
    if (shard.table.find(key) == kNoEntry && !is_on_disk(shard, {key, {}})) {
      probation->remember(key, probation_view(key), now);
    }
    left = Left::kObject;
  }
  shard.count_entries();
  shard.count_waiting();
  return left;
}

void Kernel::leave_for_room(Shard& shard, const Room& wanted, Removals& gone,
                            MonotonicTime now) const {
  while (gone.bytes() < wanted.bytes && gone.count() < wanted.victims_max &&
         !shard.table.waiting().empty() && leave_oldest(shard, gone, now) != Left::kNothing) {
  }
}

Kernel::Waits Kernel::look_at_waiting() const {
  Waits waits;
  std::uint64_t number = 0;
  for (const auto& shard : shards_) {
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

// First the oldest that waits, while more does than may; then copies, around twice as ever; then
// what waits in any case.
std::uint8_t Kernel::reserve_on_probation(const Key& key, std::uint64_t bytes,
                                          const std::optional<std::uint64_t>& grows,
                                          MonotonicTime now) {
  std::uint64_t most = 0;
  {
    OptionalLock budget_lock(budget_->mutex);
    OptionalLock tier_lock(tier_->mutex);
    most = waiting_max();
  }
  const std::uint32_t first = filter::shard_of(key.hash, options_.shards);
  const std::uint32_t last = 2 * options_.shards;
  std::uint32_t tried = 0;
  while (true) {
    const Waits waits = look_at_waiting();
    const bool from_waiting =
        waits.oldest && (waits.bytes > most || !waits.has_others || tried > last);
    const ReserveStep step{
        .shard = from_waiting ? *waits.oldest : (first + tried) & (options_.shards - 1),
        .bytes = bytes,
        .last = !waits.oldest && tried >= last,
        .spares = !from_waiting && tried < options_.shards,
        .from_waiting = from_waiting,
        .grows = grows};
    const std::uint8_t outcome = reserve_step(key, step, now);
    if (outcome == kReserveSameShard) {
      continue;
    }
    if (outcome != kReserveNextShard) {
      return outcome;
    }
    tried += from_waiting ? 0 : 1;
  }
}

Result<void> Kernel::follow(const ProbationRule& rule, MonotonicTime now) {
  if (auto accepted = check_rule(rule); !accepted) {
    return accepted;
  }
  if (tier_ != nullptr) {
    follow_step(rule, now);
  }
  return {};
}

void Kernel::follow_step(const ProbationRule& rule, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->rule = rule;
  Event event{.kind = EventKind::kFollow,
              .outcome = rule.all ? std::uint8_t{1} : std::uint8_t{0},
              .now = now,
              .variant = std::bit_cast<std::uint64_t>(rule.window),
              .reserved_bytes = std::bit_cast<std::uint64_t>(rule.chance)};
  publish(event);
}

bool Kernel::end_waits(MonotonicTime now) {
  if (!on_probation_.load(std::memory_order_relaxed)) {
    return false;
  }
  Nanoseconds wait_max{0};
  {
    OptionalLock budget_lock(budget_->mutex);
    wait_max = budget_->options().admission.wait_max;
  }
  const auto is_over = [&](const Shard& shard) {
    const MonotonicTime since(
        Nanoseconds(static_cast<std::int64_t>(shard.counters.oldest_waiting_since.get())));
    return wait_max.count() != 0 && shard.counters.oldest_waiting.get() != 0 &&
           now - since >= wait_max;
  };
  bool more = false;
  for (const auto& shard : shards_) {
    if (is_over(*shard)) {
      leave_step(shard->number, Leave::kWhoseTimeIsOver, now);
      more = more || is_over(*shard);
    }
  }
  return more;
}

void Kernel::end_all_waits(MonotonicTime now) {
  while (on_probation_.load(std::memory_order_relaxed)) {
    const Waits waits = look_at_waiting();
    if (!waits.oldest) {
      return;
    }
    leave_step(*waits.oldest, Leave::kAll, now);
  }
}

void Kernel::leave_step(std::uint32_t number, Leave which, MonotonicTime now) {
  Shard& shard = *shards_[number];
  Removals gone(hooks_.owner);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const Nanoseconds wait_max = budget_->options().admission.wait_max;
  for (std::uint32_t n = 0; n < kLeavesMax; ++n) {
    const auto oldest = shard.oldest_waiting();
    if (!oldest || (which != Leave::kAll && now - oldest->since < wait_max)) {
      break;
    }
    leave_oldest(shard, gone, now);
  }
  budget_->free(gone.bytes());
  // The next to ask finds what is left, where a reload came between.
  shard.count_waiting();
  Event event{.kind = EventKind::kLeave,
              .outcome = static_cast<std::uint8_t>(which),
              .shard = number,
              .now = now};
  put_removals(gone, event);
  publish(event);
}

}  // namespace encore::cache
