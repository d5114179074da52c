// GenerationBits: the bits of one generation inside line memory that it may share with others, and
// all that depends on the layout. Thread-compatible. Does not own the memory.
//
// Line i of the generation is at words + 8 * stride * i, so that the generations of a rotating
// filter lie side by side: one decision then touches one pair of adjacent lines (split, blocked).
//
// clear() is no pause: it only marks every line as stale, in a bitmap of one bit a line. A stale
// line reads as zero, is zeroed when it is first written, and sweep() zeroes the others in steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"
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
  // Zeroes up to `lines` stale lines; true while some are left.
  bool sweep(std::uint64_t lines);
  bool stale() const { return stale_; }

  std::uint64_t set_bits() const { return set_bits_; }
  bool bit(std::uint64_t i) const;
  // Word i, 64 bits from bit 64 i on; zero where its line is stale. REQUIRES: i < 8 * lines().
  std::uint64_t word(std::uint64_t i) const {
    return is_stale(i / kLineWords) ? 0 : line(i / kLineWords)[i % kLineWords];
  }
  FilterShape shape() const { return {layout_, bits_, hashes_}; }

  std::uint64_t lines() const { return lines_; }
  // A copy of line i, zeros where it is stale. REQUIRES: i < lines(), out holds 8 words.
  void read_line(std::uint64_t i, std::uint64_t* out) const;
  // ORs a line in. False if a bit lies beyond the filter's size (nothing is changed then).
  bool merge_line(std::uint64_t i, const std::uint64_t* in);

  // For a decision on two generations at once (RotatingBloomFilter): the first line, what works on
  // lines, and the count that it keeps up.
  std::uint64_t* words() const { return words_; }
  const SplitKernel& split() const { return *split_; }
  std::uint64_t& set_bits_counter() { return set_bits_; }

 private:
  // Calls visit(index) for the k indices until it returns false.
  template <typename Visit>
  void for_each_index(const Hash128& hash, Visit visit) const;
  // The line of a blocked or split filter: the upper bits of lo, scaled to the number of lines.
  std::uint64_t line_of(const Hash128& hash) const { return scaled(hash.lo, lines_); }
  std::uint64_t* line(std::uint64_t i) const { return words_ + kLineWords * stride_ * i; }
  bool is_stale(std::uint64_t i) const { return stale_ && (clean_[i / 64] >> (i % 64) & 1U) == 0; }
  std::uint64_t* writable_line(std::uint64_t i);
  std::uint32_t insert_bit(std::uint64_t i);

  const SplitKernel* split_ = nullptr;
  Layout layout_ = Layout::kSplit;
  bool double_hashing_ = false;  // murmur3: h1 + i h2 mod m, as in Cassandra
  bool stale_ = false;
  std::uint32_t hashes_ = 0;
  std::uint64_t bits_ = 0;
  std::uint64_t slice_ = 0;  // partitioned: bits a slice
  std::uint64_t lines_ = 0;
  std::uint64_t* words_ = nullptr;
  std::size_t stride_ = 1;
  std::uint64_t set_bits_ = 0;
  std::uint64_t swept_ = 0;           // lines below are clean
  std::vector<std::uint64_t> clean_;  // a bit a line, only while stale
};

}  // namespace encore::filter
