// False-positive rates where the usual formulas are only near: small filters, small blocks.
//
// The formula (1 - (1 - 1/m)^(kn))^k is the k-th power of the expected fill, E[X/m]^k; a key that
// was never inserted tests positive with E[(X/m)^k], which is larger (Bose et al. 2008). For a
// filter of 800,000 bits the difference is in the fifth digit, for a block of 512 bits it is 1.2 %
// at k = 7, for 100 bits with k = 40 a multiple.
//
// k draws from m cells have d different ones with probability D(d), and t throws hit d given cells
// with probability A(t, d):
//
//   D(d) after one more draw  = D(d) d/m + D(d-1) (1 - (d-1)/m)
//   A(t+1, d)                 = A(t, d) (1 - d/m) + A(t, d-1) d/m
//   E[(X/m)^k]                = sum over d of D(d) A(kn, d)
//
// which has only positive terms and k^2 of them a key. Values; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "filter/parameters.h"

namespace encore::filter {

// m cells that keys throw k times at.
class CoveredCells {
 public:
  // REQUIRES: at least one cell and one hash.
  CoveredCells(double cells, std::uint32_t hashes);
  void add_key();
  // E[(X/m)^k] with the keys so far.
  double fpr() const;

 private:
  double cells_;
  std::vector<double> drawn_;    // D(d)
  std::vector<double> covered_;  // A(t, d)
};

// p of one block by the number of its keys, computed once, up to where it is 1.
class BlockFpr {
 public:
  // REQUIRES: as CoveredCells.
  BlockFpr(double cells, std::uint32_t hashes);
  double at(double keys) const;
  // Blocks of so many cells for each k of [0, hashes_max], in one pass over the throws: for many
  // hashes k^2 a key is more than the distribution of X. The entry 0 is of one hash.
  static std::vector<BlockFpr> of_all(std::size_t cells, std::uint32_t hashes_max);

 private:
  BlockFpr() = default;
  std::vector<double> by_keys_;
};

// True if p, with one key more than `before`, is as good as 1: the rest is rounding, and so is a
// rate above one half that stops growing.
bool is_full(double p, double before);

// True for a classic filter whose formula is off by more than some 0.01 %: k^2/m is above 0.1 %.
// Never for more than 128 hashes.
bool is_small(const FilterShape& shape);

}  // namespace encore::filter
