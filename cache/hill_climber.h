// HillClimber: moves a share towards more hits, step by step. It goes on while hits do not fall,
// and turns back where they do. Each step is smaller than the one before, until the hit ratio
// changes by so much that the requests must be others now: then it begins with the first step anew.
// Einziger, Eytan, Friedman, Manes: "Adaptive software cache management" (Middleware 2018), with
// the step's decay of Caffeine. Its first step is upwards. Unlike theirs it turns back at an end of
// the range too: where hits stay the same, as none, it would never leave it. Thread-compatible.
#pragma once

#include <algorithm>
#include <cmath>

namespace encore::cache {

class HillClimber {
 public:
  struct Settings {
    double at = 0.01;   // it begins here
    double most = 0.8;  // the least is 0
    double step = 0.0625;
    double decay = 0.98;
    double restart = 0.05;  // change of the hit ratio
  };
  HillClimber() : HillClimber(Settings{}) {}
  explicit HillClimber(const Settings& settings)
      : settings_(settings), at_(settings.at), step_(settings.step) {}

  double at() const { return at_; }

  // A sample ended with this hit ratio. Returns the share for the next one.
  double next(double hit_ratio) {
    const double risen = hit_ratio - ratio_;
    ratio_ = hit_ratio;
    const double move = risen >= 0 ? step_ : -step_;
    step_ = std::abs(risen) >= settings_.restart ? std::copysign(settings_.step, move)
                                                 : settings_.decay * move;
    const double wanted = at_ + move;
    at_ = std::clamp(wanted, 0.0, std::max(settings_.most, settings_.at));
    step_ = at_ == wanted ? step_ : -step_;
    return at_;
  }

 private:
  Settings settings_;
  double at_;
  double step_;  // the next one, below 0: downwards
  double ratio_ = 0;
};

}  // namespace encore::cache
