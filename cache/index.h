// BasicIndex: from a key's hash to the first entry of its chain, a template over where keys lie.
// Extendible hashing (Fagin et al. 1979) over small segments of one-line buckets: a lookup reads
// the directory (8 bytes for some 200 entries), one 64-byte bucket with tags and references
// together, and the entry. Growing splits one segment of some 300 entries, shrinking joins two:
// never a pause. Thread-compatible.
//
// A bucket counts how many entries passed it by for a later one because it was full (as in
// Facebook's F14, 2019), so a search ends at the first bucket with count 0 and erasing leaves no
// tombstones.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/prefetch.h"
#include "cache/disk_slab.h"
#include "cache/entry_slab.h"
#include "filter/hash.h"

namespace encore::cache {

// The keys of entries in memory.
class EntryKeys {
 public:
  using Slab = EntrySlab;
  using Key = filter::Hash128;
  explicit EntryKeys(const EntrySlab& slab) : slab_(slab) {}

  // 64 bits: the highest of them choose the segment, the low 32 the bucket.
  static std::uint64_t mix(const Key& key) {
    const std::uint64_t x = (key.lo + key.hi * 0xc2b2ae3d27d4eb4fU) * 0x9e3779b97f4a7c15U;
    return (x ^ (x >> 32U)) * 0xd6e8feb86659fd93U;
  }
  static std::uint8_t tag_of(std::uint64_t mixed, const Key& key) {
    return static_cast<std::uint8_t>(0x80U | ((key.lo ^ mixed) & 0x7fU));
  }
  static MixedKey mixed_key(const Key& key) {
    const std::uint64_t mixed = mix(key);
    return {mixed, tag_of(mixed, key)};
  }
  bool is_key_of(EntryRef ref, const Key& key) const { return slab_.hot(ref).key == key; }
  std::uint64_t mixed_of(EntryRef ref) const { return mix(slab_.hot(ref).key); }
  // The share of all keys whose mix() is below `position`, both as shares of 1.
  static double share_below(double position) { return position; }
  void prefetch(EntryRef ref) const { encore::prefetch(&slab_.hot(ref)); }
  void prefetch_rest(EntryRef ref) const { slab_.prefetch_cold(ref); }

 private:
  const EntrySlab& slab_;
};

// The keys of entries on disk. The hash of a key is spread so that at any time as many segments of
// the index are small as are large (as in Martin's spiral storage, 1979). So an entry costs the
// same at every size of the index.
class DiskKeys {
 public:
  using Slab = DiskSlab;
  using Key = MixedKey;
  explicit DiskKeys(const DiskSlab& slab) : slab_(slab) {}

  static std::uint64_t mix(const Key& key) { return spread(key.mixed); }
  static std::uint8_t tag_of(std::uint64_t /*mixed*/, const Key& key) { return key.tag; }
  bool is_key_of(EntryRef ref, const Key& key) const { return slab_.at(ref).key() == key; }
  std::uint64_t mixed_of(EntryRef ref) const { return spread(slab_.at(ref).key().mixed); }
  static double share_below(double position) { return std::exp2(position) - 1; }
  void prefetch(EntryRef ref) const { encore::prefetch(&slab_.at(ref)); }
  void prefetch_rest(EntryRef /*ref*/) const {}

 private:
  // The upper half u of the hash, as a share of 1, becomes log2(1 + u), in pieces of straight
  // lines.
  static std::uint64_t spread(std::uint64_t mixed);

  const DiskSlab& slab_;
};

template <typename Keys>
class BasicIndex {
 public:
  using Key = typename Keys::Key;

  // The slab holds the keys; borrowed.
  explicit BasicIndex(const typename Keys::Slab& slab);
  ~BasicIndex();
  BasicIndex(const BasicIndex&) = delete;
  BasicIndex& operator=(const BasicIndex&) = delete;

  EntryRef find(const Key& key) const {
    const EntryRef* slot = locate(key, Keys::mix(key)).slot;
    return slot == nullptr ? kNoEntry : *slot;
  }
  // Finds a key of which only the mixed form is known.
  EntryRef find_mixed(const MixedKey& key) const;
  // REQUIRES: the key is absent; it is the key of the slab's entry `ref`.
  void insert(const Key& key, EntryRef ref);
  // There will be about so many entries: from now on, a segment that they would fill is split while
  // it has few, which moves a fifth of the entries. 0: it is not known.
  void expect(std::uint64_t entries) { expected_ = entries; }
  // REQUIRES: the key is present. `to` has the same key.
  void replace(const Key& key, EntryRef to);
  // REQUIRES: the key is present, and its entry still in the slab.
  void erase(const Key& key);

  void prefetch(const Key& key) const;
  // The same, for insert().
  void prefetch_to_insert(const Key& key) const;
  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWays = 12;
  static constexpr std::uint32_t kBuckets = 31;
  // Fill at which a segment is split (85 %), and at which two are joined (25 % in one).
  static constexpr std::uint32_t kSplitAt = 316;
  static constexpr std::uint32_t kJoinAt = 93;
  // The same for one that is expected to fill. A wrong expectation costs five times the memory at
  // most (docs/decisions/0609).
  static constexpr std::uint32_t kSplitEarlyAt = 64;
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

  // Small enough for two registers: a lookup makes one.
  struct Place {
    EntryRef* slot = nullptr;
    Segment* segment = nullptr;
  };

  static std::uint32_t bucket_of(std::uint64_t mixed) {
    return static_cast<std::uint32_t>(((mixed & 0xffffffffU) * kBuckets) >> 32U);
  }
  std::size_t directory_index(std::uint64_t mixed) const {
    return depth_ == 0 ? 0 : mixed >> (64 - depth_);
  }
  static bool holds(const Bucket& bucket, const EntryRef* slot);
  static std::uint32_t match(const Bucket& bucket, std::uint8_t tag);

  Place locate(const Key& key, std::uint64_t mixed) const;
  static void put(Segment& segment, std::uint64_t mixed, std::uint8_t tag, EntryRef ref);
  void put_all(const Segment& from, Segment& low, Segment* high);
  bool has_to_split(const Segment& segment, std::uint64_t mixed) const;
  void split(std::uint64_t mixed);
  void join(std::uint64_t mixed);

  Keys keys_;
  std::vector<Segment*>
      directory_;  // 2^depth_; a segment of depth d stands there 2^(depth_-d) times
  std::uint32_t depth_ = 0;
  std::uint32_t segments_ = 0;
  std::uint64_t expected_ = 0;
};

using Index = BasicIndex<EntryKeys>;
using DiskIndex = BasicIndex<DiskKeys>;

}  // namespace encore::cache
