#include "filter/generation_bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace encore::filter {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

// MurmurHash3's 64-bit finaliser.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33U);
}

constexpr unsigned kBlockIndexBits = 9;  // 2^9 = 512 bits a line
constexpr unsigned kBlockIndicesInWord = 64 / kBlockIndexBits;

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
    : split_(&split_kernel()),
      layout_(parameters.layout),
      double_hashing_(parameters.hash == HashFamily::kMurmur3),
      hashes_(parameters.hashes),
      bits_(parameters.bits),
      slice_(parameters.bits / parameters.hashes),
      lines_(lines_for(parameters)),
      words_(words),
      stride_(stride) {}

std::uint64_t GenerationBits::lines_for(const FilterParameters& parameters) {
  return (parameters.bits + kLineBits - 1) / kLineBits;
}

template <typename Visit>
void GenerationBits::for_each_index(const Hash128& hash, Visit visit) const {
  if (layout_ == Layout::kBlocked || layout_ == Layout::kSplit) {
    // Indices of nine (six) bits from `hi`, which the choice of the line has not used; what one
    // word cannot give comes from scrambling it again.
    const std::uint64_t start = line_of(hash) * kLineBits;
    std::uint64_t source = hash.hi;
    for (std::uint32_t i = 0; i < hashes_; ++i) {
      if (layout_ == Layout::kSplit) {
        if (!visit(start + 64 * i + (source >> (6 * i) & 63U))) {
          return;
        }
        continue;
      }
      const std::uint32_t in_word = i % kBlockIndicesInWord;
      if (i != 0 && in_word == 0) {
        source = scramble(hash.hi + kGolden * i);
      }
      if (!visit(start + (source >> (kBlockIndexBits * in_word) & (kLineBits - 1)))) {
        return;
      }
    }
    return;
  }
  const std::uint64_t stride = hash.hi | 1U;  // never zero, nor a divisor of a power of two
  std::uint64_t x = hash.lo;
  const bool partitioned = layout_ == Layout::kPartitioned;
  const std::uint64_t range = partitioned ? slice_ : bits_;
  for (std::uint32_t i = 0; i < hashes_; ++i, x += stride) {
    // Double hashing alone walks in equal steps; folding the upper half into the lower before a
    // multiplication breaks them up.
    const std::uint64_t index =
        double_hashing_ ? x % range : scaled((x ^ (x >> 32U)) * kGolden, range);
    if (!visit(partitioned ? index + slice_ * i : index)) {
      return;
    }
  }
}

void GenerationBits::prefetch(const Hash128& hash) const {
  if (layout_ == Layout::kBlocked || layout_ == Layout::kSplit) {
    __builtin_prefetch(line(line_of(hash)));
    return;
  }
  for_each_index(hash, [&](std::uint64_t i) {
    __builtin_prefetch(line(i / kLineBits) + position_of(i).word);
    return true;
  });
}

bool GenerationBits::bit(std::uint64_t i) const {
  const Position at = position_of(i);
  return !is_stale(at.line) && (line(at.line)[at.word] & at.mask) != 0;
}

std::uint64_t* GenerationBits::writable_line(std::uint64_t i) {
  std::uint64_t* words = line(i);
  if (is_stale(i)) {
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
  if (layout_ == Layout::kSplit) {
    const std::uint64_t at = line_of(hash);
    return !is_stale(at) && split_->test(line(at), hash.hi);
  }
  bool all = true;
  for_each_index(hash, [&](std::uint64_t i) { return all = bit(i); });
  return all;
}

std::uint32_t GenerationBits::insert(const Hash128& hash) {
  std::uint32_t newly_set = 0;
  if (layout_ == Layout::kSplit) {
    newly_set = split_->insert(writable_line(line_of(hash)), hash.hi);
  } else {
    for_each_index(hash, [&](std::uint64_t i) {
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
  clean_.assign((lines_ + 63) / 64, 0);
  stale_ = true;
  swept_ = 0;
  set_bits_ = 0;
}

bool GenerationBits::sweep(std::uint64_t lines) {
  if (!stale_) {
    return false;
  }
  const std::uint64_t end = std::min(lines_, swept_ + lines);
  for (; swept_ < end; ++swept_) {
    writable_line(swept_);
  }
  stale_ = swept_ < lines_;
  return stale_;
}

void GenerationBits::read_line(std::uint64_t i, std::uint64_t* out) const {
  if (is_stale(i)) {
    std::memset(out, 0, kLineBytes);
  } else {
    std::memcpy(out, line(i), kLineBytes);
  }
}

bool GenerationBits::merge_line(std::uint64_t i, const std::uint64_t* in) {
  for (std::size_t w = 0; w < kLineWords; ++w) {
    const std::uint64_t first = i * kLineBits + 64 * w;
    const std::uint64_t used = first >= bits_ ? 0 : std::min<std::uint64_t>(64, bits_ - first);
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

}  // namespace encore::filter
