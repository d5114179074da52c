// Theory of a counting filter's counters (Fan, Cao, Almeida, Broder 2000): the number of keys that
// one of them counts, and how often it exceeds four bits. Pure functions, thread-safe. The
// false-positive rate is that of a plain filter of the same shape (theory.h).
#pragma once

#include <cstdint>

#include "filter/parameters.h"

namespace encore::filter {

inline constexpr std::uint32_t kCounterMax = 15;  // and from there on a counter stays

// The probability that one counter was raised at least `count` times by n keys:
//   classic      binomial, kn throws at 1/m              partitioned  n throws at k/m
//   blocked      Poisson(j; 512 n/m) keys in its line, kj throws at 1/512    split  j throws at
//   1/64
double counter_reaches(const FilterShape& shape, double keys, std::uint32_t count);
// The bound of Fan et al. on the probability that some counter of m reaches 16:
// m (e n k / (16 m))^16; 1.37e-15 m where half of the counters are zero.
double overflow_bound(const FilterShape& shape, double keys);
// The expected number of times that a counter is raised which is at its maximum, over the filter.
double expected_overflows(const FilterShape& shape, double keys);

}  // namespace encore::filter
