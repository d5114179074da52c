// Converts the outcome in a Cache-Status field (RFC 9211) to one word. Pure.
#pragma once

#include <string>
#include <string_view>

namespace encore::sim {

// The last member counts, which is the cache nearest to the client. The word is "bypass" or
// "method" (fwd), else its detail ("first-request", "revalidated", "stale", ...; but not a hit's
// "disk"), else "collapsed" or "hit", else its fwd. The word "none" stands for an empty field, or
// members without any of these.
std::string cache_outcome(std::string_view field);

}  // namespace encore::sim
