// Advice about filters whose size or number of hashes does not fit their keys: what is wrong, and
// the size to take. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "filter/any_filter.h"

namespace encore::filter {

// Too many keys: the rate is a tenth above that at the capacity. `keys_read`, if known, is the
// number of lines that a saturated filter, which has no estimate, was made of.
std::optional<std::string> overfull_advice(const AnyFilterInfo& info,
                                           std::optional<std::uint64_t> keys_read = {});

// A plain or counting filter of eight or more times the bits that its keys need at the same rate;
// none for an empty filter and the fixed size of bloomnames.
std::optional<std::string> oversized_advice(const AnyFilterInfo& info);

// A number of hashes with twice the rate of the best one, or more, for `keys` keys. None below a
// rate of 0.1 %, for hashes that allow one number only, and in layouts of lines.
std::optional<std::string> hashes_advice(const AnyFilterInfo& info, std::uint64_t keys);

// All of them. `capacity_given`: the capacity is a plan, and not the point where half of the bits
// are set.
struct AdviceSource {
  bool capacity_given = false;
  std::optional<std::uint64_t> keys_read;
};
std::vector<std::string> advice_for(const AnyFilterInfo& info, const AdviceSource& source);

}  // namespace encore::filter
