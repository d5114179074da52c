// Saved filters as a stranger sends them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "filter/parameters.h"
#include "filter/saved_filter.h"
#include "tests/catch.h"

namespace encore::filter::testing {

// With the checksum made right again, so that what lies behind it is reached.
inline std::string resealed(std::string bytes) {
  const std::uint64_t checksum = saved_checksum(bytes);
  std::memcpy(bytes.data() + bytes.size() - 8, &checksum, 8);
  return bytes;
}

inline std::string with_number(std::string bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

// Places in the saved form: of the header, and of the first generation behind it.
inline constexpr std::size_t kHashesAt = 72 + 4;
inline constexpr std::size_t kBitsAt = 72 + 8;
inline constexpr std::size_t kInsertionsAt = 72 + 40;
inline constexpr std::size_t kSetBitsAt = 72 + 48;
inline constexpr std::size_t kLinesAt = 72 + 56;  // for a single generation

// Bytes that every loader must refuse, and with a reason: a form that is cut short anywhere, is
// longer than it should be, has a flipped bit or wrong sizes. `load` returns a Result.
template <typename Load>
void refuses_hostile_bytes(const std::string& good, Load load) {
  REQUIRE(load(good));
  const auto refused = [&](const std::string& bytes) {
    const auto loaded = load(bytes);
    return !loaded && loaded.error().message.starts_with("saved filter refused: ");
  };
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string cut = good.substr(0, size);
    REQUIRE(refused(cut));
    if (size >= 8) REQUIRE(refused(resealed(cut)));
  }
  REQUIRE(refused(resealed(good + std::string(64, '\0'))));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ (1U << (at % 8)));
    REQUIRE(refused(flipped));
  }
  for (const std::uint64_t bits :
       {std::uint64_t{0}, kBitsMax, kBitsMax + 512, std::uint64_t{1} << 61U,
        std::uint64_t{1} << 62U, std::uint64_t{1} << 63U, UINT64_MAX}) {
    CAPTURE(bits);
    CHECK(refused(resealed(with_number(good, kBitsAt, bits))));
  }
  CHECK(refused(resealed(with_number(good, kSetBitsAt, UINT64_MAX))));
  CHECK(refused(resealed(with_number(good, kInsertionsAt, UINT64_MAX))));
}

}  // namespace encore::filter::testing
