#include "filter/fill_theory.h"

#include <algorithm>

#include "base/check.h"
#include "filter/mean.h"
#include "filter/theory.h"

namespace encore::filter {

FillTheory::FillTheory(const FilterShape& shape) : shape_(shape) {
  if (is_small(shape)) {
    cells_.emplace(static_cast<double>(shape.bits), shape.hashes);
  }
}

FillTheory::FillTheory(const FilterShape& shape, std::uint64_t buckets)
    : shape_(shape), buckets_(static_cast<double>(buckets)) {
  ENCORE_CHECK(shape.layout == Layout::kClassic && buckets != 0, "buckets are classic filters");
  shape_.bits = shape.bits / buckets;
  if (is_small(shape_)) {
    bucket_.emplace(static_cast<double>(shape_.bits), shape.hashes);
  }
}

double FillTheory::compute(double keys) const {
  return line_mean(keys, buckets_, [this](double in_bucket) {
    return bucket_ ? bucket_->at(in_bucket) : fpr(shape_, in_bucket);
  });
}

double FillTheory::at(std::uint64_t keys) {
  if (cells_) {
    for (; keys_ < keys && known_ < 1; ++keys_) {
      cells_->add_key();
      const double p = cells_->fpr();
      known_ = is_full(p, known_) ? 1 : p;
    }
    return known_;
  }
  if (keys >= known_until_) {
    constexpr std::uint64_t kReadings = 2048;
    const std::uint64_t step = std::max<std::uint64_t>(1, keys / kReadings);
    known_ = compute(static_cast<double>(keys) + static_cast<double>(step - 1) / 2);
    known_until_ = keys + step;
  }
  return known_;
}

}  // namespace encore::filter
