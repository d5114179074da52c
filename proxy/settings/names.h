// Addresses and names: the parts of net::Resolver that the config, the counters and the clients
// see.
#pragma once

#include <string>

#include "config/config.h"
#include "proxy/net/resolver.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/stats.h"

namespace encore::server {

net::Address to_address(const config::Endpoint& endpoint);
net::Resolver::Options resolver_options(const config::Upstream& upstream);

void count(net::ResolveEvent event, WorkerStats& stats);

// The error response if the origin's name has no address.
struct NameFault {
  int status = 502;
  Outcome outcome = Outcome::kOriginUnreachable;
  std::string detail;        // "dns-not-found"
  bool is_own_want = false;  // it is nothing of the origin's: here something has run out
};
NameFault name_fault(net::ResolveOutcome outcome);

}  // namespace encore::server
