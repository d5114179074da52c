#include "filter/generation_bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/prefetch.h"

namespace encore::filter {
namespace {

// Set bits of a word as an address-independent position: bit i of the filter is bit i % 64 of word
// i / 64, eight words a line.
struct Position {
  std::uint64_t line;
  std::size_t word;
  std::uint64_t mask;
};
constexpr Position position_of(std::uint64_t i) {
  return {i / kLineBits, i / 64 % kLineWords, std::uint64_t{1} << (i % 64)};
}

// The bits [first, last) of a word, 0 <= first <= last <= 64.
constexpr std::uint64_t bits_between(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t below_last = last == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << last) - 1;
  return first == 64 ? 0 : below_last & ~((std::uint64_t{1} << first) - 1);
}

}  // namespace

GenerationBits::GenerationBits(const FilterParameters& parameters, std::uint64_t* words,
                               std::size_t stride)
    : split_(&split_kernel()), positions_(parameters), words_(words), stride_(stride) {}

std::uint64_t GenerationBits::lines_for(const FilterParameters& parameters) {
  return (parameters.bits + kLineBits - 1) / kLineBits;
}

void GenerationBits::prefetch(const Hash128& hash) const {
  if (positions_.in_one_line()) {
    encore::prefetch(line(positions_.line_of(hash)));
    return;
  }
  positions_.for_each(hash, [&](std::uint64_t i) {
    encore::prefetch(line(i / kLineBits) + position_of(i).word);
    return true;
  });
}

bool GenerationBits::bit(std::uint64_t i) const {
  const Position at = position_of(i);
  return !is_dirty(at.line) && (line(at.line)[at.word] & at.mask) != 0;
}

std::uint64_t* GenerationBits::writable_line(std::uint64_t i) {
  std::uint64_t* words = line(i);
  if (is_dirty(i)) {
    std::memset(words, 0, kLineBytes);
    clean_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return words;
}

std::uint32_t GenerationBits::insert_bit(std::uint64_t i) {
  const Position at = position_of(i);
  std::uint64_t& word = writable_line(at.line)[at.word];
  const std::uint32_t newly_set = (word & at.mask) == 0 ? 1 : 0;
  word |= at.mask;
  return newly_set;
}

bool GenerationBits::test(const Hash128& hash) const {
  if (positions_.layout == Layout::kSplit) {
    const std::uint64_t at = positions_.line_of(hash);
    return !is_dirty(at) && split_->test(line(at), hash.hi);
  }
  bool all = true;
  positions_.for_each(hash, [&](std::uint64_t i) { return all = bit(i); });
  return all;
}

std::uint32_t GenerationBits::insert(const Hash128& hash) {
  std::uint32_t newly_set = 0;
  if (positions_.layout == Layout::kSplit) {
    newly_set = split_->insert(writable_line(positions_.line_of(hash)), hash.hi);
  } else {
    positions_.for_each(hash, [&](std::uint64_t i) {
      newly_set += insert_bit(i);
      return true;
    });
  }
  set_bits_ += newly_set;
  return newly_set;
}

bool GenerationBits::test_indices(std::span<const std::uint64_t> indices) const {
  return std::ranges::all_of(indices, [&](std::uint64_t i) { return bit(i); });
}

std::uint32_t GenerationBits::insert_indices(std::span<const std::uint64_t> indices) {
  std::uint32_t newly_set = 0;
  for (const std::uint64_t i : indices) {
    newly_set += insert_bit(i);
  }
  set_bits_ += newly_set;
  return newly_set;
}

void GenerationBits::clear() {
  clean_.assign((positions_.lines + 63) / 64, 0);
  dirty_ = true;
  swept_ = 0;
  set_bits_ = 0;
}

bool GenerationBits::sweep(std::uint64_t lines) {
  if (!dirty_) {
    return false;
  }
  const std::uint64_t end = std::min(positions_.lines, swept_ + lines);
  for (; swept_ < end; ++swept_) {
    writable_line(swept_);
  }
  dirty_ = swept_ < positions_.lines;
  return dirty_;
}

void GenerationBits::read_line(std::uint64_t i, std::uint64_t* out) const {
  if (is_dirty(i)) {
    std::memset(out, 0, kLineBytes);
  } else {
    std::memcpy(out, line(i), kLineBytes);
  }
}

bool GenerationBits::merge_line(std::uint64_t i, const std::uint64_t* in) {
  for (std::size_t w = 0; w < kLineWords; ++w) {
    const std::uint64_t first = i * kLineBits + 64 * w;
    const std::uint64_t used =
        first >= positions_.bits ? 0 : std::min<std::uint64_t>(64, positions_.bits - first);
    if ((in[w] & ~bits_between(0, used)) != 0) {
      return false;
    }
  }
  std::uint64_t* words = writable_line(i);
  for (std::size_t w = 0; w < kLineWords; ++w) {
    set_bits_ += static_cast<std::uint64_t>(std::popcount(in[w] & ~words[w]));
    words[w] |= in[w];
  }
  return true;
}

void GenerationBits::intersect_line(std::uint64_t i, const std::uint64_t* in) {
  std::uint64_t* words = writable_line(i);
  for (std::size_t w = 0; w < kLineWords; ++w) {
    set_bits_ -= static_cast<std::uint64_t>(std::popcount(words[w] & ~in[w]));
    words[w] &= in[w];
  }
}

}  // namespace encore::filter
