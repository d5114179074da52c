// FillTheory: the false-positive rate of one filter while it fills. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <optional>

#include "filter/exact_theory.h"
#include "filter/parameters.h"

namespace encore::filter {

// p of a single filter that fills key by key: exact for small classic filters, else fpr(), computed
// again after every 2048th part of the keys, for its middle.
class FillTheory {
 public:
  FillTheory() = default;
  explicit FillTheory(const FilterShape& shape);
  // A classic filter that is divided into so many equal filters.
  FillTheory(const FilterShape& shape, std::uint64_t buckets);

  // REQUIRES: no fewer keys than the last time.
  double at(std::uint64_t keys);

 private:
  double compute(double keys) const;

  FilterShape shape_;
  double buckets_ = 1;
  std::optional<BlockFpr> bucket_;
  std::optional<CoveredCells> cells_;  // with keys_ keys
  std::uint64_t keys_ = 0;
  std::uint64_t known_until_ = 0;
  double known_ = 0;
};

}  // namespace encore::filter
