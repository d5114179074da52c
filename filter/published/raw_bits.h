// The bits of a filter and nothing else. The reader must know the rest. Pure, thread-safe.
#pragma once

#include <string_view>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/parameters.h"

namespace encore::filter {

// `raw` as BloomFilter::raw_bits() gives it. The insertions are as many as the set bits are worth
// (keys_from_bits). Errors: those of checked(), a size that is not that of the bits, a bit beyond
// the last one, memory.
Result<BloomFilter> read_raw_bits(std::string_view raw, const FilterParameters& parameters);

}  // namespace encore::filter
