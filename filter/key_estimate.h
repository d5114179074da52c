// Estimates the number of keys in filters from their set bits (Swamidass and Baldi 2007), with its
// standard error. Pure functions.
#pragma once

#include <cstdint>

#include "filter/parameters.h"

namespace encore::filter {

// The number of distinct keys for which so many set bits are to be expected. classic, partitioned:
// -(m/k) ln(1 - X/m), to which distinct_from_fill() holds; blocked and split: expected_set_bits()
// turned round. Infinite for a filter that is all ones.
double keys_from_bits(const FilterShape& shape, double set_bits);

// Standard error of that estimate for `keys` keys: sqrt(m (e^t - t - 1)) / k with t = kn/m, the
// variance of linear counting (Whang et al. 1990). For blocked and split a little too small.
double keys_error(const FilterShape& shape, double keys);

// Set bits of two filters of one make, and of their OR.
struct CombinedBits {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t either = 0;
};
// Returns the number of keys that two filters have in common, which were counted to have `first`
// and `second`. It follows from the bits of both and of their OR, whose errors are much the same
// and cancel, and is at most the smaller of both. A filter whose bits are all in the other one has
// all its keys there; a saturated OR says nothing, and the smaller of both is returned. A union has
// the sum less these.
std::uint64_t keys_in_common(const FilterShape& shape, const CombinedBits& bits,
                             std::uint64_t first, std::uint64_t second);

}  // namespace encore::filter
