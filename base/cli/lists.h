// Lists as people write them on a command line. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace encore {

// "a,b(c,d)", given by the option: commas between parentheses separate nothing. Errors: an empty
// part; the message shows text and option.
Result<std::vector<std::string>> parse_words(std::string_view option, std::string_view text);

}  // namespace encore
