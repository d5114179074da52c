#include "filter/joint_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "filter/sets.h"

namespace encore::filter {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};

// Calls visit(T, bits) for each set T but the empty one: the bits of `wanted` that word i of all
// generations in T has. The pair has no loop: a live page has 32,768 words of it counted each
// second.
template <typename Visit>
void visit_sets(Generations generations, std::uint64_t i, std::uint64_t wanted, Visit visit) {
  if (generations.size() == 2) {
    const std::uint64_t first = generations[0]->word(i) & wanted;
    const std::uint64_t second = generations[1]->word(i) & wanted;
    visit(1, first);
    visit(2, second);
    visit(3, first & second);
    return;
  }
  std::array<std::uint64_t, std::size_t{1} << kJointMax> all;
  for (std::size_t set = 1; set < std::size_t{1} << generations.size(); ++set) {
    if (std::has_single_bit(set)) {
      all[set] = generations[static_cast<std::size_t>(std::countr_zero(set))]->word(i) & wanted;
    } else {
      all[set] = all[set & (set - 1)] & all[set & (~set + 1)];
    }
    visit(set, all[set]);
  }
}

std::uint64_t number_of(std::uint64_t bits) {
  return static_cast<std::uint64_t>(std::popcount(bits));
}

// Counts the positions that are set in all of T, for each set T.
class Counts {
 public:
  explicit Counts(Generations generations)
      : generations_(generations), set_(std::size_t{1} << generations.size()) {}

  void clear() {
    std::ranges::fill(set_, 0);
    positions_ = 0;
  }
  // The positions of `wanted` in word i of each generation.
  void add_word(std::uint64_t i, std::uint64_t wanted) {
    std::uint64_t* const counts = set_.data();
    visit_sets(generations_, i, wanted, [counts](std::size_t set, std::uint64_t bits) {
      if (bits != 0) counts[set] += number_of(bits);
    });
    positions_ += number_of(wanted);
  }
  double share(std::size_t set) const {
    return set == 0 ? 1 : static_cast<double>(set_[set]) / static_cast<double>(positions_);
  }

 private:
  Generations generations_;
  std::vector<std::uint64_t> set_;
  std::uint64_t positions_ = 0;
};

// Calls visit(i) for at most `most` of 0 .. count - 1, evenly spread.
template <typename Visit>
std::uint64_t visit_spread(std::uint64_t count, std::uint64_t most, Visit visit) {
  const std::uint64_t visited = std::min(count, std::max<std::uint64_t>(1, most));
  for (std::uint64_t n = 0; n < visited; ++n) {
    visit(static_cast<std::uint64_t>(static_cast<Wide>(n) * count / visited));
  }
  return visited;
}

// The bits of word i that lie in [first, last).
std::uint64_t bits_inside(std::uint64_t i, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t start = 64 * i;
  std::uint64_t bits = kAllOnes;
  if (start < first) bits &= first - start >= 64 ? 0 : kAllOnes << (first - start);
  if (start + 64 > last) bits &= start >= last ? 0 : kAllOnes >> (start + 64 - last);
  return bits;
}

// Counts the positions [first, last), in at most `lines_max` lines.
void count_range(std::uint64_t first, std::uint64_t last, std::uint64_t lines_max, Counts& counts) {
  counts.clear();
  const std::uint64_t start = first / kLineBits;
  const std::uint64_t lines = (last + kLineBits - 1) / kLineBits - start;
  visit_spread(lines, lines_max, [&](std::uint64_t n) {
    for (std::uint64_t i = kLineWords * (start + n); i < kLineWords * (start + n + 1); ++i) {
      counts.add_word(i, bits_inside(i, first, last));
    }
  });
}

// Exact, and at no cost: the count is kept up.
double fill_of(const GenerationBits& bits) {
  return static_cast<double>(bits.set_bits()) / static_cast<double>(bits.shape().bits);
}

std::vector<double> all_in_classic(Generations generations, std::uint64_t lines_max) {
  std::vector<double> all = shares_set_in_all(generations, lines_max);
  for (double& share : all) {
    share = std::pow(share, generations[0]->shape().hashes);
  }
  return all;
}

