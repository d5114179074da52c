// The identity hash of a number, inline: a call of the library would take as long as the rest of a
// record of a trace.
#pragma once

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): how xxhash is asked for that
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstdint>

#include "filter/hash.h"

namespace encore::filter {

// Returns identify() of the number's eight bytes, the least significant first.
inline Hash128 identify_number(const Seed& seed, std::uint64_t number) noexcept {
  const std::uint64_t little =
      std::endian::native == std::endian::little ? number : std::byteswap(number);
  const XXH128_hash_t hash = XXH3_128bits_withSeed(&little, sizeof little, seed.lo);
  return {hash.low64 ^ seed.hi, hash.high64 + std::rotl(seed.hi, 32)};
}

}  // namespace encore::filter
