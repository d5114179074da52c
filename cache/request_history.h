// RequestHistory: what an admission policy knows of a key, for who explains its decisions. A value.
#pragma once

#include <cstdint>

#include "filter/split_line.h"

namespace encore::cache {

struct RequestHistory {
  // kSet: exact, as exact-second-hit has it. kFrequency: an estimate, as tinylfu's.
  enum class By : std::uint8_t { kNothing, kFilter, kSet, kFrequency };
  By by = By::kNothing;
  // Requests for the key that it remembers. A filter may take one for another.
  std::uint32_t requests = 0;
  // At which request a key is stored; 0: the policy does not count so.
  std::uint32_t stored_at = 0;
  // For a filter: the generation that has the last of these requests.
  filter::Seen seen = filter::Seen::kNew;
};

}  // namespace encore::cache
