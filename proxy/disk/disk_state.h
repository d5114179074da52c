// Shared state of the units of one disk, and of all disks. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "cache/disk_types.h"
#include "filter/hash.h"
#include "proxy/disk/counted_file.h"
#include "proxy/disk/disk_witness.h"
#include "proxy/disk/format.h"
#include "proxy/disk/kernel_link.h"
#include "proxy/disk/purge_rules.h"
#include "proxy/disk/relocations.h"
#include "proxy/disk/wanted_parts.h"

namespace encore::disk {

struct DiskClocks {
  std::function<MonotonicTime()> monotonic = monotonic_now;
  std::function<WallTime()> wall = wall_now;

  WallSeconds wall_seconds() const;
};
// Converts a time on a disk for the kernel: not before its beginning; the last one that can be
// written is never.
MonotonicTime monotonic_of(WallSeconds time, MonotonicTime now, WallTime wall);

// One for all disks. It outlives them where a thread is stuck in a device.
struct DiskCommon {
  explicit DiskCommon(WitnessFiles witness_files = {}) : witness(std::move(witness_files)) {}

  DiskClocks clocks;
  KernelLink kernel;
  WantedParts wanted;
  DiskWitness witness;
  // Something was purged of which no disk here knows anything; an absent one may have it.
  std::atomic<bool> has_purge = false;
  // Nothing is placed or written: another process takes the disks over, has them, or has them yet.
  std::atomic<bool> is_held = false;
  // On all disks, within a second. The kernel's mutexes are not held.
  std::function<void(const filter::Hash128& key, cache::DiskTombstone tombstone)> add_tombstone;
  // Version of the record there; nothing: it cannot be read now.
  std::function<std::optional<cache::DiskVersion>(const cache::DiskPlace& place,
                                                  const filter::Hash128& key)>
      version_at;

  // Records loaded at the start go to the kernel one disk at a time, so that a record of one disk
  // that it refuses (the number) is not given to it from another.
  Mutex loading;
  using KeyVariant = std::pair<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t>;
  std::map<KeyVariant, std::uint16_t> refused ENCORE_GUARDED_BY(loading);
};

// One disk's.
class DiskState {
 public:
  DiskState(std::uint16_t disk_number, std::shared_ptr<DiskCommon> shared, CountedFile& disk_file,
            const Superblock& layout, MatchesRule matches)
      : number(disk_number),
        common(std::move(shared)),
        file(disk_file),
        superblock(layout),
        rules(std::move(matches)),
        sequences_(layout.segments) {}

  const std::uint16_t number;
  const std::shared_ptr<DiskCommon> common;
  CountedFile& file;
  const Superblock superblock;
  PurgeRules rules;
  Readings readings;
  Relocations moves{readings};

  // Sequence of the segment's current contents; 0: none.
  std::uint64_t sequence(std::uint32_t segment) const {
    return segment < sequences_.size() ? sequences_[segment].load() : 0;
  }
  // The lowest of all segments; 0: there is none.
  std::uint64_t oldest_sequence() const;
  void set_sequence(std::uint32_t segment, std::uint64_t sequence) {
    sequences_[segment].store(sequence);
  }

  bool is_offline() const { return is_offline_.load(); }
  // Nothing is written to it or loaded from it any more.
  void take_offline();

  // It cannot be read, or is not what it should be: the index forgets it. Whether it had it.
  bool lose(const filter::Hash128& key, const cache::DiskPlace& place);
  // Version of the record there, wherever its bytes are. Blocks in the device.
  std::optional<cache::DiskVersion> version_at(const cache::DiskPlace& place,
                                               const filter::Hash128& key);

  std::atomic<bool> is_loading = true;  // at the start
  std::atomic<bool> is_paused = false;  // writes are, for they have failed
  std::atomic<std::uint64_t> pauses = 0;
  std::atomic<std::uint64_t> damaged = 0;  // records that were not sound when they were read
  std::atomic<std::uint64_t> admit_bytes = 0;
  std::atomic<std::uint64_t> move_bytes = 0;
  std::atomic<std::uint64_t> failed_records = 0;  // that were not written, or not moved

 private:
  std::vector<std::atomic<std::uint64_t>> sequences_;
  std::atomic<bool> is_offline_ = false;
};

}  // namespace encore::disk
