#include "proxy/settings/names.h"

#include <chrono>

#include "tests/catch.h"

namespace encore::server {
namespace {

using net::ResolveEvent;
using net::ResolveOutcome;

TEST_CASE("what the config says of names is what the resolver is told", "[server][names]") {
  config::Upstream upstream;
  upstream.nameservers = {"10.0.0.53", "[2001:db8::53]:5353"};
  upstream.dns_ttl_min = std::chrono::seconds(1);
  upstream.dns_ttl_max = std::chrono::seconds(2);
  upstream.dns_negative_ttl = std::chrono::seconds(3);
  upstream.dns_cache_entries = 4;
  upstream.dns_lookups = 5;
  upstream.dns_lookups_per_client = 6;
  const net::Resolver::Options options = resolver_options(upstream);
  REQUIRE(options.nameservers.size() == 2);
  CHECK(options.nameservers[0].to_string() == "10.0.0.53:53");
  CHECK(options.nameservers[1].to_string() == "[2001:db8::53]:5353");
  CHECK(options.ttl_min == std::chrono::seconds(1));
  CHECK(options.ttl_max == std::chrono::seconds(2));
  CHECK(options.negative_ttl == std::chrono::seconds(3));
  CHECK(options.cache_entries == 4);
  CHECK(options.lookups_max == 5);
  CHECK(options.lookups_per_client_max == 6);
}

TEST_CASE("without name servers of its own the resolver takes the system's", "[server][names]") {
  CHECK(resolver_options(config::Upstream{}).nameservers.empty());
}

TEST_CASE("each event of the resolver is counted by itself", "[server][names]") {
  struct Row {
    ResolveEvent event;
    std::uint64_t questions, hits, joined, limited, failures, under_way;
  };
  constexpr Row kTable[] = {
      {ResolveEvent::kQuestion, 1, 0, 0, 0, 0, 0}, {ResolveEvent::kCacheHit, 0, 1, 0, 0, 0, 0},
      {ResolveEvent::kJoined, 0, 0, 1, 0, 0, 0},   {ResolveEvent::kLimited, 0, 0, 0, 1, 0, 0},
      {ResolveEvent::kFailure, 0, 0, 0, 0, 1, 0},  {ResolveEvent::kBegun, 0, 0, 0, 0, 0, 1},
  };
  for (const Row& row : kTable) {
    CAPTURE(row.event);
    WorkerStats stats;
    count(row.event, stats);
    CHECK(stats.dns_questions.get() == row.questions);
    CHECK(stats.dns_cache_hits.get() == row.hits);
    CHECK(stats.dns_joined.get() == row.joined);
    CHECK(stats.dns_limited.get() == row.limited);
    CHECK(stats.dns_failures.get() == row.failures);
    CHECK(stats.dns_lookups.get() == row.under_way);
  }
  WorkerStats stats;
  count(ResolveEvent::kBegun, stats);
  count(ResolveEvent::kBegun, stats);
  count(ResolveEvent::kEnded, stats);
  CHECK(stats.dns_lookups.get() == 1);
}

TEST_CASE("a client learns why a name has no address, and whose fault that is", "[server][names]") {
  struct Row {
    ResolveOutcome outcome;
    int status;
    Outcome logged;
    std::string_view detail;
    bool is_own_want;
  };
  constexpr Row kTable[] = {
      {ResolveOutcome::kNotFound, 502, Outcome::kOriginUnreachable, "dns-not-found", false},
      {ResolveOutcome::kTimeout, 504, Outcome::kOriginTimeout, "dns-timeout", false},
      {ResolveOutcome::kRefused, 502, Outcome::kOriginUnreachable, "dns-refused", false},
      {ResolveOutcome::kBadName, 502, Outcome::kOriginUnreachable, "dns-bad-name", false},
      {ResolveOutcome::kLimit, 503, Outcome::kOriginUnreachable, "dns-limit", true},
      {ResolveOutcome::kNoDescriptors, 502, Outcome::kOriginUnreachable, "dns-no-descriptors",
       true},
  };
  for (const Row& row : kTable) {
    CAPTURE(row.detail);
    const NameFault fault = name_fault(row.outcome);
    CHECK(fault.status == row.status);
    CHECK(fault.outcome == row.logged);
    CHECK(fault.detail == row.detail);
    CHECK(fault.is_own_want == row.is_own_want);
  }
}

}  // namespace
}  // namespace encore::server
