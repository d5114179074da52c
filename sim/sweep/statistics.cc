#include "sim/sweep/statistics.h"

#include <cmath>

#include "filter/mean.h"

namespace encore::sim {
namespace {

constexpr double kConfidence = 0.95;

// The continued fraction of the incomplete beta function (Numerical Recipes 6.4, by Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-15;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double fraction = d;
  for (int step = 1; step < 1000; ++step) {
    const double m = step;
    for (const double numerator : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                   -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 + numerator * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + numerator / c;
      c = std::abs(c) < kTiny ? kTiny : c;
      fraction *= d * c;
    }
    if (std::abs(d * c - 1) < kEnough) break;
  }
  return fraction;
}

// The regularized incomplete beta function.
double beta_share(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(filter::log_factorial(a + b - 1) - filter::log_factorial(a - 1) -
               filter::log_factorial(b - 1) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

Estimate with_error(double value, double error, double degrees) {
  const double half = student_quantile(kConfidence, degrees) * error;
  const double certainty = error > 0 ? student_cdf(std::abs(value) / error, degrees) : 1;
  return {.value = value, .low = value - half, .high = value + half, .certainty = certainty};
}

}  // namespace

double student_cdf(double t, double degrees) {
  const double beyond = beta_share(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
  return t < 0 ? beyond : 1 - beyond;
}

double student_quantile(double confidence, double degrees) {
  const double wanted = (1 + confidence) / 2;
  double low = 0;
  double high = 1;
  while (student_cdf(high, degrees) < wanted) high *= 2;
  for (int halved = 0; halved < 100; ++halved) {
    const double middle = (low + high) / 2;
    (student_cdf(middle, degrees) < wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

Estimate estimate_mean(std::span<const double> observed) {
  const auto count = static_cast<double>(observed.size());
  double sum = 0;
  for (const double each : observed) sum += each;
  const double mean = sum / count;
  if (observed.size() == 1) return {.value = mean, .low = mean, .high = mean};
  double squares = 0;
  for (const double each : observed) squares += (each - mean) * (each - mean);
  return with_error(mean, std::sqrt(squares / (count - 1) / count), count - 1);
}

Estimate estimate_by_parts(double value, std::span<const double> moved) {
  if (moved.size() < 2) {
    return {.value = value, .low = value - 1, .high = value + 1, .certainty = 0.5};
  }
  const auto count = static_cast<double>(moved.size());
  double squares = 0;
  for (const double each : moved) squares += each * each;
  return with_error(value, std::sqrt(squares * count / (count - 1)), count - 1);
}

}  // namespace encore::sim
