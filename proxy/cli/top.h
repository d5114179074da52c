// The screen of encore top, from the JSON of /api/top. A pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::cli {

// Text of at most `lines_max` lines, which terminals may have: names that peers have sent are
// printable in it. Errors: no JSON of /api/top.
Result<std::string> top_screen(std::string_view json, std::size_t lines_max);

}  // namespace encore::cli
