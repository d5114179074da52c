// The kernel's handling of responses that have arrived: each becomes an entry, in memory, on disk
// or in both, or gives one of them new times.
#include <optional>

#include "cache/budget.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {
namespace {

// A freshening that lost its room to others so often gives up.
constexpr int kFreshenAttempts = 4;

bool is_stored(CommitOutcome outcome) {
  return outcome == CommitOutcome::kStored || outcome == CommitOutcome::kReplaced;
}

void put_stored(const Stored& stored, std::uint64_t reserved_bytes, Event& event) {
  event.variant = stored.variant;
  event.charge_bytes = stored.charge_bytes;
  event.reserved_bytes = reserved_bytes;
  event.fresh_until = stored.fresh_until;
  event.keep_until = stored.keep_until;
}

bool is_overtaken(const Stored& stored) {
  return stored.invalidation_check != nullptr && stored.invalidation_check->is_overtaken();
}

void put_disk(const Stored& stored, const DiskDecision& decision, Event& event) {
  event.disk_bytes = stored.disk_bytes;
  event.names = stored.disk_names;
  event.disk_flags = static_cast<std::uint8_t>(
      (stored.disk_queue_full ? kQueueFull : 0U) | (stored.from_disk ? kFromDisk : 0U) |
      (stored.disk_only ? kDiskOnly : 0U) | (decision.tombstone ? kTombstone : 0U) |
      (stored.waits ? kOnProbation : 0U));
  event.disk_outcome = static_cast<std::uint8_t>(decision.outcome);
  event.place = stored.from_disk.value_or(decision.place);
  event.turn = decision.turn.sequence;
  event.version = decision.version;
}

// Into memory, or out of it where it is for the disk only.
CommitOutcome commit_to_memory(Shard& shard, const Key& key, const Stored& complete,
                               MonotonicTime now, Budget& budget, Removals& gone)
    ENCORE_REQUIRES(shard.mutex) {
  // The record has gone since it was read: what it held may have been purged.
  if (complete.from_disk &&
      (shard.disk == nullptr || !shard.disk->has_at(key, *complete.from_disk))) {
    return CommitOutcome::kSuperseded;
  }
  if (complete.disk_only) [[unlikely]] {
    const EntryRef same = shard.table.find(key.hash, complete.variant);
    if (same != kNoEntry) {
      shard.table.erase(same, Removal::kRemoved, gone);
    }
    const bool replaces =
        same != kNoEntry || (shard.disk != nullptr && shard.disk->has(key, complete.variant));
    return replaces ? CommitOutcome::kReplaced : CommitOutcome::kStored;
  }
  if (complete.charge_bytes > shard.max_object_bytes) {
    return CommitOutcome::kTooLarge;
  }
  Arrival arrival;
  const bool waits = complete.waits && shard.table.keeps_waiting();
  if (waits) [[unlikely]] {
    arrival = {.number = budget.next_arrival(), .since = now};
  }
  switch (shard.table.insert(
      key.hash, complete, {.now = now, .hint = complete.hint},
      {.variants_max = shard.variants_max, .arrival = waits ? &arrival : nullptr}, gone)) {
    case Table::Inserted::kNew:
      return CommitOutcome::kStored;
    case Table::Inserted::kReplaced:
      return CommitOutcome::kReplaced;
    case Table::Inserted::kOutOfMemory:
      break;
  }
  return CommitOutcome::kFull;
}

void count_commit(Shard& shard, CommitOutcome outcome, bool disk_only, const Removals& gone)
    ENCORE_REQUIRES(shard.mutex) {
  ShardCounters& counters = shard.counters;
  if (is_stored(outcome)) {
    // The tier counts what is replaced on disk.
    const std::uint32_t replaced = outcome == CommitOutcome::kReplaced && gone.count() != 0 ? 1 : 0;
    counters.commits.add();
    counters.replacements.add(replaced);
    counters.variants_dropped.add(gone.count() - replaced);
  } else if (disk_only) {
    counters.invalidations.add(gone.count());
  }
  if (gone.count() != 0 || is_stored(outcome)) {
    shard.count_entries();
  }
}

}  // namespace

