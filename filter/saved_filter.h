// The saved form of filters: what save() writes and load() reads. Pure functions, thread-safe.
//
//   "ENCBLOOM"  version  kind  count of generations  identity seed  totals  age
//   for each generation: layout, hash, k, m, capacity, seed, insertions, set bits
//   for each generation: its lines, 64 bytes each
//   a ring, from version 2 on: the positions that theory expects in each set of generations
//   (RingTheory::positions), as 64-bit floating-point numbers
//   XXH3 (64 bits) of all of the above
//
// Every number is little-endian and of fixed width. The size follows from the header and must be
// exact, so nothing is allocated that the bytes at hand do not already account for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/generation_bits.h"
#include "filter/parameters.h"

namespace encore::filter {

enum class SavedKind : std::uint32_t { kSingle = 1, kRing = 2 };

struct SavedGeneration {
  FilterParameters parameters;
  std::uint64_t insertions = 0;
  std::uint64_t set_bits = 0;
  std::string_view lines;  // decoded only: borrowed from the bytes
};

struct SavedFilter {
  SavedKind kind = SavedKind::kSingle;
  Seed identity_seed;
  std::uint64_t insertions = 0;
  std::uint64_t refreshes = 0;
  std::uint64_t rotations = 0;
  std::uint64_t age_ns = 0;  // of the current generation
  std::vector<SavedGeneration> generations;
  std::vector<double> positions;  // empty: saved by version 1, or no ring
};

// `bits` are those of the generations, in their order.
std::string encode(const SavedFilter& saved, const std::vector<const GenerationBits*>& bits);

struct DecodeLimits {
  SavedKind kind = SavedKind::kSingle;
  std::uint32_t generations_min = 1;
  std::uint32_t generations_max = 1;
  std::uint64_t bits_max = kBitsMax;
};
// Errors: too short or long, no such magic, another version or kind, a checksum that does not
// match, positions that are no shares, parameters that checked() refuses or that are not as it
// rounds them, counts that cannot be, a size above the limit. `bytes` must outlive the result.
Result<SavedFilter> decode(std::string_view bytes, const DecodeLimits& limits);

// Puts a decoded generation's lines into empty bits of the same parameters. Errors: a bit beyond
// the filter's size, a count of set bits that differs from the stated one.
Result<void> restore(const SavedGeneration& saved, GenerationBits& bits);

// What the last eight bytes of `bytes` must hold. REQUIRES: at least eight bytes.
std::uint64_t saved_checksum(std::string_view bytes);

}  // namespace encore::filter
