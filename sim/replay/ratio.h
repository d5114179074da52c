// Shares of counts. Pure functions.
#pragma once

#include <cstdint>

namespace encore::sim {

// 0 where there is nothing.
constexpr double ratio_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace encore::sim