CommitOutcome Kernel::commit(const Key& key, const Stored& stored, std::uint64_t reserved_bytes,
                             MonotonicTime now, DiskDecision* decision) {
  DiskDecision unwanted;
  DiskDecision& decided = decision == nullptr ? unwanted : *decision;
  if (stored.disk_only) {
    // Without room for its entry on disk it is refused; the step says so.
    if (reserved_bytes < kDiskEntryBytes &&
        reserve(key, kDiskEntryBytes - reserved_bytes, now) == ReserveOutcome::kReserved) {
      reserved_bytes = kDiskEntryBytes;
    }
    return commit_step(key, stored, reserved_bytes, now, decided);
  }
  const std::uint64_t total = stored.charge_bytes + options_.entry_overhead_bytes +
                              (tier_ != nullptr && stored.disk_bytes != 0 ? kDiskEntryBytes : 0U);
  if (total > reserved_bytes) {
    const ReserveOutcome outcome = reserve(key, total - reserved_bytes, now);
    if (outcome != ReserveOutcome::kReserved) {
      abort(key, reserved_bytes, now);
      return outcome == ReserveOutcome::kFull ? CommitOutcome::kFull : CommitOutcome::kTooLarge;
    }
    reserved_bytes = total;
  }
  return commit_step(key, stored, reserved_bytes, now, decided);
}

CommitOutcome Kernel::commit_step(const Key& key, const Stored& stored,
                                  std::uint64_t reserved_bytes, MonotonicTime now,
                                  DiskDecision& decision) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  Stored complete = stored;
  complete.charge_bytes += options_.entry_overhead_bytes;
  OptionalLock lock(shard.mutex);
  const bool overtaken = is_overtaken(stored);
  CommitOutcome outcome = overtaken ? CommitOutcome::kSuperseded
                                    : commit_to_memory(shard, key, complete, now, *budget_, gone);
  OptionalLock budget_lock(budget_->mutex);
  // All three under one hold of the lock: nobody takes the room between them.
  budget_->give_back_reservation(reserved_bytes);
  budget_->grow(is_stored(outcome) && !stored.disk_only ? complete.charge_bytes : 0);
  budget_->free(gone.bytes());
  OptionalLock tier_lock(tier_, tier_ != nullptr);
  decision = {};
  if (tier_ != nullptr && is_stored(outcome)) [[unlikely]] {
    decision = shard.disk->commit(key, stored, now, *budget_, *tier_);
  }
  if (stored.disk_only && is_stored(outcome) && decision.outcome != DiskOutcome::kPlaced)
      [[unlikely]] {
    outcome = CommitOutcome::kRefused;
  }
  count_commit(shard, outcome, stored.disk_only, gone);
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kCommit,
                .outcome = static_cast<std::uint8_t>(outcome),
                .shard = shard.number,
                .now = now,
                .key = key.hash};
    put_stored(stored, reserved_bytes, event);
    put_removals(gone, event);
    put_disk(stored, decision, event);
    if (overtaken) event.disk_flags |= kOvertaken;
    publish(event);
  }
  return outcome;
}

