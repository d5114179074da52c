#include "proxy/settings/rate_limits.h"

#include <algorithm>
#include <string_view>

#include "proxy/settings/path_readings.h"

namespace encore::server {
namespace {

// The names that a request is counted under; none: it is not counted. Each line of a field is a
// name of its own: with all lines in one name, a second line would make a known client another one,
// and an origin that reads the first line alone would not notice. Why several lines are not
// refused: docs/decisions/0416.
std::vector<std::string> who(const std::string& field, net::Address::NetworkBits network,
                             const http::Fields& fields, const net::Address& client) {
  std::vector<std::string> names;
  if (field.empty()) {
    const auto bytes = client.network_bytes(network);
    names.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return names;
  }
  for (const http::Field& line : fields) {
    if (http::equals_lower(line.name, field)) names.emplace_back(line.value);
  }
  // A line that is repeated is one client still.
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
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

struct RateLimits::Asked {
  std::string_view listener;
  const Named& named;
  const http::Fields& fields;
  const net::Address& client;
  AnyReading reading{named.path, named.path_as_sent};
};

std::vector<std::string> RateLimits::counted_for(const Limit& limit, Asked& asked) {
  if (!is_for(limit.listeners, asked.listener)) return {};
  if (!limit.hosts.empty() && !any_glob_matches(limit.hosts, asked.named.host)) return {};
  const auto is_for_path = [&](std::string_view path) {
    return any_glob_matches(limit.paths, path);
  };
  if (!limit.paths.empty() && !asked.reading.is(is_for_path)) return {};
  return who(limit.field, limit.network, asked.fields, asked.client);
}

void RateLimits::give_back(const Limit& limit, std::span<const std::string> names,
                           MonotonicTime now) {
  for (const std::string& name : names) limit.buckets->give_back(name, now);
}

Nanoseconds RateLimits::take(std::string_view listener, const Named& named,
                             const http::Fields& fields, const net::Address& client,
                             MonotonicTime now) const {
  Asked asked{.listener = listener, .named = named, .fields = fields, .client = client};
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const auto names = counted_for(limits_[i], asked);
    for (std::size_t at = 0; at < names.size(); ++at) {
      const Nanoseconds wait = limits_[i].buckets->take(names[at], now);
      if (wait.count() == 0) continue;
      // Those before it have counted what does not come about.
      give_back(limits_[i], std::span(names).first(at), now);
      for (std::size_t before = 0; before < i; ++before) {
        const Limit& limit = limits_[before];
        give_back(limit, counted_for(limit, asked), now);
      }
      return wait;
    }
  }
  return Nanoseconds(0);
}

}  // namespace encore::server
