// What is known of one server of an origin, as the pages show it. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace encore::server {

struct ServerReport {
  std::string origin;          // host and path, as they are configured
  std::string server;          // "http://host:port"
  std::string_view standing;   // "up", "aside", "down"
  std::uint32_t requests = 0;  // under way
};

}  // namespace encore::server
