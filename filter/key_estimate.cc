#include "filter/key_estimate.h"

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

double keys_error(const FilterShape& shape, double keys) {
  if (!std::isfinite(keys)) {
    return keys;
  }
  const auto bits = static_cast<double>(shape.bits);
  const double t = shape.hashes * keys / bits;
  return std::sqrt(std::max(0.0, bits * (std::expm1(t) - t))) / shape.hashes;
}

std::uint64_t keys_in_common(const FilterShape& shape, const CombinedBits& bits,
                             std::uint64_t first, std::uint64_t second) {
  const auto keys = [&](std::uint64_t set_bits) {
    return keys_from_bits(shape, static_cast<double>(set_bits));
  };
  const std::uint64_t fewer = std::min(first, second);
  const double either = keys(bits.either);
  if (bits.either == std::max(bits.first, bits.second) || !std::isfinite(either)) {
    return fewer;
  }
  const double common = keys(bits.first) + keys(bits.second) - either;
  return common <= 0 ? 0 : std::min(fewer, static_cast<std::uint64_t>(std::llround(common)));
}

}  // namespace encore::filter
