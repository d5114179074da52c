#include "proxy/settings/rate_limits.h"

#include <algorithm>
#include <string_view>

#include "proxy/settings/path_readings.h"

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

bool is_for(const std::vector<std::string>& listeners, std::string_view listener) {
  return listeners.empty() || std::ranges::find(listeners, listener) != listeners.end();
}

}  // namespace

RateLimits::RateLimits(const std::vector<config::RateLimit>& limits) {
  for (const config::RateLimit& each : limits) {
    Limit& limit = limits_.emplace_back();
    limit.field = each.field;
    limit.network = {.v4 = each.prefix_v4, .v6 = each.prefix_v6};
    for (const std::string& host : each.hosts) limit.hosts.push_back(plain_host(host));
    limit.paths = normal_globs(each.paths);
    limit.listeners = each.listener;
    limit.buckets = std::make_unique<TokenBuckets>(
        TokenBuckets::Options{.rate = each.rate, .burst = each.burst, .entries = each.entries});
  }
}

bool RateLimits::concern(std::string_view listener) const {
  return std::ranges::any_of(limits_,
                             [&](const Limit& limit) { return is_for(limit.listeners, listener); });
}

std::string RateLimits::counted_for(const Limit& limit, std::string_view listener,
                                    const Named& named, const http::Fields& fields,
                                    const net::Address& client) {
  if (!is_for(limit.listeners, listener)) return {};
  if (!limit.hosts.empty() && !any_glob_matches(limit.hosts, named.host)) return {};
  const auto is_for_path = [&](std::string_view path) {
    return any_glob_matches(limit.paths, path);
  };
  if (!limit.paths.empty() && !any_reading(named.path, named.path_as_sent, is_for_path)) return {};
  return who(limit.field, limit.network, fields, client);
}

Nanoseconds RateLimits::take(std::string_view listener, const Named& named,
                             const http::Fields& fields, const net::Address& client,
                             MonotonicTime now) const {
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const std::string whose = counted_for(limits_[i], listener, named, fields, client);
    if (whose.empty()) continue;
    const Nanoseconds wait = limits_[i].buckets->take(whose, now);
    if (wait.count() == 0) continue;
    // Those before it have counted what does not come about.
    for (std::size_t before = 0; before < i; ++before) {
      const std::string other = counted_for(limits_[before], listener, named, fields, client);
      if (!other.empty()) limits_[before].buckets->give_back(other, now);
    }
    return wait;
  }
  return Nanoseconds(0);
}

}  // namespace encore::server
