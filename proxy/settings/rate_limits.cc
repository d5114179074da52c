#include "proxy/settings/rate_limits.h"

#include <string_view>

namespace encore::server {
namespace {

// Whose requests are counted together; empty: nobody's.
std::string who(const std::string& field, net::Address::NetworkBits network,
                const http::Fields& fields, const net::Address& client) {
  if (field.empty()) {
    const auto bytes = client.network_bytes(network);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string value;
  for (const http::Field& line : fields) {
    if (!http::equals_lower(line.name, field)) continue;
    value += line.value;
    value += '\n';
  }
  return value;
}

}  // namespace

RateLimits::RateLimits(const std::vector<config::RateLimit>& limits) {
  for (const config::RateLimit& each : limits) {
    Limit& limit = limits_.emplace_back();
    limit.field = each.field;
    limit.network = {.v4 = each.prefix_v4, .v6 = each.prefix_v6};
    for (const std::string& host : each.hosts) limit.hosts.push_back(plain_host(host));
    limit.paths = each.paths;
    limit.buckets = std::make_unique<TokenBuckets>(
        TokenBuckets::Options{.rate = each.rate, .burst = each.burst, .entries = each.entries});
  }
}

Nanoseconds RateLimits::take(const Named& named, const http::Fields& fields,
                             const net::Address& client, MonotonicTime now) const {
  for (const Limit& limit : limits_) {
    if (!limit.hosts.empty() && !any_glob_matches(limit.hosts, named.host)) continue;
    if (!limit.paths.empty() && !any_glob_matches(limit.paths, named.path)) continue;
    const std::string whose = who(limit.field, limit.network, fields, client);
    if (whose.empty()) continue;
    const Nanoseconds wait = limit.buckets->take(whose, now);
    if (wait.count() != 0) return wait;
  }
  return Nanoseconds(0);
}

}  // namespace encore::server
