// Draws: numbers by chance that are the same in every run, for policies that compare a sample of
// their entries. Knuth's linear congruential generator, of which the upper bits are used.
// Thread-compatible.
#pragma once

#include <cstdint>

#include "filter/hash.h"

namespace encore::cache {

class Draws {
 public:
  // The next one below `bound`.
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return filter::scaled(state_, bound);
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace encore::cache
