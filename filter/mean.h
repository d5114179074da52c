// A mean over counts, for the formulas of theory.h.
#pragma once

#include <cmath>

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

}  // namespace encore::filter
