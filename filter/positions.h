// KeyPositions: which positions of a filter a key has, by its layout. A value; thread-safe.
#pragma once

#include <cstdint>

#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::filter {

struct KeyPositions {
  KeyPositions() = default;
  // REQUIRES: the parameters are checked().
  explicit KeyPositions(const FilterParameters& parameters)
      : layout(parameters.layout),
        double_hashing(parameters.hash == HashFamily::kMurmur3),
        hashes(parameters.hashes),
        bits(parameters.bits),
        slice(parameters.bits / parameters.hashes),
        lines((parameters.bits + kLineBits - 1) / kLineBits) {}

  // Calls visit(position) for the k positions, each below bits, until it returns false. Two of them
  // may be one. REQUIRES: the hash comes from a family that does not list indices.
  template <typename Visit>
  void for_each(const Hash128& hash, Visit visit) const;
  // The line of a blocked or split filter: the upper bits of lo, scaled to the number of lines.
  std::uint64_t line_of(const Hash128& hash) const { return scaled(hash.lo, lines); }
  // The i-th of them, counted from 0. REQUIRES: not in_one_line(), i < hashes.
  std::uint64_t nth(const Hash128& hash, std::uint32_t i) const {
    return place(hash.lo + i * (hash.hi | 1U), i);
  }
  bool in_one_line() const { return layout == Layout::kBlocked || layout == Layout::kSplit; }

  Layout layout = Layout::kSplit;
  bool double_hashing = false;  // murmur3: h1 + i h2 mod m, as in Cassandra
  std::uint32_t hashes = 0;
  std::uint64_t bits = 0;
  std::uint64_t slice = 0;  // partitioned: positions a slice
  std::uint64_t lines = 0;  // lines with kLineBits positions

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  static constexpr unsigned kBlockIndexBits = 9;  // 2^9 = 512 positions a line
  static constexpr unsigned kBlockIndicesInWord = 64 / kBlockIndexBits;

  // Double hashing alone walks in equal steps; folding the upper half into the lower before a
  // multiplication breaks them up.
  std::uint64_t place(std::uint64_t x, std::uint32_t i) const {
    const std::uint64_t range = layout == Layout::kPartitioned ? slice : bits;
    const std::uint64_t index =
        double_hashing ? x % range : scaled((x ^ (x >> 32U)) * kGolden, range);
    return layout == Layout::kPartitioned ? index + slice * i : index;
  }
  template <typename Visit>
  void for_each_in_line(const Hash128& hash, Visit visit) const;
};

// Indices of nine (six) bits from `hi`, which the choice of the line has not used; what one word
// cannot give comes from scrambling it again.
template <typename Visit>
void KeyPositions::for_each_in_line(const Hash128& hash, Visit visit) const {
  const std::uint64_t start = line_of(hash) * kLineBits;
  std::uint64_t source = hash.hi;
  for (std::uint32_t i = 0; i < hashes; ++i) {
    if (layout == Layout::kSplit) {
      if (!visit(start + 64 * i + (source >> (6 * i) & 63U))) {
        return;
      }
      continue;
    }
    const std::uint32_t in_word = i % kBlockIndicesInWord;
    if (i != 0 && in_word == 0) {
      source = scrambled(hash.hi + kGolden * i);
    }
    if (!visit(start + (source >> (kBlockIndexBits * in_word) & (kLineBits - 1)))) {
      return;
    }
  }
}

template <typename Visit>
void KeyPositions::for_each(const Hash128& hash, Visit visit) const {
  if (in_one_line()) {
    for_each_in_line(hash, visit);
    return;
  }
  const std::uint64_t stride = hash.hi | 1U;  // never zero, nor a divisor of a power of two
  std::uint64_t x = hash.lo;
  for (std::uint32_t i = 0; i < hashes; ++i, x += stride) {
    if (!visit(place(x, i))) {
      return;
    }
  }
}

}  // namespace encore::filter
