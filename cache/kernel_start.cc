// What is found on disks at a start becomes entries of the index; the locks are those of
// kernel_disk.cc.
#include <algorithm>
#include <numeric>
#include <vector>

#include "cache/budget.h"
#include "cache/disk_codec.h"
#include "cache/disk_tier.h"
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {
namespace {

// Records ahead of the one that is loaded for which the index's memory is asked.
constexpr std::size_t kLoadAhead = 8;

}  // namespace

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
  DiskLoaded result;
  Shard& shard = *shards_[step.shard];
  OptionalLock lock(shard.mutex);
  OptionalLock budget_lock(budget_->mutex);
  OptionalLock tier_lock(tier_->mutex);
  budget_->give_back_reservation(step.reserved_bytes);
  std::uint32_t& inserted = result.inserted;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i + kLoadAhead < records.size()) {
      shard.disk->prefetch(EntryKeys::mixed_key(records[i + kLoadAhead].key));
    }
    const DiskRecord& record = records[i];
    const MixedKey mixed = EntryKeys::mixed_key(record.key);
    if (!tier_->takes_found(record.place)) {
      continue;
    }
    const bool is_new_key = shard.disk->find(mixed) == kNoEntry;
    const EntryRef same = is_new_key ? kNoEntry : shard.disk->find(mixed, record.variant);
    const bool is_twin = same != kNoEntry && shard.disk->place(same).disk != record.place.disk;
    // What is past its time as well: an older one with more time must not take its place.
    const bool is_newest =
        same == kNoEntry || (!is_twin && tier_->is_later(record.place, shard.disk->place(same)));
    if (is_twin) {
      result.twins.push_back({i, shard.disk->place(same)});
    }
    if (is_newest && same != kNoEntry) {
      erase_on_disk(shard, same);
    }
    const bool is_live = is_newest && !is_index_full() &&
                         (is_new_key || shard.disk->variants(mixed) < shard.variants_max) &&
                         shard.disk->insert({.key = mixed,
                                             .variant = record.variant,
                                             .names = record.names,
                                             .place = record.place,
                                             .fresh_until = record.fresh_until,
                                             .keep_until = record.keep_until,
                                             .written = true,
                                             .visited = record.visited,
                                             .part = record.part}) != kNoEntry;
    if (is_newest && !is_live) {
      // What is short of memory for a moment only does not cost all that is older.
      const bool leaves = !tier_->has_room(kDiskEntryBytes, index_max());
      result.refused.push_back({.record = i, .leaves = leaves});
      // A part is of no use without its head.
      if (leaves && !record.part) {
        tier_->found_without_room(record.place);
      }
    }
    tier_->found({record.place, record.part}, is_live);
    budget_->grow(is_live ? kDiskEntryBytes : 0);
    inserted += is_live ? 1 : 0;
    (record.part ? tier_->counters.parts_loaded : tier_->counters.loaded) += is_live ? 1 : 0;
  }
  if (hooks_.observer != nullptr) [[unlikely]] {
    const std::string text = encode_records(records);
    Event event{.kind = EventKind::kLoad,
                .shard = step.shard,
                .now = now,
                .reserved_bytes = step.reserved_bytes,
                .text = text};
    event.disk_entries = inserted;
    publish(event);
  }
  return result;
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

void Kernel::loaded(std::uint16_t disk, MonotonicTime now) {
  OptionalLock lock(shards_.front()->mutex);
  OptionalLock tier_lock(tier_->mutex);
  tier_->loaded(disk);
  Event event{.kind = EventKind::kLoaded, .now = now, .place = {.disk = disk}};
  publish(event);
}

}  // namespace encore::cache
