// LearningRate: the learning rate of Cacheus, which climbs towards more hits (Rodriguez et al.,
// FAST 2021, section 5). At the end of each period it moves on if hits rose and back if they fell.
// If it had not moved and hits fell, it moves in a direction that is drawn. After ten periods
// without hits, or with fewer and fewer, it begins anew. Rates are compared to a thousandth, as in
// the authors' program. Thread-compatible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cache/draws.h"

namespace encore::cache {

class LearningRate {
 public:
  double value() const { return value_; }

  // Begins with the default rate, sqrt(2 ln 2 / period).
  void begin(std::uint64_t period) {
    const double wanted = std::sqrt(2 * std::log(2.0) / static_cast<double>(period));
    first_ = std::clamp(wanted, kMin, kMax);
    value_ = wanted;
    before_ = 0;
    now_ = wanted;
  }

  // A period ended, `hits` of its requests were hits.
  void adapt(std::uint64_t hits, std::uint64_t requests, Draws& draws) {
    const double ratio = thousandths(static_cast<double>(hits) /
                                     static_cast<double>(std::max<std::uint64_t>(requests, 1)));
    const double risen = thousandths(ratio - ratio_);
    const double moved = thousandths(now_) - thousandths(before_);
    const double step = std::abs(value_ * moved);
    if (moved * risen > 0) {
      value_ = std::min(value_ + step, kMax);
      fruitless_ = falling_ = 0;
    } else if (moved * risen < 0) {
      value_ = std::max(value_ - step, kMin);
      fruitless_ = falling_ = 0;
    } else if (ratio <= 0 || risen <= 0) {
      stay(risen, draws);
    }
    before_ = now_;
    now_ = value_;
    ratio_ = ratio;
  }

 private:
  static constexpr double kMin = 0.001;
  static constexpr double kMax = 1;
  static constexpr int kPatience = 10;
  static double thousandths(double x) { return std::round(x * 1000) / 1000; }

  void stay(double risen, Draws& draws) {
    ++fruitless_;
    falling_ += risen < 0 ? 1 : 0;
    if (fruitless_ >= kPatience) {
      value_ = first_;
      fruitless_ = 0;
    } else if (risen < 0 && falling_ >= kPatience) {
      value_ = first_;
      falling_ = 0;
    } else if (risen < 0) {
      wander(draws);
    }
  }
  void wander(Draws& draws) {
    if (value_ >= kMax) {
      value_ = 0.9;
    } else if (value_ <= kMin) {
      value_ = 0.005;
    } else {
      value_ = draws.below(2) == 0 ? std::min(value_ * 1.25, kMax) : std::max(value_ * 0.75, kMin);
    }
  }

  double first_ = kMax;
  double value_ = kMax;
  double now_ = 0;     // in the period that ended
  double before_ = 0;  // in the one before it
  double ratio_ = 0;   // hit ratio of the one before it
  int fruitless_ = 0;  // periods
  int falling_ = 0;
};

}  // namespace encore::cache
