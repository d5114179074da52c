// Filters that the proxy publishes of its cache: requested in between where there is one who can
// judge it. The fuzzer, which shares nothing with the proxy, has none; the simulation has.
#pragma once

#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/random.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

class Published {
 public:
  virtual ~Published() = default;
  // True if one of so many requests is for what is published.
  virtual bool is_due(Random& random) = 0;
  // Sets what is asked for: own_path, method and fields.
  virtual void compose(Random& random, Request& request) = 0;
  // A whole answer; with what came of the body in `kept`.
  virtual void judge(const Request& request, const Answer& answer) = 0;
};

}  // namespace encore::proxyfuzz
