#include "filter/set_estimate.h"

#include <algorithm>
#include <cmath>

#include "filter/key_estimate.h"

namespace encore::filter {
Result<SetEstimate> estimate(const BloomFilter& a, const BloomFilter& b) {
  auto work = a.copy();
  if (!work) {
    return std::unexpected(work.error());
  }
  if (auto done = work->merge(b); !done) {
    return std::unexpected(done.error());
  }
  const FilterShape shape = a.parameters().shape();
  const auto keys = [&](const BloomFilter& filter) {
    return keys_from_bits(shape, static_cast<double>(filter.set_bits()));
  };
  SetEstimate sets{.first = keys(a), .second = keys(b), .either = keys(*work)};
  sets.both = std::isfinite(sets.either) ? std::max(0.0, sets.first + sets.second - sets.either)
                                         : std::min(sets.first, sets.second);
  sets.fpr_or = work->fpr_from_bits();
  // (A or B) and A is A, and with B it is what both have.
  for (const BloomFilter* each : {&a, &b}) {
    if (auto done = work->intersect(*each); !done) {
      return std::unexpected(done.error());
    }
  }
  sets.fpr_and = work->fpr_from_bits();
  return sets;
}

}  // namespace encore::filter
