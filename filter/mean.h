// Means over counts, for the formulas of theory.h, and of samples that are compared with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace encore::filter {

inline constexpr int kIntervals = 1024;  // even; of Simpson's rule

// Mean of f(i) over i = 0, 1, .., n-1, for smooth f: term by term where n is small, else by
// Simpson's rule and the first Euler-Maclaurin term, which is exact far beyond the digits anybody
// prints.
template <typename F>
double mean_over_count(double n, F f) {
  if (n <= 0) {
    return 0;
  }
  double sum = 0;
  if (n <= 2 * kIntervals) {
    for (double i = 0; i < n; ++i) {
      sum += f(i);
    }
    return sum / std::ceil(n);
  }
  for (int i = 0; i <= kIntervals; ++i) {
    const double weight = (i == 0 || i == kIntervals) ? 1 : (i % 2 == 1 ? 4 : 2);
    sum += weight * f(n * i / kIntervals);
  }
  return sum / (3 * kIntervals) - (f(n) - f(0)) / (2 * n);
}

// ln (n!). std::lgamma leaves the sign in a variable that all threads share.
inline double log_factorial(double n) {
  int sign = 0;
  return ::lgamma_r(n + 1, &sign);
}

// E[f(j)] for j Poisson with the given mean, of an f that never decreases; what is left out at both
// ends has less than 1e-14 of the weight.
template <typename F>
double poisson_mean(double mean, F f) {
  const double reach = 8 * std::sqrt(mean) + 20;
  const double first = std::max(0.0, std::floor(mean - reach));
  const double last = std::ceil(mean + reach);
  // A hopelessly overfull line: the same for every count that there may be.
  if (const double least = f(first); least == f(last)) return least;
  double weight = mean == 0 ? 1.0 : std::exp(first * std::log(mean) - mean - log_factorial(first));
  double sum = 0;
  for (double j = first; j <= last; ++j) {
    sum += weight * f(j);
    weight *= mean / (j + 1);
  }
  return sum;
}

// E[f(j)] for j of `keys` keys that fall into one of so many equal lines: binomial, and Poisson (as
// published) where the lines are many. A fraction of a key is there with that probability.
template <typename F>
double line_mean(double keys, double lines, F f) {
  constexpr double kManyLines = 4096;  // the difference is below 1/lines
  if (lines > kManyLines) return poisson_mean(keys / lines, f);
  const auto binomial_mean = [&](double n) {
    if (lines <= 1) return f(n);
    const double share = 1 / lines;
    const double mean = n * share;
    const double reach = 8 * std::sqrt(mean) + 20;
    const double first = std::max(0.0, std::floor(mean - reach));
    const double last = std::min(n, std::ceil(mean + reach));
    if (const double least = f(first); least == f(last)) return least;
    double weight = std::exp(log_factorial(n) - log_factorial(first) - log_factorial(n - first) +
                             first * std::log(share) + (n - first) * std::log1p(-share));
    double sum = 0;
    for (double j = first; j <= last; ++j) {
      sum += weight * f(j);
      weight *= (n - j) / (j + 1) * share / (1 - share);
    }
    return sum;
  };
  const double whole = std::floor(keys);
  const double rest = keys - whole;
  return (1 - rest) * binomial_mean(whole) + (rest > 0 ? rest * binomial_mean(whole + 1) : 0);
}

// Mean of a sample, and how far it is from its expectation in standard errors; nothing without
// spread.
struct SampleMean {
  double mean = 0;
  std::optional<double> sigmas;
};
inline SampleMean sample_mean(const std::vector<double>& sample, double expected) {
  const auto n = static_cast<double>(sample.size());
  double mean = 0;
  for (const double x : sample) {
    mean += x / n;
  }
  double variance = 0;
  for (const double x : sample) {
    variance += (x - mean) * (x - mean);
  }
  const bool spreads = sample.size() > 1 && variance > 0;
  return {mean, spreads ? std::optional((mean - expected) / std::sqrt(variance / (n - 1) / n))
                        : std::nullopt};
}

}  // namespace encore::filter
