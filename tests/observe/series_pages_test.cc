// The pages' data about listeners, rules, errors and servers.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "proxy/observe/pages.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// Samples of the metrics, by name and labels; no sample comes twice.
std::map<std::string, double> samples_of(const Snapshot& snapshot) {
  std::map<std::string, double> samples;
  std::istringstream lines(metrics_text(snapshot, {}));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const auto space = line.rfind(' ');
    CAPTURE(line);
    CHECK(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second);
  }
  return samples;
}

ServerReport server(std::string origin, std::string url, std::string_view standing,
                    std::uint64_t sent) {
  ServerReport report{.origin = std::move(origin), .server = std::move(url), .standing = standing};
  report.requests = 1;
  report.sums.sent = sent;
  report.sums.failures[static_cast<std::size_t>(ServerFailure::kClosed)] = sent + 1;
  report.sums.answer_times[3] = 2;
  report.sums.answer_times[5] = 1;
  report.sums.answer_microseconds = 30'000;
  return report;
}

TEST_CASE("listeners, rules and errors are on both pages by their names",
          "[observe][pages][series]") {
  Snapshot snapshot;
  snapshot.series.listeners.push_back({.name = "unix:/a\"b",
                                       .requests = {1, 2, 3, 4},
                                       .sent_bytes = 5,
                                       .received_bytes = 6,
                                       .accepted = 7,
                                       .open = 8});
  snapshot.series.rules.push_back({.name = "r", .requests = {9, 10, 11, 12}, .responses = 13});
  snapshot.series.errors.push_back({.outcome = "denied", .detail = "d", .count = 14});
  snapshot.series.clipped = {
      .listeners = 15, .origins = 16, .servers = 17, .rules = 18, .errors = 19};
  auto samples = samples_of(snapshot);
  const std::string listener = "{listener=\"unix:/a\\\"b\"";
  CHECK(samples.at("encore_listener_requests_total" + listener + ",class=\"pass\"}") == 3);
  CHECK(samples.at("encore_listener_sent_bytes_total" + listener + "}") == 5);
  CHECK(samples.at("encore_listener_received_bytes_total" + listener + "}") == 6);
  CHECK(samples.at("encore_listener_accepted_connections_total" + listener + "}") == 7);
  CHECK(samples.at("encore_listener_connections" + listener + "}") == 8);
  CHECK(samples.at("encore_rule_requests_total{rule=\"r\",class=\"error\"}") == 12);
  CHECK(samples.at("encore_rule_responses_total{rule=\"r\"}") == 13);
  CHECK(samples.at("encore_errors_total{outcome=\"denied\",detail=\"d\"}") == 14);
  CHECK(samples.at("encore_metrics_series_clipped{kind=\"listener\"}") == 15);
  CHECK(samples.at("encore_metrics_series_clipped{kind=\"error\"}") == 19);
  const auto json = nlohmann::json::parse(stats_json(snapshot, {}))["series"];
  CHECK(json["listeners"][0]["requests"]["miss"] == 2);
  CHECK(json["rules"][0]["requests"]["hit"] == 9);
  CHECK(json["errors"][0]["detail"] == "d");
}

