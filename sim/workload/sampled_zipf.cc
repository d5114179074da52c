#include "sim/workload/sampled_zipf.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace encore::sim {
namespace {

// Failures before the first success, each with the probability of success p; 2^63 if that is more.
std::uint64_t draw_failures(double p, Xoshiro& random) {
  constexpr double kMost = 0x1p63;
  const double failures = std::floor(std::log1p(-random.next_real()) / std::log1p(-p));
  return static_cast<std::uint64_t>(std::min(failures, kMost));
}

}  // namespace

double zipf_sum(std::uint64_t objects, double alpha) {
  constexpr std::uint64_t kDirect = 10'000;
  const std::uint64_t direct = std::min(objects, kDirect);
  double sum = 0;
  for (std::uint64_t rank = direct; rank != 0; --rank) {  // the smallest first
    sum += std::pow(static_cast<double>(rank), -alpha);
  }
  if (direct == objects) {
    return sum;
  }
  const auto from = static_cast<double>(direct);
  const auto to = static_cast<double>(objects);
  const double width = std::log(to / from);
  const double exponent = (1 - alpha) * width;
  // The integral of x^-alpha, also at alpha = 1.
  const double integral = std::pow(from, 1 - alpha) * width *
                          (std::abs(exponent) > 1e-8 ? std::expm1(exponent) / exponent : 1);
  const double ends = (std::pow(to, -alpha) - std::pow(from, -alpha)) / 2;
  const double slopes = alpha / 12 * (std::pow(from, -alpha - 1) - std::pow(to, -alpha - 1));
  return sum + integral + ends + slopes;
}

double draw_gamma(std::uint64_t count, Xoshiro& random) {
  const double d = static_cast<double>(count) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = std::sqrt(-2 * std::log1p(-random.next_real())) *
                          std::cos(2 * std::numbers::pi * random.next_real());
    const double v = std::pow(1 + c * normal, 3);
    if (v > 0 &&
        std::log1p(-random.next_real()) < normal * normal / 2 + d - d * v + d * std::log(v)) {
      return d * v;
    }
  }
}

SampledZipf::SampledZipf(std::uint64_t objects, double alpha, double rate, std::uint64_t seed) {
  Xoshiro random(seed);
  std::vector<double> weights;
  double sum = 0;
  for (std::uint64_t id = draw_failures(rate, random); id < objects;
       id += 1 + draw_failures(rate, random)) {
    ids_.push_back(id);
    weights.push_back(std::pow(static_cast<double>(id + 1), -alpha));
    sum += weights.back();
  }
  if (ids_.empty()) {
    return;
  }
  share_ = std::min(1.0, sum / zipf_sum(objects, alpha));
  for (double& weight : weights) {
    weight *= static_cast<double>(weights.size()) / sum;
  }
  make_aliases(std::move(weights));
}

void SampledZipf::make_aliases(std::vector<double> weights) {
  const auto count = static_cast<std::uint32_t>(weights.size());
  own_.assign(count, 1);
  alias_.resize(count);
  std::vector<std::uint32_t> light;
  std::vector<std::uint32_t> heavy;
  for (std::uint32_t i = 0; i < count; ++i) {
    (weights[i] < 1 ? light : heavy).push_back(i);
  }
  while (!light.empty() && !heavy.empty()) {
    const std::uint32_t less = light.back();
    const std::uint32_t more = heavy.back();
    light.pop_back();
    own_[less] = weights[less];
    alias_[less] = more;
    weights[more] -= 1 - weights[less];
    if (weights[more] < 1) {
      heavy.pop_back();
      light.push_back(more);
    }
  }
}

SampledZipf::Draw SampledZipf::draw(Xoshiro& random) const {
  const double place = random.next_real() * static_cast<double>(ids_.size());
  const auto column = static_cast<std::size_t>(place);
  const bool is_own = random.next_real() < own_[column];
  return {.passed = share_ < 1 ? draw_failures(share_, random) : 0,
          .id = ids_[is_own ? column : alias_[column]]};
}

}  // namespace encore::sim
