// Tunnels that are refused, and the status, outcome and detail of each.
#pragma once

#include <array>

#include "config/config.h"
#include "proxy/observe/outcome.h"

namespace encore::server {

struct RefusedTunnel {
  int port_off;  // from the origin's
  config::PrivateDestinations destinations;
  bool listens;
  int status;
  Outcome outcome;
  const char* detail;
};

inline constexpr std::array<RefusedTunnel, 3> kRefusedTunnels = {{
    {1, config::PrivateDestinations::kAlways, true, 403, Outcome::kDenied, "connect-port"},
    {0, config::PrivateDestinations::kNever, true, 403, Outcome::kDenied, "private-destination"},
    {0, config::PrivateDestinations::kAlways, false, 502, Outcome::kOriginUnreachable,
     "connect-refused"},
}};

}  // namespace encore::server
