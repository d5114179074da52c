// Report of one server of an origin, for the pages. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/observe/server_counters.h"

namespace encore::server {

struct ServerReport {
  std::string origin;          // host and path, as they are configured
  std::string server;          // "http://host:port"
  std::string_view standing;   // "up", "aside", "down"
  std::uint32_t requests = 0;  // in progress
  ServerSums sums = {};
  ServerCounters::Failure last_failure = {};
  // True if it and its origin have series of their own in /metrics.
  bool has_series = true;
  bool has_origin_series = true;
};

}  // namespace encore::server
