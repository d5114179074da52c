// DiskSlab: the memory of a shard's entries for what lies on disk, 36 bytes each, addressed by
// 32-bit numbers that stay valid. Chunks are taken when needed, the lowest free place first, and
// given back when they are empty. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/disk_place.h"
#include "cache/entry_slab.h"

namespace encore::cache {

// The part of a key that an entry on disk knows: the 64 bits that the memory table's index derives
// from it, and its tag there (seven bits, and the highest set). The text in the record
// distinguishes two keys with equal values.
struct MixedKey {
  std::uint64_t mixed = 0;
  std::uint8_t tag = 0;
  friend bool operator==(const MixedKey&, const MixedKey&) = default;
};

// Packed: see the accessors. Times are monotonic, in whole seconds.
class DiskEntry {
 public:
  static constexpr std::uint32_t kForever = 0xffffffffU;

  MixedKey key() const {
    return {word(key_low_, key_high_), static_cast<std::uint8_t>(0x80U | (life_ & kTagMask))};
  }
  void set_key(const MixedKey& key) {
    key_low_ = static_cast<std::uint32_t>(key.mixed);
    key_high_ = static_cast<std::uint32_t>(key.mixed >> 32U);
    life_ = static_cast<std::uint16_t>((life_ & ~kTagMask) | (key.tag & kTagMask));
  }
  bool is_there() const { return room_code() != 0; }
  DiskPlace place() const;
  void set_place(const DiskPlace& place);
  void clear() { place_low_ = place_high_ = 0; }
  // Hits since it was written, or what a move has left of them, up to kVisitsMax.
  static constexpr std::uint32_t kVisitsMax = 7;
  std::uint32_t visits() const { return names_ >> kVisitsShift & kVisitsMax; }
  // REQUIRES: visits <= kVisitsMax.
  void set_visits(std::uint32_t visits) {
    names_ = static_cast<std::uint16_t>((names_ & ~(kVisitsMax << kVisitsShift)) |
                                        visits << kVisitsShift);
  }
  // was_visited(): it was hit since it was first written; filled(): that write filled a disk (for
  // counts).
  bool was_visited() const { return (names_ & kWasVisited) != 0; }
  void set_was_visited() { names_ = static_cast<std::uint16_t>(names_ | kWasVisited); }
  bool filled() const { return (place_high_ & kFilled) != 0; }
  void set_filled(bool filled) { set(kFilled, filled); }
  bool written() const { return (place_high_ & kWritten) != 0; }
  void set_written(bool written) { set(kWritten, written); }
  bool is_part() const { return (place_high_ & kPart) != 0; }
  void set_part(bool part) { set(kPart, part); }

  // The first second at which it is stale, and the first at which it is of no use; kForever: none.
  // The latter is held with five binary digits of what it is beyond the former, rounded down.
  std::uint32_t fresh_until() const { return fresh_until_; }
  std::uint32_t keep_until() const;
  void set_times(std::uint32_t fresh_until, std::uint32_t keep_until);

  std::uint32_t variant = 0;            // the low half
  EntryRef next_variant = kNoEntry;     // an entry of the same key, stored before this one
  EntryRef next_in_segment = kNoEntry;  // in the same part of the segment; free: the next free one
  // REQUIRES: names < kDiskNamesMax.
  std::uint16_t names() const { return static_cast<std::uint16_t>(names_ & kNamesMask); }
  void set_names(std::uint16_t names) {
    names_ = static_cast<std::uint16_t>((names_ & ~kNamesMask) | names);
  }

 private:
  static constexpr std::uint32_t kTagMask = 0x7f;
  static constexpr std::uint32_t kNamesMask = kDiskNamesMax - 1;
  static constexpr std::uint32_t kVisitsShift = 12;
  static constexpr std::uint32_t kWasVisited = 1U << 15U;
  static_assert(kDiskNamesMax == 1U << kVisitsShift);
  // place_high_: part 1 | room 15 | written 1 | filled 1 | disk 4 | segment, upper 10
  // place_low_: segment, lower 10 | unit 22
  static constexpr std::uint32_t kFilled = 1U << 14U;
  static constexpr std::uint32_t kWritten = 1U << 15U;
  static constexpr std::uint32_t kRoomMask = 0x7fff;
  static constexpr std::uint32_t kPart = 1U << 31U;

  static std::uint64_t word(std::uint32_t low, std::uint32_t high) {
    return low | (std::uint64_t{high} << 32U);
  }
  std::uint32_t room_code() const { return place_high_ >> 16U & kRoomMask; }
  void set(std::uint32_t bit, bool on) {
    place_high_ = on ? place_high_ | bit : place_high_ & ~bit;
  }

  std::uint16_t names_ = 0;  // was visited 1 | visits 3 | number of the names 12
  std::uint16_t life_ = 0;   // keep_until beyond fresh_until 9 | tag 7
  std::uint32_t key_low_ = 0;
  std::uint32_t key_high_ = 0;
  std::uint32_t place_low_ = 0;
  std::uint32_t place_high_ = 0;
  std::uint32_t fresh_until_ = 0;
};
static_assert(sizeof(DiskEntry) == 36);
static_assert(kSegmentBytesMax / kDiskUnit == 1U << 22U && kSegmentsMax == 1U << 20U &&
              kDisksMax == 1U << 4U);

class DiskSlab {
 public:
  // A place for an entry; kNoEntry if memory cannot be had or 2^32 - 2 are there.
  EntryRef allocate();
  void release(EntryRef ref);

  DiskEntry& at(EntryRef ref) { return chunks_[ref / kChunk].entries[ref % kChunk]; }
  const DiskEntry& at(EntryRef ref) const { return chunks_[ref / kChunk].entries[ref % kChunk]; }

  std::uint32_t size() const { return size_; }
  // All entries have numbers below this.
  std::uint32_t slots() const { return static_cast<std::uint32_t>(chunks_.size()) * kChunk; }
  // True if a place holds an entry. REQUIRES: ref < slots().
  bool holds(EntryRef ref) const {
    return chunks_[ref / kChunk].entries != nullptr && at(ref).is_there();
  }
  std::uint64_t memory_bytes() const {
    return held_ * kChunk * sizeof(DiskEntry) + chunks_.capacity() * sizeof(Chunk);
  }

  static constexpr std::uint32_t kChunk = 512;

 private:
  struct Chunk {
    std::unique_ptr<DiskEntry[]> entries;
    EntryRef free = kNoEntry;
    std::uint32_t untouched = 0;  // places from here on were never used
    std::uint32_t used = 0;
  };

  std::vector<Chunk> chunks_;
  std::uint32_t first_ = 0;  // the chunks before have no room
  std::uint64_t held_ = 0;   // chunks with memory
  std::uint32_t size_ = 0;
};

}  // namespace encore::cache
