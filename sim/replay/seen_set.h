// SeenSet: ways to remember which keys were seen, for comparison with a Bloom filter: an exact set
// and tables of short hashes. Deterministic; thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::sim {

class SeenSet {
 public:
  virtual ~SeenSet() = default;
  // True if the key was there already (or seems to have been). It is there now.
  virtual bool test_and_set(const filter::Hash128& hash) = 0;
  virtual std::uint64_t memory_bytes() const = 0;
};

// A hash table at load 0.5 that keeps `hash_bytes` bytes of each key's hash: 16 is as good as
// exact. Errors: hash_bytes outside 1..16, memory that cannot be had.
// REQUIRES: no more than `keys` distinct keys are inserted.
Result<std::unique_ptr<SeenSet>> make_hash_table(std::uint64_t keys, std::uint32_t hash_bytes);
// Errors: those of the filter.
Result<std::unique_ptr<SeenSet>> make_bloom_set(const filter::FilterParameters& parameters);

// FPR of a table of b-bit hashes with n keys, and its mean over i = 0..n-1: 1 - (1 - 2^-b)^n.
double short_hash_fpr(std::uint32_t hash_bits, double keys);
double short_hash_fpr_incremental(std::uint32_t hash_bits, double keys);

}  // namespace encore::sim
