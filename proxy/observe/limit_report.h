// A bound, and how near it the process is. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace encore::server {

struct LimitReport {
  std::string_view name;
  bool is_bytes = false;
  std::uint64_t current = 0;
  std::uint64_t peak = 0;                     // highest value seen by the check once a second
  std::uint64_t limit = 0;                    // 0: none
  std::optional<std::uint64_t> refused = {};  // nothing: refusing is not what it does
};

}  // namespace encore::server
