// Intervals of differences and of means: Student's t. Pure functions.
#pragma once

#include <cstddef>
#include <span>

namespace encore::sim {

// Probability that Student's t with so many degrees of freedom is at most t, by the incomplete beta
// function (Abramowitz and Stegun 26.7.1). REQUIRES: degrees > 0.
double student_cdf(double t, double degrees);
// The t that is exceeded, in absolute value, with the probability 1 - confidence: 2.131 for .95 and
// 15 degrees. REQUIRES: degrees > 0, 0 < confidence < 1.
double student_quantile(double confidence, double degrees);

struct Estimate {
  double value = 0;
  double low = 0;   // the 95 % interval begins
  double high = 0;  // equal to `low` where the value is exact
  // Probability, by the same distribution, that the value's sign is the true one; 1: it is exact.
  double certainty = 1;
  bool is_exact() const { return low == high; }
  bool excludes_zero() const { return low > 0 || high < 0; }
};

// The mean of independent observations. One is taken for exact. REQUIRES: there is one.
Estimate estimate_mean(std::span<const double> observed);

// A value known from counts over the whole, with its spread from parts: how far each moves it, in
// sum about zero. Fewer than two parts: the interval is as wide as may be.
Estimate estimate_by_parts(double value, std::span<const double> moved);

}  // namespace encore::sim
