// OriginWarnings: says on standard error why an origin could not be reached, at most once a second
// a worker: clients learn the kind of failure only, and an origin that is down fails every request.
// Confined to its worker.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace encore::server {

class OriginWarnings {
 public:
  // `origin` is a server of an [[origin]], "https://localhost:8443"; `why` is the failure's text.
  void tell(std::string_view origin, std::string_view why, MonotonicTime now);

 private:
  MonotonicTime last_ = MonotonicTime::min();
  std::uint64_t untold_ = 0;
};

}  // namespace encore::server
