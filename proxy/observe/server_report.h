// What is known of one server of an origin, as the pages show it. A value.
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
  std::uint32_t requests = 0;  // under way
#define ENCORE_MEMBER(member, meaning) std::uint64_t member = 0;
  ENCORE_SERVER_COUNTERS(ENCORE_MEMBER)
#undef ENCORE_MEMBER
  ServerCounters::Failure last_failure = {};
};

}  // namespace encore::server
