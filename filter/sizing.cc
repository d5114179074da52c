// The sizing half of theory.h: formulas turned round.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

constexpr double kLn2 = std::numbers::ln2;

std::uint64_t size_unit(Layout layout, std::uint32_t hashes) {
  switch (layout) {
    case Layout::kClassic:
      return 1;
    case Layout::kPartitioned:
      return hashes;
    case Layout::kBlocked:
    case Layout::kSplit:
      return kLineBits;
  }
  return 1;
}

void check_goal(const SizingGoal& goal) {
  ENCORE_CHECK(goal.fpr > 0 && goal.fpr < 1 && goal.keys > 0, "a goal outside its range");
}

// With refresh independent generations are the worst there are; without, disjoint ones.
double share_of_generation(const RingGoal& goal) {
  return goal.refresh ? -std::expm1(std::log1p(-goal.fpr_worst) / goal.generations)
                      : goal.fpr_worst / goal.generations;
}

}  // namespace

ClassicSizing size_classic(const SizingGoal& goal) {
  check_goal(goal);
  ClassicSizing sizing;
  const double bits = std::ceil(-goal.keys * std::log(goal.fpr) / (kLn2 * kLn2));
  sizing.bits = static_cast<std::uint64_t>(bits);
  const double k = bits / goal.keys * kLn2;
  sizing.hashes_ceiling = static_cast<std::uint32_t>(std::ceil(k));
  sizing.hashes = best_hashes({Layout::kClassic, sizing.bits, 0}, goal.keys);
  return sizing;
}

Sizing size_with_hashes(Layout layout, const SizingGoal& goal, std::uint32_t hashes) {
  check_goal(goal);
  const std::uint64_t unit = size_unit(layout, hashes);
  const auto meets = [&](std::uint64_t units) {
    return fpr({layout, units * unit, hashes}, goal.keys) <= goal.fpr;
  };
  std::uint64_t high = 1;
  while (!meets(high) && high * unit < kBitsMax) {
    high *= 2;
  }
  std::uint64_t low = high / 2;  // does not meet it
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (meets(middle) ? high : low) = middle;
  }
  const std::uint64_t bits = high * unit;
  return {bits, hashes, fpr({layout, bits, hashes}, goal.keys), meets(high) && bits <= kBitsMax};
}

Sizing size_for(Layout layout, const SizingGoal& goal) {
  if (layout == Layout::kSplit) {
    return size_with_hashes(layout, goal, kSplitHashes);
  }
  // The size as a function of k has one minimum, but whole lines make it bumpy close to it.
  Sizing best = size_with_hashes(layout, goal, 1);
  std::uint32_t worse = 0;
  for (std::uint32_t hashes = 2; hashes <= kHashesMax && worse < 3; ++hashes) {
    const Sizing sizing = size_with_hashes(layout, goal, hashes);
    const bool smaller =
        sizing.bits < best.bits || (sizing.bits == best.bits && sizing.fpr < best.fpr);
    // Until there are hashes enough for the goal more of them come closer to it.
    const bool better =
        best.reached ? sizing.reached && smaller : sizing.reached || sizing.fpr < best.fpr;
    worse = better ? 0 : worse + 1;
    best = better ? sizing : best;
  }
  return best;
}

std::uint32_t best_hashes(const FilterShape& shape, double keys) {
  if (shape.layout == Layout::kSplit) {
    return kSplitHashes;
  }
  std::uint32_t best = 1;
  double lowest = 1;
  for (std::uint32_t hashes = 1; hashes <= kHashesMax; ++hashes) {
    if (shape.layout == Layout::kPartitioned && hashes > shape.bits) {
      break;
    }
    const double p = fpr({shape.layout, shape.bits, hashes}, keys);
    if (p < lowest) {
      lowest = p;
      best = hashes;
    }
  }
  return best;
}

double capacity_for(const FilterShape& shape, double fpr_max) {
  ENCORE_CHECK(fpr_max > 0 && fpr_max < 1, "a false-positive rate outside (0, 1)");
  double high = 1;
  while (fpr(shape, high) <= fpr_max) {
    high *= 2;
  }
  double low = high == 1 ? 0 : high / 2;
  while (high - low > 1e-3 && high - low > low * 1e-12) {
    const double middle = (low + high) / 2;
    (fpr(shape, middle) <= fpr_max ? low : high) = middle;
  }
  const double keys = std::floor(high);
  return fpr(shape, keys) <= fpr_max ? keys : keys - 1;
}

double capacity_classic(std::uint64_t bits, double fpr_max) {
  ENCORE_CHECK(fpr_max > 0 && fpr_max < 1, "a false-positive rate outside (0, 1)");
  return static_cast<double>(bits) * kLn2 * kLn2 / -std::log(fpr_max);
}

std::uint64_t half_full_capacity(const FilterShape& shape) {
  const double keys = static_cast<double>(shape.bits) * kLn2 / shape.hashes;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(keys));
}

Sizing size_ring(const RingGoal& goal) {
  const SizingGoal each{goal.capacity, share_of_generation(goal)};
  return goal.hashes == 0 ? size_for(goal.layout, each)
                          : size_with_hashes(goal.layout, each, goal.hashes);
}

WindowCost window_cost(Layout layout, std::uint32_t generations, double fpr_worst) {
  // Large enough that whole lines and whole keys do not show in the fourth digit.
  constexpr double kCapacity = 1e7;
  const Sizing sizing = size_ring({.layout = layout,
                                   .capacity = kCapacity,
                                   .fpr_worst = fpr_worst,
                                   .generations = generations,
                                   .hashes = 0});
  const double total = static_cast<double>(sizing.bits) * generations;
  return {total / (kCapacity * (generations - 1)), sizing.hashes, sizing.reached};
}

}  // namespace encore::filter
