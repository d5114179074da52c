// AdoptedMemory: what another cache's rings remembered, taken over whole. Its shards, its way of
// dividing the keys over them, and each generation's layout, size, hashes, hash family and seed are
// those of the cache that it came from: none of them need be like ours. Immutable; thread-safe, so
// that the shards of a cache share one.
//
// A key is found by its text alone: the identity hash of another cache was made under another seed.
// Why its bits are not merged into our own filters: docs/decisions/0100.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/generation_bits.h"
#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"

namespace encore::filter {

struct SavedFilter;
struct SavedGeneration;

// A memory with a higher false-positive rate is useless and is refused.
inline constexpr double kAdoptedFprMax = 0.5;

class AdoptedMemory {
 public:
  struct Source {
    Seed identity_seed;                        // seed of the other cache
    std::span<const std::string_view> shards;  // RotatingBloomFilter::save() of each, in order
  };
  // Errors: no power of two of shards from 1 to 256, one that is damaged, was filled under another
  // seed or has another number of generations than the first, a false-positive rate above
  // kAdoptedFprMax, memory. Allocates about as much as the bytes hold, when their checksums are
  // seen.
  static Result<std::shared_ptr<const AdoptedMemory>> load(const Source& source);

  // Generation 0 was the current one of the other cache.
  std::uint32_t generations() const { return static_cast<std::uint32_t>(sums_.size()); }
  std::uint32_t shards() const { return static_cast<std::uint32_t>(shards_.size()); }
  // True if one of the newest so many generations has the key. REQUIRES: `key.bytes` is its text.
  bool test(const HashedKey& key, std::uint32_t newest) const;

  // Sums of one generation, over all shards.
  struct Sums {
    std::uint64_t bits = 0;
    std::uint64_t insertions = 0;
    std::uint64_t set_bits = 0;
    double keys_estimated = 0;  // by the set bits
  };
  std::span<const Sums> sums() const { return sums_; }
  // The false-positive rate of the newest so many generations together, the mean over the shards.
  // By theory as if they were independent, which is an upper bound where keys were refreshed.
  struct Fpr {
    double theory = 0;
    double bits = 0;
  };
  Fpr fpr(std::uint32_t newest) const { return fpr_[newest]; }
  std::uint64_t memory_bytes() const { return memory_.size_bytes(); }

 private:
  struct Generation {
    FilterParameters parameters;
    GenerationBits bits;
    bool identity = true;  // takes the identity hash as it is
    std::uint64_t insertions = 0;
  };
  using Shard = std::vector<Generation>;

  AdoptedMemory() = default;
  Result<void> restore(std::span<const SavedFilter> shards);
  void sum_up(const Shard& shard);
  void read_rates();

  Seed identity_seed_;
  LineMemory memory_;
  std::vector<Shard> shards_;
  std::vector<Sums> sums_;
  std::vector<Fpr> fpr_;  // by the number of generations that are asked
};

}  // namespace encore::filter
