// Index: from a key's hash to the first entry of its chain. Extendible hashing (Fagin et al. 1979)
// over small segments of one-line buckets: a lookup reads the directory (8 bytes for some 200
// entries), one 64-byte bucket with tags and references together, and the entry. Growing splits one
// segment of some 300 entries, shrinking joins two: never a pause. Thread-compatible.
//
// A bucket counts how many entries passed it by for a later one because it was full (as in
// Facebook's F14, 2019), so a search ends at the first bucket with count 0 and erasing leaves no
// tombstones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/entry_slab.h"
#include "filter/hash.h"

namespace encore::cache {

class Index {
 public:
  // The slab holds the keys; borrowed.
  explicit Index(const EntrySlab& slab);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  EntryRef find(const filter::Hash128& key) const {
    const EntryRef* slot = locate(key, mix(key)).slot;
    return slot == nullptr ? kNoEntry : *slot;
  }
  // REQUIRES: the key is absent; slab.hot(ref).key is the key.
  void insert(const filter::Hash128& key, EntryRef ref);
  // REQUIRES: the key is present. `to` has the same key.
  void replace(const filter::Hash128& key, EntryRef to);
  // REQUIRES: the key is present, and its entry still in the slab.
  void erase(const filter::Hash128& key);

  void prefetch(const filter::Hash128& key) const;
  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWays = 12;
  static constexpr std::uint32_t kBuckets = 31;
  // Fill at which a segment is split (85 %), and at which two are joined (25 % in one).
  static constexpr std::uint32_t kSplitAt = 316;
  static constexpr std::uint32_t kJoinAt = 93;
  // More means that the hash does not tell the keys apart.
  static constexpr std::uint32_t kDepthMax = 30;

  struct alignas(64) Bucket {
    std::array<std::uint8_t, kWays> tags;  // 0: empty
    std::uint16_t passed_by;
    std::uint16_t unused;
    std::array<EntryRef, kWays> refs;
  };
  struct alignas(64) Segment {
    std::uint32_t size = 0;
    std::uint32_t depth = 0;
    std::array<Bucket, kBuckets> buckets{};
  };
  static_assert(sizeof(Bucket) == 64 && sizeof(Segment) == 2048);

  struct Place {
    EntryRef* slot = nullptr;
    Segment* segment = nullptr;
    std::uint32_t bucket = 0;
    std::uint32_t way = 0;
  };

  // 64 bits: the highest `depth` choose the segment, the low 32 the bucket, seven others the tag.
  static std::uint64_t mix(const filter::Hash128& key) {
    const std::uint64_t x = (key.lo + key.hi * 0xc2b2ae3d27d4eb4fU) * 0x9e3779b97f4a7c15U;
    return (x ^ (x >> 32U)) * 0xd6e8feb86659fd93U;
  }
  static std::uint32_t bucket_of(std::uint64_t mixed) {
    return static_cast<std::uint32_t>(((mixed & 0xffffffffU) * kBuckets) >> 32U);
  }
  static std::uint8_t tag_of(std::uint64_t mixed, const filter::Hash128& key) {
    return static_cast<std::uint8_t>(0x80U | ((key.lo ^ mixed) & 0x7fU));
  }
  std::size_t directory_index(std::uint64_t mixed) const {
    return depth_ == 0 ? 0 : mixed >> (64 - depth_);
  }
  static std::uint32_t match(const Bucket& bucket, std::uint8_t tag);

  Place locate(const filter::Hash128& key, std::uint64_t mixed) const;
  static void put(Segment& segment, std::uint64_t mixed, std::uint8_t tag, EntryRef ref);
  void put_all(const Segment& from, Segment& low, Segment* high);
  void split(std::uint64_t mixed);
  void join(std::uint64_t mixed);

  const EntrySlab& slab_;
  std::vector<Segment*>
      directory_;  // 2^depth_; a segment of depth d stands there 2^(depth_-d) times
  std::uint32_t depth_ = 0;
  std::uint32_t segments_ = 0;
};

}  // namespace encore::cache
