// JoinPlan: the filter for a semi-join with the fewest bytes sent (Bloom 1970; Bratbergsengen 1984;
// Mackert and Lohman 1986). Site R sends a filter of its n keys, site S the keys that test
// positive:
//
//   bytes(m, k) = ceil(m/8) + matching bytes + absent bytes * p(m, k, n)
//
// The matching keys are sent in any case. With k = (m/n) ln 2 the minimum is at
// m = n / (ln 2)^2 * ln(8 (ln 2)^2 absent bytes / n); k is a whole number. Pure functions.
#pragma once

#include <cstdint>

namespace encore::filter {

struct JoinPlan {
  std::uint64_t bits = 0;    // a multiple of 8; 0: sending all keys takes fewer bytes
  std::uint32_t hashes = 0;  // classic layout
  double fpr = 1;
  double bytes = 0;  // expected, without those of the matching keys
};

// The best one for n keys and the bytes of the other site's keys that match none.
JoinPlan plan_join(double keys, double absent_bytes);

// The expected bytes of a filter of classic layout, without those of the matching keys.
struct JoinFilter {
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;
};
double join_bytes(const JoinFilter& filter, double keys, double absent_bytes);

}  // namespace encore::filter
