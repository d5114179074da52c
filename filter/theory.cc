#include "filter/theory.h"

#include <algorithm>
#include <cmath>

#include "filter/mean.h"

namespace encore::filter {
namespace {

double real(std::uint64_t value) { return static_cast<double>(value); }

// 1 - (1 - 1/n)^throws, also where 1/n is tiny.
double hit_probability(double cells, double throws) {
  if (cells <= 1) {
    return throws > 0 ? 1.0 : 0.0;
  }
  return -std::expm1(throws * std::log1p(-1.0 / cells));
}

// x^k by squaring: the sums below take a power a term.
double power(double x, std::uint32_t k) {
  double result = 1;
  for (; k != 0; k >>= 1U, x *= x) {
    result *= (k & 1U) != 0 ? x : 1;
  }
  return result;
}

// One Runge-Kutta step of d e = di / (1 - p(e)).
double effective_step(const FilterShape& shape, double e, double step) {
  const auto slope = [&](double at) { return 1 / (1 - std::min(fpr(shape, at), 0.999999)); };
  const double a = slope(e);
  const double b = slope(e + step / 2 * a);
  const double c = slope(e + step / 2 * b);
  const double d = slope(e + step * c);
  return e + step / 6 * (a + 2 * b + 2 * c + d);
}

}  // namespace

double fpr_blocked(const FilterShape& shape, double keys, double block_bits) {
  const double per_key = std::log1p(-1 / block_bits) * shape.hashes;
  return poisson_mean(keys * block_bits / real(shape.bits),
                      [&](double j) { return power(-std::expm1(per_key * j), shape.hashes); });
}

double fpr_split(double bits, double keys, SplitLine line) {
  const double line_bits = line.words * line.word_bits;
  const double miss_one = std::log1p(-1 / line.word_bits);
  return poisson_mean(keys * line_bits / bits,
                      [&](double j) { return power(-std::expm1(miss_one * j), line.words); });
}

double fpr(const FilterShape& shape, double keys) {
  if (keys <= 0) {
    return 0;
  }
  const double m = real(shape.bits);
  const double k = shape.hashes;
  switch (shape.layout) {
    case Layout::kClassic:
      return std::pow(hit_probability(m, k * keys), k);
    case Layout::kPartitioned:
      return std::pow(hit_probability(std::floor(m / k), keys), k);
    case Layout::kBlocked:
      return fpr_blocked(shape, keys, kLineBits);
    case Layout::kSplit:
      return fpr_split(m, keys, {});
  }
  return 1;
}

double fpr_exponential(const FilterShape& shape, double keys) {
  return std::pow(-std::expm1(-static_cast<double>(shape.hashes) * keys / real(shape.bits)),
                  shape.hashes);
}

std::optional<double> fpr_exact(const FilterShape& shape, std::uint64_t keys) {
  const double m = real(shape.bits);
  const double throws = shape.hashes * real(keys);
  // The distribution is carried in a band around its mean, some 40 standard deviations wide.
  if (throws * (40 * std::sqrt(m) + 64) > 4e8) {
    return std::nullopt;
  }
  const auto cells = static_cast<std::size_t>(shape.bits);
  // Of i set bits, and no more than there are throws.
  std::vector<double> probability(std::min(cells, static_cast<std::size_t>(throws)) + 2, 0.0);
  probability[0] = 1;
  std::size_t low = 0;
  std::size_t high = 0;
  for (double t = 0; t < throws; ++t) {
    high = std::min(high + 1, cells);
    for (std::size_t i = high; i > low; --i) {
      const double stays = probability[i] * static_cast<double>(i) / m;
      const double grows = probability[i - 1] * (m - static_cast<double>(i - 1)) / m;
      probability[i] = stays + grows;
    }
    probability[low] *= static_cast<double>(low) / m;
    while (low < high && probability[low] < 1e-40) {
      probability[low++] = 0;
    }
    while (high > low && probability[high] < 1e-40) {
      probability[high--] = 0;
    }
  }
  double sum = 0;
  for (std::size_t i = low; i <= high; ++i) {
    sum += probability[i] * std::pow(static_cast<double>(i) / m, shape.hashes);
  }
  return sum;
}

double fpr_incremental(const FilterShape& shape, double keys) {
  return mean_over_count(keys, [&](double i) { return fpr(shape, i); });
}

double distinct_blocks(const BlockExperiment& experiment, double events) {
  const double reuse_share = 1 - experiment.one_off_share;
  const double reused = experiment.reused_blocks <= 0
                            ? 0
                            : experiment.reused_blocks *
                                  hit_probability(experiment.reused_blocks, reuse_share * events);
  return experiment.one_off_share * events + reused;
}

double fpr_weighted_incremental(const FilterShape& shape, const BlockExperiment& experiment) {
  return mean_over_count(experiment.events,
                         [&](double t) { return fpr(shape, distinct_blocks(experiment, t)); });
}

double expected_set_bits(const FilterShape& shape, double keys) {
  const double m = real(shape.bits);
  const double k = shape.hashes;
  switch (shape.layout) {
    case Layout::kClassic:
      return m * hit_probability(m, k * keys);
    case Layout::kPartitioned:
      return m * hit_probability(std::floor(m / k), keys);
    case Layout::kBlocked: {
      // j keys in a line, k throws each, over 512 bits.
      const double lines = m / kLineBits;
      return m * poisson_mean(keys / lines,
                              [&](double j) { return hit_probability(kLineBits, k * j); });
    }
    case Layout::kSplit: {
      const double lines = m / kLineBits;
      return m * poisson_mean(keys / lines, [&](double j) {
               return hit_probability(static_cast<double>(kLineBits) / kSplitHashes, j);
             });
    }
  }
  return 0;
}

double set_bits_variance(const FilterShape& shape, double keys) {
  const double m = real(shape.bits);
  const double a = shape.hashes * keys / m;
  return m * std::exp(-a) * (1 - (1 + a) * std::exp(-a));
}

double fpr_from_fill(const FilterShape& shape, double set_bits) {
  return std::pow(set_bits / real(shape.bits), shape.hashes);
}

double distinct_from_fill(const FilterShape& shape, double set_bits) {
  return -real(shape.bits) / shape.hashes * std::log1p(-set_bits / real(shape.bits));
}

double effective_insertions(const FilterShape& shape, double counted) {
  constexpr int kSteps = 64;
  double e = 0;
  for (int i = 0; i < kSteps; ++i) {
    e = effective_step(shape, e, counted / kSteps);
  }
  return e;
}

FprCurve::FprCurve(const FilterShape& shape, double keys_max, Counting counting) {
  constexpr int kSteps = 128;
  step_ = std::max(keys_max, 1.0) / kSteps;
  points_.reserve(kSteps + 1);
  // Adams-Bashforth of second order on d e = di / (1 - p(e)): one p a point, and points are all
  // that a filter's start pays for.
  double keys = 0;
  double slope_before = 1;
  for (int i = 0; i <= kSteps; ++i) {
    points_.push_back(fpr(shape, keys));
    const double slope =
        counting == Counting::kEffective ? 1 / (1 - std::min(points_.back(), 0.999999)) : 1;
    keys += step_ * (1.5 * slope - 0.5 * slope_before);
    slope_before = slope;
  }
}

double FprCurve::at(double keys) const {
  if (points_.empty()) {
    return 0;
  }
  const double position = std::clamp(keys / step_, 0.0, static_cast<double>(points_.size() - 1));
  const auto index = std::min(static_cast<std::size_t>(position), points_.size() - 2);
  const double share = position - static_cast<double>(index);
  return points_[index] + share * (points_[index + 1] - points_[index]);
}

Interval wilson_interval(const Proportion& proportion, double z) {
  if (proportion.trials == 0) {
    return {};
  }
  const double n = real(proportion.trials);
  const double p = real(proportion.hits) / n;
  const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {proportion.hits == 0 ? 0.0 : std::max(0.0, centre - half),
          proportion.hits == proportion.trials ? 1.0 : std::min(1.0, centre + half)};
}

}  // namespace encore::filter
