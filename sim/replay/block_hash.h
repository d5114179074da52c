// BlockHash: how the block experiment makes a filter's indices from a block. The proxy's hash
// families, and deliberately bad ones that show what a bad hash costs. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/hash.h"

namespace encore::sim {

enum class BadHash : std::uint8_t {
  kNone,
  kCut32,    // FNV-1a, 32 bit, cut into two halves of 16 bits: h1 + i h2 mod m
  kPrng,     // a PRNG (LCG) seeded with a weak hash, the 16-bit sum of the bytes
  kCrc32,    // CRC-32 h: h + i (h >> 16 | 1) mod m
  kTrunc32,  // XXH3 cut to 32 bits, double hashing with a second hash derived from those 32 bits
  kStride0,  // XXH3, but the stride of the double hashing is a multiple of m: all indices are one
};

struct BlockHash {
  filter::HashFamily family = filter::HashFamily::kMd5;
  BadHash bad = BadHash::kNone;
  // True if the indices are made by fill_indices(); otherwise the filter makes them itself.
  bool own_indices(bool classic) const;
};

// Names of the good families and of the bad ones: cut32, prng, crc32, trunc32, stride0.
Result<BlockHash> parse_block_hash(std::string_view name);
std::string to_string(const BlockHash& hash);
// All of them, good ones first.
std::vector<BlockHash> all_block_hashes();

// Fills `out` with indices below `bits`. Byte 0 of the block is the digest families' counter.
// REQUIRES: hash.own_indices(true); 1 <= bits, <= 2^32 for digests; of the families that list
// indices what filter::checked() asks; the block is not empty.
void fill_indices(const BlockHash& hash, std::span<std::uint8_t> block, std::uint64_t bits,
                  std::span<std::uint64_t> out);

}  // namespace encore::sim
