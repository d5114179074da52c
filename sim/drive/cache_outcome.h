// What a Cache-Status field (RFC 9211) says became of a request, in one word. Pure.
#pragma once

#include <string>
#include <string_view>

namespace encore::sim {

// Of the last member, which is the cache nearest to the client: "bypass" and "method" (fwd), else
// its detail ("first-request", "revalidated", "stale", ...; a hit's "disk" is none), else
// "collapsed" or "hit", else its fwd. "none" where the field is empty or no member says anything.
std::string cache_outcome(std::string_view field);

}  // namespace encore::sim
