#include "cache/disk_parts.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace encore::cache {

Key part_key(const filter::Hash128& object, std::uint64_t body, std::uint64_t part) noexcept {
  std::array<char, 4 * sizeof(std::uint64_t)> bytes{};
  std::size_t at = 0;
  for (const std::uint64_t word : {object.lo, object.hi, body, part}) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes[at++] = static_cast<char>(word >> shift & 0xffU);
    }
  }
  // A seed whose second half is zero masks nothing: this is the published function.
  return {filter::hash_key(filter::HashFamily::kXxh3, {}, {bytes.data(), bytes.size()}), {}};
}

}  // namespace encore::cache
