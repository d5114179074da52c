#include "sim/workload/zipf.h"

#include <algorithm>
#include <cmath>

namespace encore::sim {
namespace {

// log1p(x)/x and expm1(x)/x without loss at small x, which is where alpha is near 1.
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

}  // namespace

Zipf::Zipf(std::uint64_t objects, double alpha)
    : objects_(static_cast<double>(objects)),
      alpha_(alpha),
      integral_at_first_(integral(1.5) - 1),
      integral_at_last_(integral(objects_ + 0.5)),
      accept_(2 - inverse(integral(2.5) - std::pow(2.0, -alpha))) {}

double Zipf::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_over((1 - alpha_) * log_x) * log_x;
}

double Zipf::inverse(double y) const {
  const double t = std::max(-1.0, y * (1 - alpha_));
  return std::exp(log1p_over(t) * y);
}

std::uint64_t Zipf::draw(Xoshiro& random) const {
  while (true) {
    const double u =
        integral_at_last_ + random.next_real() * (integral_at_first_ - integral_at_last_);
    const double x = inverse(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, objects_);
    if (k - x <= accept_ || u >= integral(k + 0.5) - std::pow(k, -alpha_)) {
      return static_cast<std::uint64_t>(k) - 1;
    }
  }
}

}  // namespace encore::sim
