#include "filter/set_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "filter/theory.h"

namespace encore::filter {
namespace {

// Lines hold different numbers of keys, so there is no closed form. The expectation grows with the
// keys; halving finds them to the last digit that counts.
double turned_round(const FilterShape& shape, double set_bits) {
  double high = static_cast<double>(shape.bits) / shape.hashes;
  while (expected_set_bits(shape, high) < set_bits) {
    high *= 2;
  }
  double low = 0;
  while (high - low > high * 1e-9) {
    const double middle = (low + high) / 2;
    (expected_set_bits(shape, middle) < set_bits ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double keys_from_bits(const FilterShape& shape, double set_bits) {
  const auto bits = static_cast<double>(shape.bits);
  if (set_bits <= 0) {
    return 0;
  }
  if (set_bits >= bits) {
    return std::numeric_limits<double>::infinity();
  }
  if (shape.layout == Layout::kClassic || shape.layout == Layout::kPartitioned) {
    return distinct_from_fill(shape, set_bits);
  }
  // The expectation of what is nearly all ones comes near `bits` only beyond any number of keys.
  return turned_round(shape, std::min(set_bits, bits * (1 - 1e-9)));
}

Result<SetEstimate> estimate(const BloomFilter& a, const BloomFilter& b) {
  auto work = a.copy();
  if (!work) {
    return std::unexpected(work.error());
  }
  if (auto done = work->merge(b); !done) {
    return std::unexpected(done.error());
  }
  const FilterShape shape = a.parameters().shape();
  const auto keys = [&](const BloomFilter& filter) {
    return keys_from_bits(shape, static_cast<double>(filter.set_bits()));
  };
  SetEstimate sets{.first = keys(a), .second = keys(b), .either = keys(*work)};
  sets.both = std::isfinite(sets.either) ? std::max(0.0, sets.first + sets.second - sets.either)
                                         : std::min(sets.first, sets.second);
  sets.fpr_or = work->fpr_from_bits();
  // (A or B) and A is A, and with B it is what both have.
  for (const BloomFilter* each : {&a, &b}) {
    if (auto done = work->intersect(*each); !done) {
      return std::unexpected(done.error());
    }
  }
  sets.fpr_and = work->fpr_from_bits();
  return sets;
}

}  // namespace encore::filter
