// Zipf: ranks 1..n with probability proportional to 1 / rank^alpha, in constant time and memory by
// rejection-inversion (Hormann and Derflinger 1996). Thread-compatible, deterministic.
#pragma once

#include <cstdint>

#include "sim/workload/random_words.h"

namespace encore::sim {

class Zipf {
 public:
  // REQUIRES: objects >= 1, alpha >= 0 and finite.
  Zipf(std::uint64_t objects, double alpha);
  // In [0, objects), 0 the most popular.
  std::uint64_t draw(Xoshiro& random) const;

 private:
  double integral(double x) const;  // integral of x^-alpha
  double inverse(double y) const;

  double objects_;
  double alpha_;
  double integral_at_first_;
  double integral_at_last_;
  double accept_;
};

}  // namespace encore::sim