TEST_CASE("servers are shown by origin, those without series together",
          "[observe][pages][series]") {
  Snapshot snapshot;
  snapshot.servers = {server("*/", "http://a:1", "up", 10), server("*/", "http://b:1", "aside", 20),
                      server("*/", "http://b:1", "aside", 20),
                      server("x/", "http://c:1", "down", 30), server("x/", "http://d:1", "up", 40)};
  snapshot.servers[3].has_series = snapshot.servers[4].has_series = false;
  snapshot.servers[3].has_origin_series = snapshot.servers[4].has_origin_series = false;
  snapshot.series.other_servers.sent = 70;
  auto samples = samples_of(snapshot);
  const auto of = [&](const std::string& name, const std::string& labels) {
    CAPTURE(name, labels);
    REQUIRE(samples.contains("encore_" + name + "{" + labels + "}"));
    return samples.at("encore_" + name + "{" + labels + "}");
  };
  const std::string a = "origin=\"*/\",server=\"http://a:1\"";
  const std::string b = "origin=\"*/\",server=\"http://b:1\"";
  const std::string other = "origin=\"other\",server=\"other\"";
  CHECK(of("origin_server_sent_requests_total", a) == 10);
  CHECK(of("origin_server_sent_requests_total", b) == 20);
  CHECK(of("origin_server_sent_requests_total", other) == 70);
  CHECK(of("origin_server_up", a) == 1);
  CHECK(of("origin_server_up", b) == 0);
  CHECK(of("origin_server_down", b) == 0);
  CHECK(of("origin_server_up", other) == 1);
  CHECK(of("origin_server_down", other) == 1);
  CHECK(of("origin_server_requests", b) == 2);
  CHECK(of("origin_server_failures_total", a + ",kind=\"closed\"") == 11);
  CHECK(of("origin_server_failures_total", a + ",kind=\"tls\"") == 0);
  CHECK(of("origin_server_answer_seconds_bucket", a + ",le=\"0.0025\"") == 0);
  CHECK(of("origin_server_answer_seconds_bucket", a + ",le=\"0.005\"") == 2);
  CHECK(of("origin_server_answer_seconds_bucket", a + ",le=\"+Inf\"") == 3);
  CHECK(of("origin_server_answer_seconds_count", a) == 3);
  CHECK(of("origin_server_answer_seconds_sum", a) == 0.03);
  CHECK(of("origin_servers", "origin=\"*/\",state=\"up\"") == 1);
  CHECK(of("origin_servers", "origin=\"*/\",state=\"aside\"") == 2);
  CHECK(of("origin_servers", "origin=\"other\",state=\"down\"") == 1);
}

TEST_CASE("times and sizes are histograms whose buckets add up", "[observe][pages][series]") {
  WorkerStats stats;
  stats.latency[0].record(std::chrono::microseconds(30));
  stats.latency[3].record(std::chrono::seconds(100));
  for (const std::uint64_t bytes : {0U, 64U, 65U, 5000U}) stats.sizes[1].record(bytes);
  Snapshot snapshot;
  snapshot.add(stats);
  auto samples = samples_of(snapshot);
  const std::string times = "encore_request_duration_seconds_";
  CHECK(samples.at(times + "bucket{class=\"hit\",le=\"1.6e-05\"}") == 0);
  CHECK(samples.at(times + "bucket{class=\"hit\",le=\"3.2e-05\"}") == 1);
  CHECK(samples.at(times + "bucket{class=\"error\",le=\"+Inf\"}") == 1);
  CHECK(samples.at(times + "bucket{class=\"error\",le=\"33.554432\"}") == 0);
  CHECK(samples.at(times + "count{class=\"error\"}") == 1);
  const std::string sizes = "encore_response_body_bytes_";
  CHECK(samples.at(sizes + "bucket{class=\"miss\",le=\"64\"}") == 2);
  CHECK(samples.at(sizes + "bucket{class=\"miss\",le=\"256\"}") == 3);
  CHECK(samples.at(sizes + "bucket{class=\"miss\",le=\"16384\"}") == 4);
  CHECK(samples.at(sizes + "bucket{class=\"miss\",le=\"+Inf\"}") == 4);
  CHECK(samples.at(sizes + "sum{class=\"miss\"}") == 5129);
  CHECK(samples.at("encore_body_bytes_total") == 5129);
  CHECK(samples.at("encore_hit_body_bytes_total") == 0);
}

TEST_CASE("readiness and limits are in the metrics", "[observe][pages][series]") {
  ProcessStatus process{.ready = true};
  process.limits = {{.name = "client connections", .current = 3, .limit = 10},
                    {.name = "connections to origins", .current = 3}};
  const std::string metrics = metrics_text({}, process);
  CHECK(metrics.contains("\nencore_ready 1\n"));
  CHECK(metrics.contains("\nencore_limit_used{limit=\"client-connections\"} 3\n"));
  CHECK(metrics.contains("\nencore_limit_max{limit=\"client-connections\"} 10\n"));
  CHECK_FALSE(metrics.contains("connections-to-origins"));
}

}  // namespace
}  // namespace encore::server
