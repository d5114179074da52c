#include "filter/published/raw_bits.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "filter/key_estimate.h"

namespace encore::filter {

Result<BloomFilter> read_raw_bits(std::string_view raw, const FilterParameters& parameters) {
  std::uint64_t set_bits = 0;
  for (const char byte : raw) {
    set_bits += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned char>(byte)));
  }
  // As many as there can be where every bit is set, or most.
  std::uint64_t insertions = set_bits;
  if (set_bits < parameters.bits && parameters.hashes != 0) {
    const double keys = keys_from_bits(parameters.shape(), static_cast<double>(set_bits));
    if (keys < static_cast<double>(set_bits)) {
      insertions = static_cast<std::uint64_t>(std::llround(keys));
    }
  }
  return BloomFilter::from_raw_bits(parameters, raw, insertions);
}

}  // namespace encore::filter
