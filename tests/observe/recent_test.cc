// The memory of recent requests, and the heaviest hosts: right, and bounded.
#include "proxy/observe/recent.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "proxy/observe/live.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

WallTime at_second(int seconds) { return WallTime(std::chrono::seconds(seconds)); }

OutcomeReport report_of(const RecentRequests& recent, Outcome outcome) {
  OutcomeReport report;
  recent.add_to(report, outcome);
  finish(report, 20);
  return report;
}

TEST_CASE("an outcome has its reasons and its latest requests, the latest first",
          "[observe][recent]") {
  RecentRequests recent;
  for (int i = 0; i < 40; ++i) {
    const std::string target = "http://a.example/" + std::to_string(i);
    recent.note({.outcome = Outcome::kUncacheable,
                 .reason = i % 4 == 0 ? "private" : "no-store",
                 .method = "GET",
                 .target = target,
                 .status = 200},
                at_second(i));
  }
  const OutcomeReport report = report_of(recent, Outcome::kUncacheable);
  REQUIRE(report.reasons.size() == 2);
  CHECK(report.reasons[0].name == "no-store");
  CHECK(report.reasons[0].count == 30);
  CHECK(report.reasons[1].count == 10);
  REQUIRE(report.latest.size() == RecentRequests::kLatest);
  for (std::size_t i = 0; i < report.latest.size(); ++i) {
    CHECK(report.latest[i].url == "http://a.example/" + std::to_string(39 - i));
  }
  CHECK(report_of(recent, Outcome::kHit).latest.empty());
}

TEST_CASE("a query is shown to nobody unless that is configured", "[observe][recent]") {
  const auto [target, shown] = GENERATE(table<const char*, const char*>({
      {"http://a/b?token=secret", "http://a/b?..."},
      {"/b?token=secret", "host.example/b?..."},
      {"/b", "host.example/b"},
      {"a.example:443", "a.example:443"},
      {"*", "host.example*"},
      {"?secret", "?..."},
      {"", ""},
  }));
  CAPTURE(target);
  RecentRequests recent;
  recent.note({.outcome = Outcome::kBypass, .host = "host.example", .target = target},
              at_second(1));
  CHECK(report_of(recent, Outcome::kBypass).latest.at(0).url == shown);
  recent.note({.outcome = Outcome::kBypass,
               .host = "host.example",
               .target = "/b?token=open",
               .show_query = true},
              at_second(2));
  CHECK(report_of(recent, Outcome::kBypass).latest.at(0).url == "host.example/b?token=open");
}

