// The half of theory.h that is about rotating filters.
#include <algorithm>
#include <cmath>

#include "filter/mean.h"
#include "filter/ring_theory.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

// A ring without refresh that rotates until nothing changes any more. The generations that
// RingTheory takes together, and the others separately.
class WithoutRefresh {
 public:
  explicit WithoutRefresh(const Ring& ring)
      : theory_({.shape = ring.shape,
                 .capacity = ring.capacity,
                 .generations = ring.generations,
                 .refresh = false}),
        keys_(theory_.older_sets(), 0.0) {
    for (std::uint32_t rotation = 0; rotation < 2 * theory_.generations(); ++rotation) {
      insert(ring.capacity);
      theory_.rotate();
    }
    const double p = fpr(ring.shape, effective_insertions(ring.shape, ring.capacity));
    others_say_no_ = std::pow(1 - p, ring.generations - theory_.generations());
  }
  void insert(double keys) {
    keys_[0] = keys;
    theory_.insert(keys_);
  }
  double fpr_now() const { return 1 - (1 - theory_.fpr()) * others_say_no_; }

 private:
  RingTheory theory_;
  std::vector<double> keys_;  // by the sets of older generations that answered: none
  double others_say_no_ = 1;
};

CycleFpr cycle_without_refresh(const Ring& ring) {
  WithoutRefresh pair(ring);
  CycleFpr cycle{.low = pair.fpr_now()};
  constexpr int kParts = 64;
  double before = cycle.low;
  for (int part = 0; part < kParts; ++part) {
    pair.insert(ring.capacity / kParts);
    cycle.high = pair.fpr_now();
    cycle.mean += (before + cycle.high) / (2 * kParts);
    before = cycle.high;
  }
  return cycle;
}

}  // namespace

double ring_fpr(const Ring& ring, double insertions) {
  if (!ring.refresh) {
    WithoutRefresh pair(ring);
    pair.insert(insertions);
    return pair.fpr_now();
  }
  const auto p = [&](double counted) {
    return fpr(ring.shape, ring.counting == Counting::kEffective
                               ? effective_insertions(ring.shape, counted)
                               : counted);
  };
  return 1 - (1 - p(insertions)) * std::pow(1 - p(ring.capacity), ring.generations - 1);
}

CycleFpr ring_cycle(const Ring& ring) {
  if (!ring.refresh) return cycle_without_refresh(ring);
  CycleFpr cycle;
  cycle.low = ring_fpr(ring, 0);
  cycle.high = ring_fpr(ring, ring.capacity);
  const double older_says_no = 1 - cycle.low;
  if (ring.counting == Counting::kPlain) {
    cycle.mean = 1 - (1 - fpr_incremental(ring.shape, ring.capacity)) * older_says_no;
    return cycle;
  }
  // With e the effective insertions, di = (1 - p(e)) de: the mean of p over i is an integral over
  // e.
  const double e_max = effective_insertions(ring.shape, ring.capacity);
  const double mean = mean_over_count(e_max, [&](double e) {
    const double p = fpr(ring.shape, e);
    return p * (1 - p);
  });
  cycle.mean = 1 - (1 - mean * e_max / std::max(ring.capacity, 1.0)) * older_says_no;
  return cycle;
}

double forgotten_share(const Ring& ring, double distance) {
  const double window = ring.capacity * (ring.generations - 1);
  return std::clamp((distance - window) / ring.capacity, 0.0, 1.0);
}

}  // namespace encore::filter
