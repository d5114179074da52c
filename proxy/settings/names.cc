#include "proxy/settings/names.h"

#include "base/check.h"

namespace encore::server {

net::Address to_address(const config::Endpoint& endpoint) {
  const auto address = net::Address::parse_ip(endpoint.address, endpoint.port);
  ENCORE_CHECK(address.has_value(), "an endpoint has a numeric address");
  return *address;
}

net::Resolver::Options resolver_options(const config::Upstream& upstream) {
  net::Resolver::Options options;
  for (const config::NameserverText& server : upstream.nameservers) {
    options.nameservers.push_back(to_address(*server));
  }
  options.ttl_min = upstream.dns_ttl_min;
  options.ttl_max = upstream.dns_ttl_max;
  options.negative_ttl = upstream.dns_negative_ttl;
  options.cache_entries = upstream.dns_cache_entries;
  options.lookups_max = upstream.dns_lookups;
  options.lookups_per_client_max = upstream.dns_lookups_per_client;
  return options;
}

void count(net::ResolveEvent event, WorkerStats& stats) {
  switch (event) {
    case net::ResolveEvent::kQuestion:
      return stats.dns_questions.add();
    case net::ResolveEvent::kCacheHit:
      return stats.dns_cache_hits.add();
    case net::ResolveEvent::kJoined:
      return stats.dns_joined.add();
    case net::ResolveEvent::kLimited:
      return stats.dns_limited.add();
    case net::ResolveEvent::kFailure:
      return stats.dns_failures.add();
    case net::ResolveEvent::kBegun:
      return stats.dns_lookups.add();
    case net::ResolveEvent::kEnded:
      return stats.dns_lookups.subtract();
  }
}

NameFault name_fault(net::ResolveOutcome outcome) {
  NameFault fault;
  fault.is_own_want =
      outcome == net::ResolveOutcome::kLimit || outcome == net::ResolveOutcome::kNoDescriptors;
  fault.detail = "dns-" + std::string(to_string(outcome));
  if (outcome == net::ResolveOutcome::kTimeout) {
    fault.status = 504;
    fault.outcome = Outcome::kOriginTimeout;
  } else if (outcome == net::ResolveOutcome::kLimit) {
    fault.status = 503;
  }
  return fault;
}

}  // namespace encore::server
