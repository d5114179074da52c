// Warmup: how many requests at the beginning of a trace fill the cache and are not counted.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace encore::sim {

struct Warmup {
  std::uint64_t requests = 0;
  double share = 0;  // share of the trace's requests; not 0: instead of the number
};
// --warmup: "1000", or "10%" of the requests. Errors: anything else, 100% and more; the message
// shows it.
Result<Warmup> parse_warmup(std::string_view text);
// The number for a trace of so many requests. Errors: nothing would be left to count.
Result<std::uint64_t> warmup_requests(const Warmup& warmup, std::uint64_t trace_requests);

}  // namespace encore::sim
