// What the bits of filters say about the sets in them (Swamidass and Baldi 2007): how many keys
// there are in one, in both, in either of two. Pure functions, thread-compatible as filters are.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "filter/bloom_filter.h"
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
// How many keys two filters have in common that were counted to have `first` and `second`: by the
// bits of both and of their OR, whose errors are much the same and cancel, and no more than the
// fewer of both. A filter whose bits are all in the other one has all its keys there; a saturated
// OR says nothing, and the fewer of both are taken. A union has the sum less these.
std::uint64_t keys_in_common(const FilterShape& shape, const CombinedBits& bits,
                             std::uint64_t first, std::uint64_t second);

// Of two filters of one make. The size of the intersection comes from those of the sets and their
// union: a key of one set and a key of the other share bits by chance, so that the AND of the
// filters looks like more keys than there are.
struct SetEstimate {
  double first = 0;
  double second = 0;
  double either = 0;   // |A or B|, by the bits of the OR
  double both = 0;     // |A and B| = first + second - either, not below 0
  double fpr_or = 0;   // of the OR of both filters, by its bits
  double fpr_and = 0;  // of their AND
  double jaccard() const { return either > 0 ? both / either : 0; }
};
// Takes the memory of one further filter. Errors: those of BloomFilter::merge, memory.
Result<SetEstimate> estimate(const BloomFilter& a, const BloomFilter& b);

}  // namespace encore::filter
