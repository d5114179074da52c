#include "filter/exact_theory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace encore::filter {
namespace {

// The distribution of X after one more throw at so many cells.
void throw_once(std::vector<double>& probability, std::size_t cells) {
  for (std::size_t x = cells; x != 0; --x) {
    const double stays = static_cast<double>(x) / static_cast<double>(cells);
    const double grows = 1 - static_cast<double>(x - 1) / static_cast<double>(cells);
    probability[x] = probability[x] * stays + probability[x - 1] * grows;
  }
  probability[0] = 0;
}

}  // namespace

bool is_full(double p, double before) { return p > 1 - 1e-12 || (p > 0.5 && p <= before); }

CoveredCells::CoveredCells(double cells, std::uint32_t hashes)
    : cells_(cells), drawn_(hashes + std::size_t{1}), covered_(drawn_.size()) {
  ENCORE_CHECK(cells >= 1 && hashes != 0, "cells to throw at");
  drawn_[0] = 1;
  for (std::uint32_t draw = 1; draw <= hashes; ++draw) {
    for (std::size_t d = draw; d != 0; --d) {
      const double cells_with = static_cast<double>(d) / cells;
      const double cells_before = static_cast<double>(d - 1) / cells;
      drawn_[d] =
          drawn_[d] * std::min(1.0, cells_with) + drawn_[d - 1] * std::max(0.0, 1 - cells_before);
    }
    drawn_[0] = 0;
  }
  covered_[0] = 1;
}

void CoveredCells::add_key() {
  // More different cells than there are have no weight, nor a probability.
  const auto last = static_cast<std::size_t>(
      std::min(static_cast<double>(covered_.size() - 1), std::floor(cells_)));
  for (std::size_t thrown = 1; thrown < covered_.size(); ++thrown) {
    for (std::size_t d = last; d != 0; --d) {
      const double share = static_cast<double>(d) / cells_;
      covered_[d] = covered_[d] * (1 - share) + covered_[d - 1] * share;
    }
  }
}

double CoveredCells::fpr() const {
  double sum = 0;
  for (std::size_t d = 0; d < drawn_.size(); ++d) {
    sum += drawn_[d] * covered_[d];
  }
  return std::min(1.0, sum);
}

BlockFpr::BlockFpr(double cells, std::uint32_t hashes) {
  CoveredCells block(cells, hashes);
  by_keys_.push_back(0);
  for (bool full = false; !full;) {
    block.add_key();
    const double p = block.fpr();
    full = is_full(p, by_keys_.back());
    by_keys_.push_back(full ? 1 : p);
  }
}

std::vector<BlockFpr> BlockFpr::of_all(std::size_t cells, std::uint32_t hashes_max) {
  const std::size_t width = cells + 1;
  std::vector<BlockFpr> all(hashes_max + std::size_t{1}, BlockFpr());
  std::vector<double> powers(all.size() * width);  // (x/m)^k of each k
  std::vector<double> probability(width);
  probability[0] = 1;
  for (std::size_t x = 0; x <= cells; ++x) {
    const double fill = static_cast<double>(x) / static_cast<double>(cells);
    powers[x] = fill;
    for (std::size_t k = 1; k < all.size(); ++k) {
      powers[k * width + x] = k == 1 ? fill : powers[(k - 1) * width + x] * fill;
    }
  }
  for (BlockFpr& block : all) {
    block.by_keys_.push_back(0);
  }
  std::size_t open = all.size();
  for (std::size_t thrown = 1; open != 0; ++thrown) {
    throw_once(probability, cells);
    for (std::size_t k = 0; k < all.size(); ++k) {
      std::vector<double>& by_keys = all[k].by_keys_;
      if (thrown % std::max<std::size_t>(1, k) != 0 || by_keys.back() == 1) {
        continue;
      }
      const auto of_k = powers.begin() + static_cast<std::ptrdiff_t>(k * width);
      const double p = std::inner_product(probability.begin(), probability.end(), of_k, 0.0);
      by_keys.push_back(is_full(p, by_keys.back()) ? 1 : p);
      open -= by_keys.back() == 1 ? 1U : 0U;
    }
  }
  return all;
}

double BlockFpr::at(double keys) const {
  return keys >= static_cast<double>(by_keys_.size() - 1)
             ? 1
             : by_keys_[static_cast<std::size_t>(std::max(0.0, keys))];
}

bool is_small(const FilterShape& shape) {
  if (shape.layout != Layout::kClassic) {
    return false;
  }
  constexpr double kSquaresABit = 1000;
  constexpr double kHashesFew = 128;  // beyond them k^2 a key takes longer than the key
  const double k = shape.hashes;
  return k <= kHashesFew && kSquaresABit * k * k > static_cast<double>(shape.bits);
}

}  // namespace encore::filter
