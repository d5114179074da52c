// The disks' part of the kernel: locks and events around what DiskEntries does for a shard. Locks,
// in this order: a shard's, the budget's, the tier's. A change of the tier has its event numbered
// under the tier's.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cache/budget.h"
#include "cache/disk_codec.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {

std::uint32_t Kernel::charge_of_disk_entry() const { return kDiskEntryBytes; }

std::string_view Kernel::disk_names(std::uint16_t number) const { return tier_->names(number); }

std::uint64_t Kernel::disk_body_max() const {
  OptionalLock tier_lock(tier_->mutex);
  return tier_->bytes_in_service() / kDiskBodyShare;
}

LookupResult Kernel::lookup_on_disk(Shard& shard, const Key& key, const DiskQuestion& question,
                                    LookupOutput looked) {
  const DiskView view = shard.disk->find(key, question.now, question.selector, looked.result);
  if (question.found != nullptr) {
    *question.found = view;
  }
  if (looked.result.state == LookupState::kMiss) {
    shard.counters.misses.add(looked.result.is_undecided ? 0 : 1);
  } else {
    const bool is_fresh = looked.result.state == LookupState::kFresh;
    (is_fresh ? shard.counters.fresh_hits : shard.counters.stale_hits).add();
    (is_fresh ? shard.counters.disk_fresh_hits : shard.counters.disk_stale_hits).add();
    shard.admission.used(key);
  }
  // An undecided lookup is recorded only if something has expired on the way: as a miss.
  if (looked.gone.count() != 0 || (hooks_.observer != nullptr && !looked.result.is_undecided)) {
    end_lookup(shard, key, question.now, looked, view.place);
  }
  return looked.result;
}

// --- parts of bodies, each an entry under a key of its own ---------------------------------------

DiskDecision Kernel::place_part(const Key& part, const PartRequest& wish, MonotonicTime now) {
  // Without room for its entry it is refused; the step says so.
  const bool has_room = reserve(part, kDiskEntryBytes, now) == ReserveOutcome::kReserved;
  return place_part_step(part, wish, has_room ? kDiskEntryBytes : 0, now);
}

