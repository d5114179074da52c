// Rates of the last seconds, and names of the last minutes.
#include "proxy/observe/rate_window.h"

#include <string>

#include "proxy/observe/recent.h"
#include "proxy/observe/recent_hitters.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

WallTime at(int seconds) { return WallTime(std::chrono::seconds(seconds)); }

Snapshot counted(std::uint64_t hits, std::uint64_t misses, std::uint64_t errors) {
  Snapshot snapshot;
  snapshot.requests[static_cast<std::size_t>(Outcome::kHit)] = hits;
  snapshot.requests[static_cast<std::size_t>(Outcome::kFirstRequest)] = misses;
  snapshot.requests[static_cast<std::size_t>(Outcome::kDenied)] = errors;
  snapshot.bytes_to_clients = 1000 * hits;
  snapshot.body_bytes_hit = 300 * hits;
  snapshot.body_bytes_all = 400 * hits;
  return snapshot;
}

TEST_CASE("rates are those of the last ten seconds", "[observe][rates]") {
  RateWindow window;
  CHECK(window.rates().seconds == 0);
  window.note(counted(1'000'000, 0, 0), 1000);
  CHECK(window.rates().seconds == 0);
  for (unsigned i = 1; i <= 20; ++i) {
    window.note(counted(1'000'000 + 30 * i, 10 * i, 5 * i), 1000 + 1000 * i);
  }
  const RecentRates rates = window.rates();
  CHECK(rates.seconds == 10);
  CHECK(rates.requests[0] == 30);
  CHECK(rates.requests[1] == 10);
  CHECK(rates.requests[3] == 5);
  CHECK(rates.object_hit_ratio == 0.75);
  CHECK(rates.byte_hit_ratio == 0.75);
  CHECK(rates.bytes_to_clients == 30'000);
  CHECK_FALSE(rates.hit.has_value());
}

TEST_CASE("where nothing came there is no ratio, and no latency", "[observe][rates]") {
  RateWindow window;
  window.note(counted(7, 3, 1), 1000);
  window.note(counted(7, 3, 1), 2000);
  const RecentRates rates = window.rates();
  CHECK(rates.seconds == 1);
  CHECK_FALSE(rates.object_hit_ratio.has_value());
  CHECK_FALSE(rates.byte_hit_ratio.has_value());
  CHECK_FALSE(rates.miss.has_value());
}

TEST_CASE("latencies are those of the requests in the window", "[observe][rates]") {
  RateWindow window;
  Snapshot before;
  before.latency[0].buckets[20] = 1000;  // slow, before the window
  window.note(before, 1000);
  Snapshot after = before;
  after.latency[0].buckets[0] = 99;
  window.note(after, 2000);
  const auto hit = window.rates().hit;
  REQUIRE(hit.has_value());
  LatencySnapshot fast;
  fast.buckets[0] = 99;
  fast.count = 99;
  CHECK(hit->p99 == fast.quantile(0.99));
}

std::uint64_t weight_of(const RecentHitters& hitters, const char* name, WallTime now) {
  HeavyHitters sum;
  hitters.add_to(sum, now);
  for (const HeavyHitters::Item& item : sum.items()) {
    if (item.name == name) return item.weight;
  }
  return 0;
}

TEST_CASE("names are those of this minute and the one before", "[observe][recent]") {
  RecentHitters hitters;
  hitters.add("a", 5, at(65));
  CHECK(weight_of(hitters, "a", at(65)) == 5);
  hitters.add("b", 1, at(119));
  hitters.add("a", 2, at(120));
  CHECK(weight_of(hitters, "a", at(125)) == 7);
  CHECK(weight_of(hitters, "b", at(179)) == 1);
  // Nobody has added anything since.
  CHECK(weight_of(hitters, "b", at(180)) == 0);
  CHECK(weight_of(hitters, "a", at(180)) == 2);
  CHECK(weight_of(hitters, "a", at(240)) == 0);
  hitters.add("c", 1, at(300));
  CHECK(weight_of(hitters, "a", at(300)) == 0);
  CHECK(RecentHitters::covered(at(300)) == std::chrono::seconds(60));
  CHECK(RecentHitters::covered(at(359)) == std::chrono::seconds(119));
}

TEST_CASE("clients are counted with what they were refused, hosts without", "[observe][recent]") {
  RecentRequests recent;
  const auto note = [&](Outcome outcome, std::uint64_t bytes, std::uint32_t weight) {
    recent.note({.outcome = outcome,
                 .target = "http://a.example/",
                 .client = "10.0.0.7",
                 .body_bytes = bytes,
                 .weight = weight},
                at(60));
  };
  note(Outcome::kHit, 100, RecentRequests::kHitSample);
  note(Outcome::kFirstRequest, 50, 1);
  note(Outcome::kDenied, 7, 1);
  TopNames<HeavyHitters> top;
  recent.add_top(top, at(61));
  REQUIRE(top.client_requests.items().size() == 1);
  CHECK(top.client_requests.items()[0].name == "10.0.0.7");
  CHECK(top.client_requests.items()[0].weight == RecentRequests::kHitSample + 2);
  CHECK(top.client_bytes.items()[0].weight == 100 * RecentRequests::kHitSample + 57);
  REQUIRE(top.host_requests.items().size() == 1);
  CHECK(top.host_requests.items()[0].weight == RecentRequests::kHitSample + 1);
  CHECK(top.host_bytes.items()[0].weight == 100 * RecentRequests::kHitSample + 50);
}

TEST_CASE("many clients do not push a heavy one out", "[observe][recent]") {
  RecentHitters hitters;
  for (int i = 0; i < 100'000; ++i) {
    hitters.add("10.0." + std::to_string(i / 250 % 250) + "." + std::to_string(i % 250), 1, at(60));
    if (i % 20 == 0) hitters.add("192.0.2.1", 1, at(60));
  }
  CHECK(weight_of(hitters, "192.0.2.1", at(60)) >= 5000);
}

}  // namespace
}  // namespace encore::server
