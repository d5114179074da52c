#include "filter/ring_theory.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "filter/sets.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

// Steps of the midpoint rule over one generation's insertions.
constexpr double kStepsACycle = 16;
constexpr double kStepsMax = 64;

// The share of the unset positions of its line (its slice, the filter) that one key sets.
double share_set_by_key(const FilterShape& shape) {
  const double k = shape.hashes;
  const auto m = static_cast<double>(shape.bits);
  switch (shape.layout) {
    case Layout::kClassic:
      return m <= 1 ? 1 : -std::expm1(k * std::log1p(-1 / m));
    case Layout::kPartitioned:
      return 1 / std::floor(m / k);
    case Layout::kBlocked:
      return -std::expm1(k * std::log1p(-1 / static_cast<double>(kLineBits)));
    case Layout::kSplit:
      return static_cast<double>(kSplitHashes) / static_cast<double>(kLineBits);
  }
  return 1;
}

// A probability that is 1 in theory leaves room for nothing: steps stay finite.
double none(double some) { return std::max(1e-6, 1 - some); }

}  // namespace

RingTheory::RingTheory(const RingTheoryOptions& options)
    : shape_(options.shape),
      capacity_(std::max(options.capacity, 1.0)),
      generations_(std::min(options.generations, kJointMax)),
      refresh_(options.refresh),
      lines_(shape_.layout == Layout::kBlocked || shape_.layout == Layout::kSplit),
      in_line_(share_set_by_key(shape_)),
      positions_(std::size_t{1} << generations_, 0.0),
      singles_(generations_, 0.0) {
  // For n keys, the mean over the lines of (1 - h)^j is (1 - h / lines)^n.
  const double lines = static_cast<double>(shape_.bits) / static_cast<double>(kLineBits);
  per_key_ = -std::log1p(-std::min(lines_ ? in_line_ / lines : in_line_, 1 - 1e-12));
  positions_[0] = 1;
}

void RingTheory::insert(std::span<const double> keys) {
  ENCORE_CHECK(keys.size() == older_sets(), "a number for each set of older generations");
  double total = 0;
  for (const double count : keys) total += count;
  if (total <= 0) return;
  const double steps = std::clamp(std::ceil(kStepsACycle * total / capacity_), 1.0, kStepsMax);
  Sets step(keys.begin(), keys.end());
  Sets half(step);
  for (std::size_t i = 0; i < step.size(); ++i) {
    step[i] /= steps;
    half[i] = step[i] / 2;
  }
  for (double done = 0; done < steps; ++done) {
    const Sets middle = moved(half, some(positions_));
    positions_ = moved(step, some(middle));
  }
}

void RingTheory::rotate() {
  Sets next(positions_.size(), 0.0);
  const std::size_t kept = older_sets() - 1;  // the oldest is dropped
  for (std::size_t set = 0; set < positions_.size(); ++set) {
    next[(set & kept) << 1U] += positions_[set];
  }
  positions_ = std::move(next);
  read_older_singles();
}

void RingTheory::set_positions(std::span<const double> positions) {
  ENCORE_CHECK(positions.size() == positions_.size(), "a number for each set of generations");
  positions_.assign(positions.begin(), positions.end());
  read_older_singles();
}

void RingTheory::set_shares_in_all(std::vector<double> shares) {
  // x_P = sum over the supersets T of P of (-1)^(|T| - |P|) o_T: over subsets of the complements.
  std::ranges::reverse(shares);
  differences_over_subsets(shares);
  std::ranges::reverse(shares);
  for (double& share : shares) share = std::max(0.0, share);
  set_positions(shares);
}

void RingTheory::read_older_singles() {
  if (!lines_) return;
  for (std::uint32_t g = 1; g < generations_; ++g) {
    double unset = 0;
    for (std::size_t set = 0; set < positions_.size(); ++set) {
      unset += (set >> g & 1U) == 0 ? positions_[set] : 0;
    }
    singles_[g] = fpr_single(unset);
  }
}

// Blocked and split: p of a generation alone that has this share of its positions unset.
double RingTheory::fpr_single(double unset) const {
  if (unset >= 1) return 0;
  return filter::fpr(shape_, -std::log(std::max(unset, 1e-300)) / per_key_);
}

// P(some of U) for each set U.
RingTheory::Sets RingTheory::some(const Sets& positions) const {
  Sets probabilities = all(positions);
  all_to_some(probabilities);
  for (double& p : probabilities) p = std::clamp(p, 0.0, 1.0);
  return probabilities;
}

// P(all of T) for each set T.
RingTheory::Sets RingTheory::all(const Sets& positions) const {
  Sets shares = positions;
  sum_over_supersets(shares);
  Sets probabilities(shares.size(), 1.0);
  for (std::size_t set = 1; set < shares.size(); ++set) {
    probabilities[set] = std::pow(std::max(0.0, shares[set]), shape_.hashes);
  }
  // With one hash P is linear in o: lines make no difference.
  if (lines_ && shape_.hashes > 1) spread_over_lines(positions, shares, probabilities);
  return probabilities;
}

