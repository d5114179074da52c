// SampledZipf: independent draws from a Zipf law, of which only those are made that fall on a
// sample of its objects. An object is in the sample with the probability `rate`, whatever the
// others are.
//
// The stream of these draws is that of all draws with the others left out, exactly in distribution.
// Draws are independent: the number between two that fall on the sample is geometric with the
// sample's share of the law, and each of these has the law restricted to the sample. At a rate of
// 0.001 some 10^7 of 10^10 draws are made (docs/decisions/0618). Memory: 20 bytes a sampled object.
// Deterministic; thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/random_words.h"

namespace encore::sim {

class SampledZipf {
 public:
  static constexpr std::uint64_t kSampledMax = 100'000'000;

  // REQUIRES: objects >= 1, 0 <= alpha < 100, 0 < rate < 1, objects * rate <= kSampledMax.
  SampledZipf(std::uint64_t objects, double alpha, double rate, std::uint64_t seed);

  struct Draw {
    std::uint64_t passed = 0;  // draws that missed the sample
    std::uint64_t id = 0;      // rank - 1
  };
  // REQUIRES: sampled() is not empty.
  Draw draw(Xoshiro& random) const;
  // Ids of the sampled objects, in order.
  const std::vector<std::uint64_t>& sampled() const { return ids_; }
  // The probability that a draw falls on the sample.
  double share() const { return share_; }

 private:
  void make_aliases(std::vector<double> weights);

  std::vector<std::uint64_t> ids_;
  // Walker 1977, Vose 1991: column i is i with the probability own_[i], else alias_[i].
  std::vector<double> own_;
  std::vector<std::uint32_t> alias_;
  double share_ = 0;
};

// The sum of rank^-alpha over 1..objects, to 14 digits (Euler-Maclaurin).
double zipf_sum(std::uint64_t objects, double alpha);

// Draws the time until the count-th event of a Poisson process of rate 1: the gamma law (Marsaglia
// and Tsang 2000). REQUIRES: count >= 1.
double draw_gamma(std::uint64_t count, Xoshiro& random);

}  // namespace encore::sim
