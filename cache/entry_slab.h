// EntrySlab: the memory of a shard's entries, addressed by 32-bit numbers that stay valid. Chunks
// of entries are mapped when needed, and the lowest free place is used first. Empty chunks go back
// to the system, so that a cache of few large objects does not keep the memory of many small ones.
// Nothing is ever moved or copied. Thread-compatible.
//
// An entry has two halves. The hot half is what index and eviction policy read; the cold half is
// what only stored responses need (payload, variant, times). Without any of these, as in most
// simulations, the cold half is never mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/prefetch.h"
#include "base/time.h"
#include "cache/types.h"
#include "filter/hash.h"

namespace encore::cache {

using EntryRef = std::uint32_t;
inline constexpr EntryRef kNoEntry = 0xffffffffU;

struct HotEntry {
  filter::Hash128 key;
  // The eviction policy's own eight bytes: the adjacent entries in its list, or other data of the
  // policy.
  EntryRef newer;
  EntryRef older;
  std::uint64_t charge : 40;
  std::uint64_t policy_bits : 16;  // the eviction policy's own
  std::uint64_t in_use : 1;
  std::uint64_t epoch : 2;   // which order it is in, see Table
  std::uint64_t reused : 1;  // it was found since it was stored
};
static_assert(sizeof(HotEntry) == 32);

struct ColdEntry {
  Payload payload;
  std::uint64_t variant;
  MonotonicTime fresh_until;
  std::uint32_t keep_seconds;  // beyond fresh_until, kKeepForever: for ever
  EntryRef next_variant;       // an entry of the same key, stored before this one
};
static_assert(sizeof(ColdEntry) == 32);
inline constexpr std::uint32_t kKeepForever = 0xffffffffU;

class EntrySlab {
 public:
  EntrySlab() = default;
  EntrySlab(const EntrySlab&) = delete;
  EntrySlab& operator=(const EntrySlab&) = delete;

  // A place for an entry, its halves not initialised but for in_use; kNoEntry if memory cannot be
  // had or 2^32 - 1 are there.
  EntryRef allocate();
  void release(EntryRef ref);

  HotEntry& hot(EntryRef ref) { return hot_[ref / kChunk][ref % kChunk]; }
  const HotEntry& hot(EntryRef ref) const { return hot_[ref / kChunk][ref % kChunk]; }
  // REQUIRES: has_cold().
  ColdEntry& cold(EntryRef ref) { return cold_[ref / kChunk][ref % kChunk]; }
  const ColdEntry& cold(EntryRef ref) const { return cold_[ref / kChunk][ref % kChunk]; }

  bool has_cold() const { return has_cold_; }
  // Asks for the memory of the cold half, if there is one.
  void prefetch_cold(EntryRef ref) const {
    if (has_cold_) encore::prefetch(&cold_[ref / kChunk][ref % kChunk]);
  }
  // Maps cold halves from now on; those of existing entries are default ones (no payload, variant
  // 0, never stale). False if memory cannot be had. Reads all entries.
  bool need_cold();

  std::uint32_t size() const { return size_; }
  // All entries have numbers below this.
  std::uint32_t slots() const { return static_cast<std::uint32_t>(hot_.size()) * kChunk; }
  // True if a place holds an entry. REQUIRES: ref < slots().
  bool holds(EntryRef ref) const {
    return hot_[ref / kChunk] != nullptr && hot_[ref / kChunk][ref % kChunk].in_use != 0;
  }
  // Mapped, touched or not.
  std::uint64_t memory_bytes() const;

  static constexpr std::uint32_t kChunk = 4096;

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(void* memory) const;
  };
  template <typename T>
  using Mapped = std::unique_ptr<T[], Unmap>;
  struct Chunk {
    EntryRef free = kNoEntry;     // linked by `older`
    std::uint32_t untouched = 0;  // places from here on were never used
    std::uint32_t used = 0;
  };

  bool map(std::uint32_t chunk);
  void unmap(std::uint32_t chunk);
  void set_has_room(std::uint32_t chunk, bool has_room);
  std::uint32_t first_with_room();

  std::vector<Mapped<HotEntry>> hot_;
  std::vector<Mapped<ColdEntry>> cold_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint64_t> has_room_;    // a bit a chunk
  std::uint32_t first_word_ = 0;           // no room in the words below
  std::uint32_t empty_mapped_ = kNoEntry;  // one empty chunk is kept
  std::uint32_t mapped_ = 0;
  std::uint32_t size_ = 0;
  bool has_cold_ = false;
};

}  // namespace encore::cache
