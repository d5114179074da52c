// Lists as people write them on a command line. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore::sim {

// "7", "1..8", "1,2,4", "1..3,8": whole numbers, at most 4096 of them, in the given order.
// Errors: anything else; the message shows it.
Result<std::vector<std::uint64_t>> parse_numbers(std::string_view text);

// "a,b,c": no part may be empty.
Result<std::vector<std::string>> parse_words(std::string_view text);

}  // namespace encore::sim
