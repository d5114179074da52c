#include "cache/disk_table.h"

#include <algorithm>

#include "base/check.h"

namespace encore::cache {
namespace {

std::uint32_t seconds_of(MonotonicTime time) {
  if (time == MonotonicTime::max()) {
    return DiskEntry::kForever;
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, DiskEntry::kForever - 1));
}

MonotonicTime time_of_seconds(std::uint32_t seconds) {
  return seconds == DiskEntry::kForever ? MonotonicTime::max()
                                        : MonotonicTime(std::chrono::seconds(seconds));
}

}  // namespace

DiskTable::DiskTable(std::span<const DiskOptions> disks) {
  for (const DiskOptions& disk : disks) {
    disks_.push_back({.part_units = disk.segment_bytes / kDiskUnit / kChains, .heads = {}});
  }
}

EntryRef DiskTable::find(const MixedKey& key, std::uint32_t variant) const {
  EntryRef ref = index_.find(key);
  while (ref != kNoEntry && slab_.at(ref).variant != variant) {
    ref = next(ref);
  }
  return ref;
}

EntryRef DiskTable::find_at(const MixedKey& key, const DiskPlace& place) const {
  EntryRef ref = index_.find(key);
  while (ref != kNoEntry && slab_.at(ref).place() != place) {
    ref = next(ref);
  }
  return ref;
}

std::uint32_t DiskTable::variants(const MixedKey& key) const {
  std::uint32_t count = 0;
  for (EntryRef ref = find(key); ref != kNoEntry; ref = next(ref)) {
    ++count;
  }
  return count;
}

EntryRef DiskTable::insert(const Record& record) {
  const EntryRef ref = slab_.allocate();
  if (ref == kNoEntry) {
    return kNoEntry;
  }
  DiskEntry& entry = slab_.at(ref);
  entry.set_key(record.key);
  entry.variant = record.variant;
  entry.set_names(record.names);
  entry.set_place(record.place);
  entry.set_written(record.written);
  entry.set_visits(record.visited ? 1 : 0);
  entry.set_part(record.part);
  entry.set_filled(record.filled);
  set_times(ref, record.fresh_until, record.keep_until);
  entry.next_variant = index_.find(record.key);
  if (entry.next_variant == kNoEntry) {
    index_.insert(record.key, ref);
  } else {
    index_.replace(record.key, ref);
  }
  link(ref);
  return ref;
}

void DiskTable::erase(EntryRef ref) {
  const MixedKey key = slab_.at(ref).key();
  const EntryRef after = next(ref);
  const EntryRef first = index_.find(key);
  if (first != ref) {
    EntryRef before = first;
    while (before != kNoEntry && next(before) != ref) {
      before = next(before);
    }
    ENCORE_CHECK(before != kNoEntry, "an entry is in the chain of its key");
    slab_.at(before).next_variant = after;
  } else if (after == kNoEntry) {
    index_.erase(key);
  } else {
    index_.replace(key, after);
  }
  unlink(ref);
  slab_.release(ref);
}

void DiskTable::move(EntryRef ref, const DiskPlace& place) {
  unlink(ref);
  slab_.at(ref).set_place(place);
  link(ref);
}

void DiskTable::set_times(EntryRef ref, MonotonicTime fresh_until, MonotonicTime keep_until) {
  slab_.at(ref).set_times(seconds_of(fresh_until), seconds_of(keep_until));
}

void DiskTable::mark_stale(EntryRef ref, MonotonicTime now) {
  DiskEntry& entry = slab_.at(ref);
  if (entry.fresh_until() > seconds_of(now)) {
    entry.set_times(seconds_of(now), entry.keep_until());
  }
}

DiskView DiskTable::view(EntryRef ref) const {
  const DiskEntry& entry = slab_.at(ref);
  return {.variant = entry.variant,
          .names = entry.names(),
          .visited = entry.visits() != 0,
          .place = entry.place(),
          .fresh_until = time_of_seconds(entry.fresh_until()),
          .keep_until = time_of_seconds(entry.keep_until())};
}

// --- the chains of segments ----------------------------------------------------------------------

EntryRef& DiskTable::head_of(const DiskPlace& place) {
  Chains& chains = disks_[place.disk];
  const std::size_t head = std::size_t{place.segment} * kChains +
                           std::min<std::uint64_t>(place.unit / chains.part_units, kChains - 1);
  if (head >= chains.heads.size()) {
    chains.heads.resize((std::size_t{place.segment} + 1) * kChains, kNoEntry);
  }
  return chains.heads[head];
}

void DiskTable::link(EntryRef ref) {
  DiskEntry& entry = slab_.at(ref);
  EntryRef& head = head_of(entry.place());
  entry.next_in_segment = head;
  head = ref;
}

void DiskTable::unlink(EntryRef ref) {
  const DiskEntry& entry = slab_.at(ref);
  EntryRef& head = head_of(entry.place());
  if (head == ref) {
    head = entry.next_in_segment;
    return;
  }
  EntryRef before = head;
  while (before != kNoEntry && slab_.at(before).next_in_segment != ref) {
    before = slab_.at(before).next_in_segment;
  }
  ENCORE_CHECK(before != kNoEntry, "an entry is in the chain of its segment");
  slab_.at(before).next_in_segment = entry.next_in_segment;
}

EntryRef DiskTable::first_of(std::uint16_t disk, std::uint32_t segment) const {
  const std::vector<EntryRef>& heads = disks_[disk].heads;
  for (std::size_t head = std::size_t{segment} * kChains;
       head < (std::size_t{segment} + 1) * kChains && head < heads.size(); ++head) {
    if (heads[head] != kNoEntry) {
      return heads[head];
    }
  }
  return kNoEntry;
}

std::uint64_t DiskTable::memory_bytes() const {
  std::uint64_t bytes = slab_.memory_bytes() + index_.memory_bytes();
  for (const Chains& chains : disks_) {
    bytes += chains.heads.capacity() * sizeof(EntryRef);
  }
  return bytes;
}

}  // namespace encore::cache
