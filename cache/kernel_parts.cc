// Parts of large bodies on disk: the kernel's index has an entry for each of them, under a key of
// its own, and knows nothing of whose they are.
#include "base/check.h"
#include "cache/budget.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {

DiskDecision Kernel::place_part(const Key& part, const PartWish& wish, MonotonicTime now) {
  // Without room for its entry it is refused; the step says so.
  const bool has_room = reserve(part, kDiskEntryBytes, now) == ReserveOutcome::kReserved;
  return place_part_step(part, wish, has_room ? kDiskEntryBytes : 0, now);
}

DiskDecision Kernel::place_part_step(const Key& part, const PartWish& wish,
                                     std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(part.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  budget_->give_back_reservation(reserved_bytes);
  DiskTable& table = *shard.disk;
  const MixedKey mixed = EntryKeys::mixed_key(part.hash);
  Event event{.kind = EventKind::kPart,
              .shard = shard.number,
              .now = now,
              .key = part.hash,
              .reserved_bytes = reserved_bytes,
              .keep_until = wish.useless_from,
              .disk_flags = wish.queue_full ? kQueueFull : std::uint8_t{0},
              .disk_bytes = wish.bytes};
  if (const EntryRef same = table.find(mixed, 0); same != kNoEntry) {
    erase_on_disk(shard, same);
    event.disk_entries = 1;
  }
  PlacedRecord placed;
  DiskDecision decision;
  decision.outcome = is_index_full() ? DiskOutcome::kIndexFull
                                     : tier_->place({.key = part.hash,
                                                     .bytes = wish.bytes,
                                                     .queue_full = wish.queue_full,
                                                     .part = true,
                                                     .useless_from = wish.useless_from,
                                                     .now = now},
                                                    placed);
  if (decision.outcome == DiskOutcome::kPlaced) {
    decision.place = placed.place;
    decision.turn = placed.turn;
    decision.order = placed.order;
    decision.version = tier_->next_version();
    const EntryRef ref = table.insert({.key = mixed,
                                       .place = placed.place,
                                       .fresh_until = MonotonicTime::max(),
                                       .keep_until = MonotonicTime::max(),
                                       .part = true});
    ENCORE_CHECK(ref != kNoEntry, "memory for an entry on disk");
    tier_->entry_came({placed.place, true});
    budget_->grow(kDiskEntryBytes);
  }
  ++tier_->counters.part_outcomes[static_cast<std::size_t>(decision.outcome)];
  event.disk_outcome = static_cast<std::uint8_t>(decision.outcome);
  event.place = decision.place;
  event.turn = decision.turn.sequence;
  event.version = decision.version;
  publish(event);
  return decision;
}

std::uint64_t Kernel::disk_body_max() const {
  OptionalLock tier_lock(tier_->mutex);
  return tier_->bytes_in_service() / kDiskBodyShare;
}

std::expected<DiskPlace, PartMissing> Kernel::find_part(const Key& part, MonotonicTime now) const {
  Shard& shard = shard_for(part.hash);
  OptionalLock lock(shard.mutex);
  const DiskTable& table = *shard.disk;
  const EntryRef ref = table.find(EntryKeys::mixed_key(part.hash), 0);
  std::expected<DiskPlace, PartMissing> found = std::unexpected(PartMissing::kAbsent);
  if (ref != kNoEntry && table.is_part(ref)) {
    found = table.written(ref) ? std::expected<DiskPlace, PartMissing>(table.place(ref))
                               : std::unexpected(PartMissing::kNotWritten);
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    Event event{.kind = EventKind::kPartFound,
                .outcome = found ? kPartIsWritten : static_cast<std::uint8_t>(found.error()),
                .shard = shard.number,
                .now = now,
                .key = part.hash,
                .place = found.value_or(DiskPlace{})};
    publish(event);
  }
  return found;
}

}  // namespace encore::cache
