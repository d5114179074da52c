// OriginVisit: the result of a request to an origin, as far as the log shows it. A value.
#pragma once

#include <string>

#include "base/time.h"

namespace encore::server {

struct OriginVisit {
  std::string address = {};  // that was connected to, with its port; empty: none, or nobody asks
  std::string server = {};   // from an [[origin]], as in the config; likewise empty
  std::string_view version = {};  // "HTTP/1.1" or "HTTP/2", of a constant; empty: no connection
  // Below 0: no connection was made for it; no head of a response came.
  Nanoseconds connect{-1};
  Nanoseconds answer{-1};

  // For who uses it again: the texts' room is kept.
  void clear() {
    address.clear();
    server.clear();
    version = {};
    connect = answer = Nanoseconds(-1);
  }
};

}  // namespace encore::server