FreshenOutcome Kernel::freshen(const Key& key, const Stored& stored, MonotonicTime now) {
  std::uint64_t reserved_bytes = 0;
  for (int attempt = 0; attempt < kFreshenAttempts; ++attempt) {
    const FreshenStep step = freshen_step(key, stored, reserved_bytes, now);
    if (step.outcome != kFreshenNeedsRoom) {
      return static_cast<FreshenOutcome>(step.outcome);
    }
    const std::uint8_t reserved = reserve_steps(key, step.needs_bytes, stored.variant, now);
    if (reserved == kReserveGone) {
      continue;  // the next step finds it absent, or on disk
    }
    if (reserved != static_cast<std::uint8_t>(ReserveOutcome::kReserved)) {
      abort(key, reserved_bytes, now);
      return reserved == static_cast<std::uint8_t>(ReserveOutcome::kFull)
                 ? FreshenOutcome::kFull
                 : FreshenOutcome::kTooLarge;
    }
    reserved_bytes += step.needs_bytes;
  }
  abort(key, reserved_bytes, now);
  return FreshenOutcome::kFull;
}

Kernel::FreshenStep Kernel::freshen_step(const Key& key, const Stored& stored,
                                         std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  Removals gone(hooks_.owner);
  Stored complete = stored;
  complete.charge_bytes += options_.entry_overhead_bytes;
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  FreshenStep step{static_cast<std::uint8_t>(FreshenOutcome::kFreshened), 0};
  const EntryRef ref = shard.table.find(key.hash, stored.variant);
  const std::uint64_t before = ref == kNoEntry ? 0 : shard.table.charge(ref);
  const std::uint64_t covered = before + reserved_bytes;
  const bool overtaken = is_overtaken(stored);
  if (ref == kNoEntry || overtaken) {
    step.outcome = static_cast<std::uint8_t>(FreshenOutcome::kAbsent);
  } else if (complete.charge_bytes > budget_->max_object()) {
    step.outcome = static_cast<std::uint8_t>(FreshenOutcome::kTooLarge);
  } else if (complete.charge_bytes > covered &&
             budget_->missing(complete.charge_bytes - covered) != 0) {
    step = {kFreshenNeedsRoom, complete.charge_bytes - covered};
  }
  if (step.outcome != kFreshenNeedsRoom) {
    budget_->give_back_reservation(reserved_bytes);
  }
  if (shard.disk != nullptr && step.outcome != kFreshenNeedsRoom && !overtaken &&
      shard.disk->freshen(key, stored, now) && ref == kNoEntry) [[unlikely]] {
    step.outcome = static_cast<std::uint8_t>(FreshenOutcome::kFreshenedOnDisk);
  }
  if (step.outcome == static_cast<std::uint8_t>(FreshenOutcome::kFreshened)) {
    budget_->grow(complete.charge_bytes);
    budget_->free(before);
    shard.table.update(ref, complete, gone);
    shard.counters.freshens.add();
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kFreshen,
                .outcome = step.outcome,
                .shard = shard.number,
                .now = now,
                .key = key.hash};
    put_stored(stored, reserved_bytes, event);
    event.freed_bytes = step.needs_bytes;
    if (overtaken) event.disk_flags |= kOvertaken;
    publish(event);
  }
  return step;
}

bool Kernel::grow(const Key& key, const Growth& growth, MonotonicTime now) {
  return grow_step(key, growth.variant, growth.payload, growth.reserved_bytes, now);
}

// No payload: that of the entry was another.
bool Kernel::grow_step(const Key& key, std::uint64_t variant, std::optional<Payload> payload,
                       std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  const EntryRef ref = shard.table.find(key.hash, variant);
  // Another object may have taken its place, or this one was moved: the form went with the copy
  // that is gone (docs/decisions/0250).
  const bool is_there = ref != kNoEntry && payload && shard.table.payload(ref) == *payload;
  if (is_there) {
    budget_->settle_reservation(reserved_bytes);
    shard.table.set_charge(ref, shard.table.charge(ref) + reserved_bytes);
  } else {
    budget_->give_back_reservation(reserved_bytes);
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kGrow,
                .outcome = is_there ? kGrown : std::uint8_t{0},
                .shard = shard.number,
                .now = now,
                .key = key.hash,
                .variant = variant,
                .reserved_bytes = reserved_bytes};
    publish(event);
  }
  return is_there;
}

}  // namespace encore::cache