DiskDecision Kernel::place_part_step(const Key& part, const PartRequest& wish,
                                     std::uint64_t reserved_bytes, MonotonicTime now) {
  Shard& shard = shard_for(part.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  budget_->give_back_reservation(reserved_bytes);
  const bool replaces = shard.disk->has(part, 0);
  const DiskDecision decision = shard.disk->place_part(part, wish, now, *budget_, *tier_);
  Event event{.kind = EventKind::kPart,
              .shard = shard.number,
              .now = now,
              .key = part.hash,
              .reserved_bytes = reserved_bytes,
              .keep_until = wish.useless_from,
              .disk_flags = wish.queue_full ? kQueueFull : std::uint8_t{0},
              .disk_outcome = static_cast<std::uint8_t>(decision.outcome),
              .place = decision.place,
              .turn = decision.turn.sequence,
              .version = decision.version,
              .disk_bytes = wish.bytes,
              .disk_entries = replaces ? 1U : 0U};
  publish(event);
  return decision;
}

std::expected<DiskPlace, PartMissing> Kernel::find_part(const Key& part, MonotonicTime now) const {
  Shard& shard = shard_for(part.hash);
  OptionalLock lock(shard.mutex);
  const auto found = shard.disk->find_part(part);
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

// --- results of writing and reading --------------------------------------------------------------

DiskTombstone Kernel::written(const Key& key, const DiskPlace& place, Write write,
                              MonotonicTime now) {
  Event event{.kind = EventKind::kWritten,
              .outcome = static_cast<std::uint8_t>(write),
              .now = now,
              .key = key.hash,
              .place = place};
  if (write == Write::kFailed) {
    return end_record(key, event, DiskLoss::kWriteFailed);
  }
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  event.shard = shard.number;
  event.disk_entries = shard.disk->set_written(key, place) ? 1 : 0;
  publish(event);
  return {};
}

DiskTombstone Kernel::lost(const Key& key, const DiskPlace& place, MonotonicTime now) {
  Event event{.kind = EventKind::kLost, .now = now, .key = key.hash, .place = place};
  return end_record(key, event, DiskLoss::kUnreadable);
}

DiskTombstone Kernel::end_record(const Key& key, Event& event, DiskLoss loss) {
  Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const auto version = shard.disk->lose(key, event.place, loss, *budget_, *tier_);
  event.version = version.value_or(0);
  event.disk_entries = version ? 1 : 0;
  event.shard = shard.number;
  publish(event);
  return {event.version};
}

// --- reclaiming ----------------------------------------------------------------------------------

DiskReclaim Kernel::reclaim_disk(std::uint16_t disk, std::span<const DiskPlace> being_read,
                                 MonotonicTime now) {
  std::optional<std::uint32_t> shard;
  {
    OptionalLock budget_lock(budget_->mutex);
    OptionalLock tier_lock(tier_->mutex);
    shard = tier_->reclaim_shard(disk, budget_->disk_index_max());
  }
  return shard ? reclaim_disk_step({disk, *shard, being_read}, now) : DiskReclaim{};
}

DiskReclaim Kernel::reclaim_disk_step(const DiskStep& step, MonotonicTime now) {
  Shard& shard = *shards_[step.shard];
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  // The tier said whose turn it is before this shard's lock was taken: it may be another's by now.
  if (tier_->reclaim_shard(step.disk, budget_->disk_index_max()) != step.shard) {
    return {};
  }
  DiskEntries::Reclaimed reclaimed =
      shard.disk->reclaim({step.disk, step.being_read, now}, *budget_, *tier_);
  const DiskReclaim& done = reclaimed.done;
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = reclaimed.counted ? std::string() : encode_places(step.being_read);
    Event event{.kind = EventKind::kDiskReclaim,
                .outcome = static_cast<std::uint8_t>(done.state),
                .shard = step.shard,
                .now = now,
                .removed = done.dropped,
                .freed_bytes = reclaimed.dropped_bytes,
                .removed_digest = reclaimed.digest,
                .place = {.disk = step.disk, .segment = done.segment},
                .version = done.tombstone.version,
                .disk_bytes = reclaimed.moved_bytes,
                .disk_entries = static_cast<std::uint32_t>(done.moves.size()),
                .text = text};
    publish(event);
  }
  return std::move(reclaimed.done);
}

bool Kernel::free_segment(std::uint16_t disk, std::uint32_t segment, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const bool freed = tier_->free_segment(disk, segment);
  Event event{.kind = EventKind::kFreeSegment,
              .outcome = freed ? std::uint8_t{0} : std::uint8_t{1},
              .now = now,
              .place = {.disk = disk, .segment = segment}};
  publish(event);
  return freed;
}

// --- the start -----------------------------------------------------------------------------------

DiskLoaded Kernel::load(std::span<const DiskRecord> records, MonotonicTime now) {
  DiskLoaded loaded;
  // Their numbers, those of one shard behind those of the other: `ends` begins as the beginnings.
  std::vector<std::size_t> ends(options_.shards + 1, 0);
  const auto shard_of = [&](const DiskRecord& record) {
    return filter::shard_of(record.key, options_.shards);
  };
  for (const DiskRecord& record : records) ++ends[shard_of(record) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<std::size_t> order(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) order[ends[shard_of(records[i])]++] = i;
  std::vector<DiskRecord> own;
  own.reserve(kReclaimEntries);
  for (std::size_t at = 0, shard = 0; at < order.size();) {
    while (ends[shard] == at) ++shard;
    const auto numbers =
        std::span(order).subspan(at, std::min<std::size_t>(kReclaimEntries, ends[shard] - at));
    at += numbers.size();
    own.clear();
    for (const std::size_t number : numbers) own.push_back(records[number]);
    // Without room in memory nothing is loaded; the step says so.
    const std::uint64_t wanted = own.size() * kDiskEntryBytes;
    const bool has_room = reserve({own.front().key, {}}, wanted, now) == ReserveOutcome::kReserved;
    const DiskLoaded step =
        load_step({static_cast<std::uint32_t>(shard), has_room ? wanted : 0}, own, now);
    loaded.inserted += step.inserted;
    for (const DiskLoaded::Twins& twin : step.twins) {
      loaded.twins.push_back({numbers[twin.record], twin.other});
    }
    for (const DiskLoaded::Refused& refused : step.refused) {
      loaded.refused.push_back({numbers[refused.record], refused.leaves});
    }
  }
  return loaded;
}

DiskLoaded Kernel::load_step(const LoadStep& step, std::span<const DiskRecord> records,
                             MonotonicTime now) {
  Shard& shard = *shards_[step.shard];
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  budget_->give_back_reservation(step.reserved_bytes);
  DiskLoaded loaded = shard.disk->load(records, *budget_, *tier_);
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = encode_records(records);
    Event event{.kind = EventKind::kLoad,
                .shard = step.shard,
                .now = now,
                .reserved_bytes = step.reserved_bytes,
                .disk_entries = loaded.inserted,
                .text = text};
    publish(event);
  }
  return loaded;
}

bool Kernel::attach(std::uint16_t disk, std::span<const std::uint64_t> sequences,
                    DiskVersion newest, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const bool attached = tier_->attach(disk, sequences, newest);
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = encode_sequences(sequences);
    Event event{.kind = EventKind::kAttach,
                .outcome = attached ? std::uint8_t{0} : std::uint8_t{1},
                .now = now,
                .place = {.disk = disk},
                .version = newest,
                .text = text};
    publish(event);
  }
  return attached;
}

void Kernel::expect(std::uint16_t disk, std::uint64_t records) {
  for (const auto& shard : shards_) {
    OptionalLock lock(shard->mutex);
    OptionalLock tier_lock(tier_->mutex);
    shard->disk->expect(tier_->expect(disk, records) / options_.shards);
  }
}

void Kernel::loaded(std::uint16_t disk, MonotonicTime now) {
  expect(disk, 0);
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->loaded(disk);
  Event event{.kind = EventKind::kLoaded, .now = now, .place = {.disk = disk}};
  publish(event);
}

// --- operation -----------------------------------------------------------------------------------

void Kernel::take_offline(std::uint16_t disk, MonotonicTime now) {
  expect(disk, 0);
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->take_offline(disk);
  Event event{.kind = EventKind::kOffline, .now = now, .place = {.disk = disk}};
  publish(event);
}

void Kernel::resize_disk(std::uint16_t disk, std::uint32_t segments, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->resize(disk, segments);
  Event event{
      .kind = EventKind::kResize, .now = now, .requests = segments, .place = {.disk = disk}};
  publish(event);
}

DiskVersion Kernel::purge_rule(MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  Event event{.kind = EventKind::kPurgeRule, .now = now, .version = tier_->next_version()};
  publish(event);
  return event.version;
}

std::uint64_t Kernel::disk_sequence(std::uint16_t disk) const {
  OptionalLock tier_lock(tier_->mutex);
  return tier_->sequence(disk);
}

std::optional<std::uint16_t> Kernel::intern(std::string_view names, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  const auto number = tier_->intern(names);
  Event event{.kind = EventKind::kNames,
              .outcome = number ? std::uint8_t{0} : std::uint8_t{1},
              .now = now,
              .names = number.value_or(0),
              .text = names};
  publish(event);
  return number;
}

}  // namespace encore::cache