// Blocked and split: o_T^k C_T. A key with the pattern P in a line sets a share h of what is set in
// all of T but those of P that are in T, and not in all of T. With Poisson numbers of keys l_P the
// variance of o_T over the lines is, to first order, the sum of l_P h^2 (o_(T without P) - o_T)^2.
void RingTheory::spread_over_lines(const Sets& positions, const Sets& shares,
                                   Sets& probabilities) const {
  const std::size_t full = positions.size() - 1;
  Sets keys = positions;  // becomes l_P, from the keys a line of each union: -ln z_S / h
  sum_over_subsets(keys);
  const auto in_union = [&](double unset) { return -std::log(std::max(unset, 1e-300)) / in_line_; };
  const double in_any = in_union(keys[0]);
  for (double& count : keys) count = in_any - in_union(count);
  differences_over_subsets(keys);
  const auto relative_variance = [&](std::size_t set) {
    double sum = 0;
    for (std::size_t pattern = 1; pattern <= full; ++pattern) {
      if ((pattern & set) == 0) continue;
      const double by_key = in_line_ * (shares[set & ~pattern] - shares[set]);
      sum += std::max(0.0, keys[pattern]) * by_key * by_key;
    }
    return sum / (shares[set] * shares[set]);
  };
  const double k = shape_.hashes;
  Sets logs(generations_, 0.0);  // ln C of each generation alone
  Sets variances(generations_, 0.0);
  for (std::uint32_t g = 0; g < generations_; ++g) {
    const std::size_t set = std::size_t{1} << g;
    if (shares[set] <= 0) continue;
    const double single = g == 0 ? fpr_single(1 - shares[set]) : singles_[g];
    probabilities[set] = single;
    if (single > 0) logs[g] = std::log(single) - k * std::log(shares[set]);
    variances[g] = relative_variance(set);
  }
  for (std::size_t set = 1; set <= full; ++set) {
    if (std::has_single_bit(set) || shares[set] <= 0) continue;
    double log_sum = 0;
    double variance_sum = 0;
    double least = 1;
    for (std::uint32_t g = 0; g < generations_; ++g) {
      if ((set >> g & 1U) == 0) continue;
      log_sum += logs[g];
      variance_sum += variances[g];
      least = std::min(least, probabilities[std::size_t{1} << g]);
    }
    const double slope = variance_sum > 0 ? log_sum / variance_sum : 0;
    probabilities[set] =
        std::min(least, std::exp(k * std::log(shares[set]) + slope * relative_variance(set)));
  }
}

// x after `keys` more insertions in the current generation, p of each set as in `some`.
RingTheory::Sets RingTheory::moved(std::span<const double> keys, const Sets& some) const {
  return refresh_ ? moved_with_refresh(keys, some) : moved_without_refresh(keys[0], some);
}

RingTheory::Sets RingTheory::moved_with_refresh(std::span<const double> keys,
                                                const Sets& some) const {
  Sets unanswered(keys.begin(), keys.end());
  sum_over_subsets(unanswered);  // [V]: no older generation outside V answered
  Sets within = positions_;
  sum_over_subsets(within);  // [Q]: the positions that are set in none outside Q
  const std::size_t full = positions_.size() - 1;
  for (std::size_t set = 0; set <= full; set += 2) {  // without generation 0
    within[set] *= std::exp(-per_key_ * unanswered[set >> 1U] / none(some[full & ~set]));
  }
  differences_over_subsets(within);
  for (double& share : within) share = std::max(0.0, share);
  return within;
}

RingTheory::Sets RingTheory::moved_without_refresh(double keys, const Sets& some) const {
  Sets shares = positions_;
  sum_over_supersets(shares);
  const Sets answers = all(positions_);
  Sets rates(older_sets());
  for (std::size_t set = 0; set < rates.size(); ++set) {
    // o^(k-1) of the other positions, P / o where lines differ.
    const double share = shares[set << 1U];
    const double others = share > 0 ? answers[set << 1U] / share : shape_.hashes == 1 ? 1.0 : 0.0;
    rates[set] = odd_size(set) ? -others : others;
  }
  sum_over_subsets(rates);
  const double presented = keys / none(some.back());
  Sets next = positions_;
  for (std::size_t set = 0; set < rates.size(); ++set) {
    const double unset = -std::expm1(-per_key_ * std::max(0.0, rates[set]) * presented);
    next[(set << 1U) | 1U] += next[set << 1U] * unset;
    next[set << 1U] *= 1 - unset;
  }
  return next;
}

}  // namespace encore::filter
