#include "proxy/observe/pages.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Json = nlohmann::json;

// A snapshot in which no two counters are equal.
Snapshot distinct() {
  Snapshot snapshot;
  std::uint64_t next = 1'000;
  for (auto& requests : snapshot.requests) requests = next++;
#define ENCORE_SET(member, name, help) snapshot.member = next++;
  ENCORE_COUNTERS(ENCORE_SET)
  ENCORE_GAUGES(ENCORE_SET)
#undef ENCORE_SET
  return snapshot;
}

TEST_CASE("each counter has its value on both pages", "[observe][pages]") {
  const Snapshot snapshot = distinct();
  const std::string metrics = metrics_text(snapshot, {});
  const Json stats = Json::parse(stats_json(snapshot, {}));
#define ENCORE_LOOK(member, name, help)                                                   \
  CHECK(metrics.contains("\nencore_" name " " + std::to_string(snapshot.member) + "\n")); \
  CHECK(stats["counters"][#member] == snapshot.member);
  ENCORE_COUNTERS(ENCORE_LOOK)
  ENCORE_GAUGES(ENCORE_LOOK)
#undef ENCORE_LOOK
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    const std::string name(kOutcomeNames[i]);
    CHECK(metrics.contains("encore_requests_total{outcome=\"" + name + "\"} " +
                           std::to_string(snapshot.requests[i]) + "\n"));
    CHECK(stats["requests"][name] == snapshot.requests[i]);
  }
}

TEST_CASE("what is known of the process is on both pages", "[observe][pages]") {
  const ProcessStatus process{
      .uptime = std::chrono::milliseconds(1500), .workers = 3, .reloads = 5, .reload_failures = 7};
  const std::string metrics = metrics_text({}, process);
  CHECK(metrics.contains("\nencore_reloads_total 5\n"));
  CHECK(metrics.contains("\nencore_reload_failures_total 7\n"));
  const Json stats = Json::parse(stats_json({}, process));
  CHECK(stats["uptime_seconds"] == 1.5);
  CHECK(stats["workers"] == 3);
  CHECK(stats["reloads"] == 5);
  CHECK(stats["reload_failures"] == 7);
}

TEST_CASE("each family of the metrics is introduced once, before its samples", "[observe][pages]") {
  std::istringstream lines(metrics_text(distinct(), {}));
  std::set<std::string> introduced;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, name;
    words >> first >> second >> name;
    if (first == "#" && second == "HELP") {
      CHECK(introduced.insert(name).second);
      family = name;
    } else if (first == "#") {
      CHECK(name == family);
    } else {
      CAPTURE(line);
      CHECK(first.starts_with(family));
    }
  }
  CHECK(introduced.size() > 50);
}

TEST_CASE("a quantile of what was measured is the bound of the bucket in which it lies",
          "[observe][snapshot]") {
  LatencySnapshot latency;
  CHECK(latency.quantile(0.5) == 0);
  latency.buckets[3] = 90;
  latency.buckets[7] = 10;
  latency.count = 100;
  CHECK(latency.quantile(0.5) == latency_bucket_bound(3));
  CHECK(latency.quantile(0.9) == latency_bucket_bound(3));
  CHECK(latency.quantile(0.91) == latency_bucket_bound(7));
}

TEST_CASE("a snapshot is the sum of what the workers have counted", "[observe][snapshot]") {
  WorkerStats first, second;
  first.requests[0].add(2);
  second.requests[0].add(3);
  first.stored.add();
  second.latency[1].record(std::chrono::milliseconds(1));
  Snapshot sum;
  sum.add(first);
  sum.add(second);
  CHECK(sum.requests[0] == 5);
  CHECK(sum.stored == 1);
  CHECK(sum.latency[1].count == 1);
  CHECK(sum.latency[1].sum_seconds == 0.001);
  CHECK(sum.requests_of(kOutcomeClasses[0]) == 5);
}

}  // namespace
}  // namespace encore::server
