// Upstream: the cache that another one asks for what it has not, instead of the origin. Interface.
#pragma once

#include <cstdint>

#include "sim/replay/trace_object.h"

namespace encore::sim {

class Upstream {
 public:
  virtual ~Upstream() = default;
  struct Fetched {
    // It had an earlier request for the object: policies that count requests store it now.
    bool is_hint = false;
    std::uint32_t ttl_seconds = kNoTtl;  // how long the response stays fresh from now on
  };
  virtual Fetched fetch(const ReplayRequest& request) = 0;
};

}  // namespace encore::sim
