// GenerationBits: the bits of one generation inside line memory that it may share with others, and
// all that depends on the layout. Thread-compatible. Does not own the memory.
//
// Line i of the generation is at words + 8 * stride * i, so that the generations of a rotating
// filter lie side by side: one decision then touches one pair of adjacent lines (split, blocked).
//
// clear() is no pause: it only marks every line as dirty, in a bitmap of one bit a line. A dirty
// line reads as zero, is zeroed when it is first written, and sweep() zeroes the others in steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"
#include "filter/positions.h"
#include "filter/split_line.h"

namespace encore::filter {

class GenerationBits {
 public:
  GenerationBits() = default;
  // `words` is the first line of this generation; `stride` the lines from one to the next.
  // REQUIRES: the parameters are checked(); lines_for(parameters) lines are there, all zero.
  GenerationBits(const FilterParameters& parameters, std::uint64_t* words, std::size_t stride);

  static std::uint64_t lines_for(const FilterParameters& parameters);

  // Asks for the lines that the hash needs.
  void prefetch(const Hash128& hash) const;
  bool test(const Hash128& hash) const;
  // Sets the key's bits; the number that were not set before (0: the key was there).
  std::uint32_t insert(const Hash128& hash);

  // The same with ready indices. REQUIRES: classic; each below bits.
  bool test_indices(std::span<const std::uint64_t> indices) const;
  std::uint32_t insert_indices(std::span<const std::uint64_t> indices);

  void clear();
  // Zeroes up to `lines` dirty lines; true while some are left.
  bool sweep(std::uint64_t lines);
  bool dirty() const { return dirty_; }

  std::uint64_t set_bits() const { return set_bits_; }
  bool bit(std::uint64_t i) const;
  // Word i, 64 bits from bit 64 i on; zero where its line is dirty. REQUIRES: i < 8 * lines().
  std::uint64_t word(std::uint64_t i) const {
    return is_dirty(i / kLineWords) ? 0 : line(i / kLineWords)[i % kLineWords];
  }
  FilterShape shape() const { return {positions_.layout, positions_.bits, positions_.hashes}; }

  std::uint64_t lines() const { return positions_.lines; }
  // A copy of line i, zeros where it is dirty. REQUIRES: i < lines(), out holds 8 words.
  void read_line(std::uint64_t i, std::uint64_t* out) const;
  // ORs a line in. False if a bit lies beyond the filter's size (nothing is changed then).
  bool merge_line(std::uint64_t i, const std::uint64_t* in);
  // Leaves of a line what the given one has as well. REQUIRES: as read_line.
  void intersect_line(std::uint64_t i, const std::uint64_t* in);

  // For a joint decision on two generations (RotatingBloomFilter): the first line, the functions
  // for lines, and the count that the decision keeps up.
  std::uint64_t* words() const { return words_; }
  const SplitKernel& split() const { return *split_; }
  std::uint64_t& set_bits_counter() { return set_bits_; }

 private:
  std::uint64_t* line(std::uint64_t i) const { return words_ + kLineWords * stride_ * i; }
  bool is_dirty(std::uint64_t i) const { return dirty_ && (clean_[i / 64] >> (i % 64) & 1U) == 0; }
  std::uint64_t* writable_line(std::uint64_t i);
  std::uint32_t insert_bit(std::uint64_t i);

  const SplitKernel* split_ = nullptr;
  KeyPositions positions_;
  bool dirty_ = false;
  std::uint64_t* words_ = nullptr;
  std::size_t stride_ = 1;
  std::uint64_t set_bits_ = 0;
  std::uint64_t swept_ = 0;           // lines below are clean
  std::vector<std::uint64_t> clean_;  // a bit a line, only while dirty
};

}  // namespace encore::filter