std::vector<double> all_in_slices(Generations generations, std::uint64_t lines_max) {
  const FilterShape shape = generations[0]->shape();
  const std::uint64_t slice = shape.bits / shape.hashes;
  std::vector<double> all(std::size_t{1} << generations.size(), 1.0);
  std::vector<double> mean(all.size(), 0.0);
  Counts counts(generations);
  for (std::uint64_t s = 0; s < shape.hashes; ++s) {
    count_range(s * slice, (s + 1) * slice, lines_max / shape.hashes, counts);
    for (std::size_t set = 1; set < all.size(); ++set) {
      all[set] *= counts.share(set);
      mean[set] += counts.share(set) / shape.hashes;
    }
  }
  // A sample of k slices scatters; of one generation the mean over them is known.
  for (std::size_t g = 0; g < generations.size(); ++g) {
    const std::size_t set = std::size_t{1} << g;
    if (mean[set] > 0) all[set] *= std::pow(fill_of(*generations[g]) / mean[set], shape.hashes);
  }
  return all;
}

std::vector<double> all_in_lines(Generations generations, std::uint64_t lines_max) {
  std::vector<double> all(std::size_t{1} << generations.size(), 0.0);
  Counts counts(generations);
  const auto add_line = [&](std::uint64_t i) {
    counts.clear();
    for (std::uint64_t w = 0; w < kLineWords; ++w) counts.add_word(kLineWords * i + w, kAllOnes);
    for (std::size_t set = 1; set < all.size(); ++set) {
      all[set] += std::pow(counts.share(set), generations[0]->shape().hashes);
    }
  };
  const std::uint64_t lines = visit_spread(generations[0]->lines(), lines_max, add_line);
  for (double& sum : all) sum /= static_cast<double>(lines);
  return all;
}

// A key has one bit in each word, so a line's share is a product: of eight counts, over 64^8 =
// 2^48.
std::vector<double> all_in_split_lines(Generations generations, std::uint64_t lines_max) {
  std::vector<double> all(std::size_t{1} << generations.size(), 0.0);
  std::array<std::uint64_t, std::size_t{1} << kJointMax> line;
  const auto add_line = [&](std::uint64_t i) {
    std::fill_n(line.data(), all.size(), 1);
    for (std::uint64_t w = 0; w < kLineWords; ++w) {
      visit_sets(generations, kLineWords * i + w, kAllOnes,
                 [&line](std::size_t set, std::uint64_t bits) {
                   line[set] *= bits == 0 ? 0 : number_of(bits);
                 });
    }
    for (std::size_t set = 1; set < all.size(); ++set) all[set] += static_cast<double>(line[set]);
  };
  const std::uint64_t lines = visit_spread(generations[0]->lines(), lines_max, add_line);
  for (double& sum : all) sum = std::ldexp(sum / static_cast<double>(lines), -48);
  return all;
}

}  // namespace

double fpr_from_bits(Generations generations, std::uint64_t lines_max) {
  ENCORE_CHECK(!generations.empty() && generations.size() <= kJointMax, "1 to 8 generations");
  std::vector<double> probability;
  switch (generations[0]->shape().layout) {
    case Layout::kClassic:
      probability = all_in_classic(generations, lines_max);
      break;
    case Layout::kPartitioned:
      probability = all_in_slices(generations, lines_max);
      break;
    case Layout::kBlocked:
      probability = all_in_lines(generations, lines_max);
      break;
    case Layout::kSplit:
      probability = all_in_split_lines(generations, lines_max);
      break;
  }
  all_to_some(probability);
  // (A sample of the overlap, with exact counts of set bits, may leave the range a little.)
  return std::clamp(probability.back(), 0.0, 1.0);
}

std::vector<double> shares_set_in_all(Generations generations, std::uint64_t lines_max) {
  std::vector<double> shares(std::size_t{1} << generations.size(), 1.0);
  Counts counts(generations);
  if (generations.size() > 1) {
    count_range(0, generations[0]->shape().bits, lines_max, counts);
  }
  for (std::size_t set = 1; set < shares.size(); ++set) {
    shares[set] = std::has_single_bit(set)
                      ? fill_of(*generations[static_cast<std::size_t>(std::countr_zero(set))])
                      : counts.share(set);
  }
  return shares;
}

}  // namespace encore::filter
