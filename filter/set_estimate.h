// What the bits of filters say about the sets in them (Swamidass and Baldi 2007): how many keys
// there are in one, in both, in either of two. Pure functions, thread-compatible as filters are.
#pragma once

#include "base/error.h"
#include "filter/bloom_filter.h"

namespace encore::filter {

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
