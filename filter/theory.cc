#include "filter/theory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "filter/exact_theory.h"
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

// p of a line of the blocked layout, by its keys. The tables are made once, for sizing asks for
// thousands of them: one by one those of the k that filters have, the others together.
const BlockFpr& blocked_line(std::uint32_t hashes) {
  constexpr std::uint32_t kUsual = 32;
  struct Made {
    std::once_flag once;
    std::optional<BlockFpr> line;
  };
  static std::array<Made, kUsual + 1> usual;
  if (hashes > kUsual) {
    static const std::vector<BlockFpr> all = BlockFpr::of_all(kLineBits, kHashesMax);
    return all.at(hashes);
  }
  Made& made = usual.at(hashes);
  std::call_once(made.once, [&] { made.line.emplace(kLineBits, hashes); });
  return *made.line;
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
  return line_mean(keys, bits / line_bits,
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
    case Layout::kBlocked: {
      const BlockFpr& line = blocked_line(shape.hashes);
      return line_mean(keys, m / kLineBits, [&](double j) { return line.at(j); });
    }
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
  if (shape.layout != Layout::kClassic) {
    return fpr(shape, real(keys));
  }
  constexpr double kTermsMax = 4e8;
  const double k = shape.hashes;
  if (real(keys) * k * k > kTermsMax) {
    return std::nullopt;
  }
  CoveredCells cells(real(shape.bits), shape.hashes);
  for (std::uint64_t i = 0; i < keys; ++i) {
    cells.add_key();
  }
  return cells.fpr();
}

std::optional<double> fpr_incremental_exact(const FilterShape& shape, std::uint64_t keys) {
  if (shape.layout != Layout::kClassic) {
    return fpr_incremental(shape, real(keys));
  }
  constexpr double kTermsMax = 4e8;
  const double k = shape.hashes;
  if (real(keys) * k * k > kTermsMax) {
    return std::nullopt;
  }
  CoveredCells cells(real(shape.bits), shape.hashes);
  double sum = 0;
  for (std::uint64_t i = 0; i < keys; ++i) {
    sum += i == 0 ? 0 : cells.fpr();
    cells.add_key();
  }
  return keys == 0 ? 0 : sum / real(keys);
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
      return m * line_mean(keys, m / kLineBits,
                           [&](double j) { return hit_probability(kLineBits, k * j); });
    }
    case Layout::kSplit: {
      return m * line_mean(keys, m / kLineBits, [&](double j) {
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
