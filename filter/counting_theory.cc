#include "filter/counting_theory.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "filter/mean.h"

namespace encore::filter {
namespace {

// Throws and the probability that one of them hits a given cell.
struct Throws {
  double count = 0;
  double hit = 0;
};

// ln of the binomial probability of exactly `hits`. `count` may be an expectation.
double log_binomial(const Throws& throws, double hits) {
  const double n = throws.count;
  const double misses = n - hits;
  // Factorials of large numbers would leave no digit of what they differ by: Stirling's formula for
  // both, and what cancels taken out.
  constexpr double kLarge = 1e6;
  if (n >= kLarge && misses >= kLarge / 2) {
    const double missing = std::log1p(-hits / n);
    return hits * std::log(n * throws.hit) - hits - log_factorial(hits) +
           misses * (std::log1p(-throws.hit) - missing) - missing / 2;
  }
  return log_factorial(n) - log_factorial(hits) - log_factorial(misses) +
         hits * std::log(throws.hit) + misses * std::log1p(-throws.hit);
}

// Sums weight(h) P(exactly h) for h = first, first + 1, ... until nothing comes any more.
template <typename Weight>
double tail(const Throws& throws, double first, Weight weight) {
  if (throws.count < first) {
    return 0;
  }
  if (throws.hit >= 1) {
    return weight(throws.count);
  }
  // Terms thirty standard deviations below the mean do not count.
  const double mean = throws.count * throws.hit;
  const double start = std::max(first, std::floor(mean - 30 * std::sqrt(mean)));
  double sum = 0;
  double p = std::exp(log_binomial(throws, start));
  for (double h = start; h <= throws.count; ++h) {
    const double term = weight(h) * p;
    sum += term;
    if (h > mean && term <= sum * 1e-17) {
      break;
    }
    p *= (throws.count - h) / (h + 1) * throws.hit / (1 - throws.hit);
  }
  return sum;
}

// E of tail() over the number of keys that reach a counter's line.
template <typename Weight>
double expected(const FilterShape& shape, double keys, double first, Weight weight) {
  const auto m = static_cast<double>(shape.bits);
  const double k = shape.hashes;
  constexpr auto kLine = static_cast<double>(kLineBits);
  const auto in_line = [&](double throws_a_key, double hit) {
    return poisson_mean(keys * kLine / m,
                        [&](double j) { return tail({throws_a_key * j, hit}, first, weight); });
  };
  switch (shape.layout) {
    case Layout::kClassic:
      return tail({k * keys, 1 / m}, first, weight);
    case Layout::kPartitioned:
      return tail({keys, 1 / std::floor(m / k)}, first, weight);
    case Layout::kBlocked:
      return in_line(k, 1 / kLine);
    case Layout::kSplit:
      return in_line(1, kSplitHashes / kLine);
  }
  return 0;
}

}  // namespace

double counter_reaches(const FilterShape& shape, double keys, std::uint32_t count) {
  return std::min(1.0, expected(shape, keys, count, [](double) { return 1.0; }));
}

double overflow_bound(const FilterShape& shape, double keys) {
  constexpr double kReached = kCounterMax + 1;
  const auto m = static_cast<double>(shape.bits);
  return m * std::pow(std::numbers::e * keys * shape.hashes / (kReached * m), kReached);
}

double expected_overflows(const FilterShape& shape, double keys) {
  constexpr double kReached = kCounterMax + 1;
  return static_cast<double>(shape.bits) *
         expected(shape, keys, kReached, [](double h) { return h - kCounterMax; });
}

}  // namespace encore::filter
