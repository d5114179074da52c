// Draws: numbers by chance that are the same in every run, for policies that compare a sample of
// their entries. Knuth's linear congruential generator, of which the upper bits are used.
// Thread-compatible.
#pragma once

#include <cstdint>

#include "filter/hash.h"

namespace encore::cache {

class Draws {
 public:
  explicit Draws(std::uint64_t seed = 1) : state_(seed) {}

  // The next one below `bound`.
  std::uint64_t below(std::uint64_t bound) { return filter::scaled(next(), bound); }
  // The next one in [0, 1).
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_;
  }
  std::uint64_t state_;
};

}  // namespace encore::cache