TEST_CASE("what clients make up takes no memory beyond its bound", "[observe][recent]") {
  RecentRequests recent;
  const std::string huge(100'000, 'x');
  for (int i = 0; i < 5'000; ++i) {
    const std::string reason = "reason-" + std::to_string(i);
    const std::string host = "h" + std::to_string(i) + ".example";
    recent.note({.outcome = Outcome::kFirstRequest,
                 .reason = i % 2 == 0 ? std::string_view(reason) : std::string_view(huge),
                 .method = huge,
                 .host = host,
                 .target = huge,
                 .body_bytes = 1},
                at_second(i));
  }
  const OutcomeReport report = report_of(recent, Outcome::kFirstRequest);
  CHECK(report.reasons.size() <= RecentRequests::kReasons);
  std::uint64_t sum = 0;
  for (const auto& reason : report.reasons) {
    sum += reason.count;
    CHECK(reason.name.size() <= RecentRequests::kReasonBytes);
  }
  CHECK(sum == 5'000);
  CHECK(std::ranges::any_of(report.reasons, [](const auto& r) { return r.name == "other"; }));
  for (const RecentRequest& request : report.latest) {
    CHECK(request.url.size() <= RecentRequests::kUrlBytes);
    CHECK(request.method.size() <= RecentRequests::kReasonBytes);
  }
  HeavyHitters bytes;
  HeavyHitters hits;
  recent.add_hosts(bytes, hits);
  CHECK(bytes.items().size() == HeavyHitters::kNames);
}

TEST_CASE("bytes of peers are no danger to the JSON of an outcome", "[observe][recent]") {
  RecentRequests recent;
  recent.note({.outcome = Outcome::kBadRequest,
               .reason = "\xff\"",
               .method = "\x01\x80",
               .target = "/</script>\xc3"},
              at_second(1));
  const std::string json =
      outcome_json(Outcome::kBadRequest, 1, report_of(recent, Outcome::kBadRequest));
  CHECK(json.find("\xff") == std::string::npos);
  CHECK(json.find("\"requests\":1") != std::string::npos);
}

TEST_CASE("hosts of refused requests are not counted", "[observe][recent]") {
  RecentRequests recent;
  recent.note({.outcome = Outcome::kDenied, .target = "http://made.up/", .body_bytes = 10},
              at_second(1));
  recent.note({.outcome = Outcome::kFirstRequest, .target = "http://real:80/x", .body_bytes = 10},
              at_second(1));
  recent.note({.outcome = Outcome::kHit,
               .target = "http://real:80/x",
               .body_bytes = 10,
               .weight = RecentRequests::kHitSample},
              at_second(1));
  HeavyHitters bytes;
  HeavyHitters hits;
  recent.add_hosts(bytes, hits);
  REQUIRE(bytes.items().size() == 1);
  CHECK(bytes.items()[0].name == "real:80");
  CHECK(bytes.items()[0].weight == 10 + 10 * RecentRequests::kHitSample);
  CHECK(hits.top(1).at(0).weight == RecentRequests::kHitSample);
}

// Distances are uniform on 1 .. 2 kHitSample - 1: of n samples the mean has a standard deviation of
// kHitSample / sqrt(3 n), and 4.5 of them are allowed.
TEST_CASE("one plain hit in kHitSample is looked at", "[observe][recent]") {
  RecentRequests recent;
  constexpr std::uint32_t kHits = 6'400'000;
  std::uint32_t samples = 0;
  std::uint32_t longest = 0;
  std::uint32_t since = 0;
  for (std::uint32_t i = 0; i < kHits; ++i) {
    ++since;
    if (!recent.is_sampled()) continue;
    ++samples;
    longest = std::max(longest, since);
    since = 0;
  }
  const double expected = double{kHits} / RecentRequests::kHitSample;
  CHECK(samples == Approx(expected).margin(4.5 * std::sqrt(expected / 3)));
  CHECK(longest < 2 * RecentRequests::kHitSample);
}

TEST_CASE("the heaviest names are found, and no weight is more wrong than it says",
          "[observe][heavy-hitters]") {
  constexpr std::uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  HeavyHitters sketch;
  HeavyHitters other;
  std::map<std::string, std::uint64_t> exact;
  std::uint64_t total = 0;
  for (int i = 0; i < 100'000; ++i) {
    // Some eight names have half of the weight; there are ten thousand others.
    const bool heavy = random() % 2 == 0;
    const std::string name =
        (heavy ? "heavy-" : "light-") + std::to_string(random() % (heavy ? 8 : 10'000));
    const std::uint64_t weight = 1 + random() % 100;
    (i % 3 == 0 ? other : sketch).add(name, weight);
    exact[name] += weight;
    total += weight;
  }
  sketch.merge(other);
  CHECK(sketch.items().size() == HeavyHitters::kNames);
  for (const HeavyHitters::Item& item : sketch.items()) {
    CAPTURE(item.name, item.weight, item.error);
    CHECK(item.weight >= item.error);
    CHECK(item.weight - item.error <= exact[item.name]);
  }
  const auto top = sketch.top(8);
  REQUIRE(top.size() == 8);
  for (const HeavyHitters::Item& item : top) CHECK(item.name.starts_with("heavy-"));
  CHECK(std::ranges::is_sorted(top, std::ranges::greater(), &HeavyHitters::Item::weight));
  CHECK(total > 0);
}

}  // namespace
}  // namespace encore::server
