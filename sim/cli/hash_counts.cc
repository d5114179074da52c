#include "sim/cli/hash_counts.h"

#include "sim/cli/commands.h"

namespace encore::sim {

Result<std::vector<std::uint64_t>> hash_counts(const Context& context, filter::Layout layout,
                                               const std::string& text) {
  const bool split = layout == filter::Layout::kSplit && !context.arguments.given("--hashes");
  return parse_numbers("--hashes", split ? "8" : text, {.min = 1, .max = filter::kHashesMax});
}

}  // namespace encore::sim
