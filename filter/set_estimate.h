// Estimates of sets from the bits of filters (Swamidass and Baldi 2007): the number of keys in one,
// in both, in either of two. Pure functions, thread-compatible as filters are.
#pragma once

#include "base/error.h"
#include "filter/bloom_filter.h"

namespace encore::filter {

// Estimate for two filters of equal parameters. The size of the intersection comes from those of
// the sets and their union. A key of one set and a key of the other share bits by chance, so the
// AND of the filters looks like more keys than there are.
struct SetEstimate {
  double first = 0;
  double second = 0;
  double either = 0;   // |A or B|, by the bits of the OR
  double both = 0;     // |A and B| = first + second - either, not below 0
  double fpr_or = 0;   // rate of the OR of both filters, by its bits
  double fpr_and = 0;  // rate of their AND
  double jaccard() const { return either > 0 ? both / either : 0; }
};
// Takes the memory of one further filter. Errors: those of BloomFilter::merge, memory.
Result<SetEstimate> estimate(const BloomFilter& a, const BloomFilter& b);

}  // namespace encore::filter
