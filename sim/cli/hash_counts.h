// --hashes of the commands that say what theory knows of filters. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "filter/parameters.h"
#include "sim/cli/command.h"

namespace encore::sim {

// The numbers of hashes in `text` ("7", "1..8", "1,2,4"); eight where none were given for split,
// which has no other. Errors: those of parse_numbers().
Result<std::vector<std::uint64_t>> hash_counts(const Context& context, filter::Layout layout,
                                               const std::string& text);

}  // namespace encore::sim
