#include "proxy/observe/pages.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "proxy/observe/disk_metrics.h"
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
  cache::DiskStatistics& disk = snapshot.kernel.disk;
#define ENCORE_SET(member, help) disk.counters.member = next++;
  ENCORE_DISK_COUNTERS(ENCORE_SET)
#undef ENCORE_SET
  for (auto& count : disk.counters.outcomes) count = next++;
  for (auto& count : disk.counters.losses) count = next++;
  for (auto& count : disk.counters.part_outcomes) count = next++;
  for (auto& count : disk.counters.part_losses) count = next++;
  disk.entries = next++;
  disk.parts = next++;
  disk.index_bytes = next++;
  for (const bool second : {false, true}) {
    disk.disks.push_back({.segments = static_cast<std::uint32_t>(next++),
                          .free_segments = static_cast<std::uint32_t>(next++),
                          .segment_bytes = next++,
                          .objects = next++,
                          .parts = next++,
                          .live_bytes = next++,
                          .admitted_bytes = next++,
                          .moved_bytes = 3 * next++,
                          .offline = second,
                          .loading = !second});
    disk::DiskReport& device = snapshot.devices.emplace_back();
    device.path = second ? "/b" : "/a \"quoted\\";
    device.condition =
        second ? disk::DiskCondition::kWritesPaused : disk::DiskCondition::kInService;
    for (auto* const figure :
         {&device.admit_bytes, &device.move_bytes, &device.format_bytes, &device.reads,
          &device.read_bytes, &device.read_errors, &device.write_errors, &device.write_pauses,
          &device.failed_records, &device.damaged_records, &device.waiting_bytes,
          &device.purge_log_entries, &device.purge_log_overflows}) {
      *figure = next++;
    }
    device.segments = static_cast<std::uint32_t>(next++);
    device.segments_loaded = static_cast<std::uint32_t>(next++);
  }
  return snapshot;
}

// Samples of the metrics, by name and labels.
std::map<std::string, double> samples_of(const std::string& metrics) {
  std::map<std::string, double> samples;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.rfind(' ');
    if (!line.starts_with('#')) samples[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return samples;
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

TEST_CASE("what is decrypted is on both pages, and on none where nothing is",
          "[observe][pages][intercept]") {
  Snapshot snapshot;
  CHECK_FALSE(metrics_text(snapshot, {}).contains("intercept_authority"));
  CHECK_FALSE(Json::parse(stats_json(snapshot, {})).contains("intercept"));
  snapshot.intercept = InterceptReport{.authority = "AB:CD",
                                       .hosts = {"a.example"},
                                       .authority_ends = 2'000'000'000,
                                       .certificates_made = 7,
                                       .certificates_kept = 5,
                                       .rejected = 3,
                                       .newest = {{"10.0.0.1", "a.example", 4, 60}}};
  const std::string metrics = metrics_text(snapshot, {});
  CHECK(metrics.contains("\nencore_intercept_authority_expiry_seconds 2000000000\n"));
  CHECK(metrics.contains("\nencore_intercept_certificates_made_total 7\n"));
  CHECK(metrics.contains("\nencore_intercept_certificates 5\n"));
  CHECK(metrics.contains("\nencore_intercept_rejected_pairs 3\n"));
  const Json stats = Json::parse(stats_json(snapshot, {}))["intercept"];
  CHECK(stats["authority"] == "AB:CD");
  CHECK(stats["hosts"] == Json::array({"a.example"}));
  CHECK(stats["rejected_newest"][0]["client"] == "10.0.0.1");
  CHECK(stats["rejected_newest"][0]["refusals"] == 4);
  CHECK(stats["rejected_newest"][0]["seconds_left"] == 60);
}

TEST_CASE("what is known of the disks is on both pages", "[observe][pages][disk]") {
  const Snapshot snapshot = distinct();
  const cache::DiskStatistics& disk = snapshot.kernel.disk;
  const Json stats = Json::parse(stats_json(snapshot, {}))["disk"];
  const std::map<std::string, double> samples = samples_of(metrics_text(snapshot, {}));
  const auto has = [&](const std::string& name, auto value) {
    const auto found = samples.find("encore_" + name);
    CAPTURE(name);
    REQUIRE(found != samples.end());
    CHECK(found->second == static_cast<double>(value));
  };
#define ENCORE_LOOK(member, help)                                          \
  has(std::string(#member) == "storable_bytes" ? "storable_bytes_total"    \
                                               : "disk_" #member "_total", \
      disk.counters.member);                                               \
  CHECK(stats[#member] == disk.counters.member);
  ENCORE_DISK_COUNTERS(ENCORE_LOOK)
#undef ENCORE_LOOK
  for (std::size_t i = 0; i < cache::kDiskOutcomeCount; ++i) {
    const std::string name(cache::kDiskOutcomeNames[i]);
    has("disk_outcomes_total{outcome=\"" + name + "\"}", disk.counters.outcomes[i]);
    has("disk_part_outcomes_total{outcome=\"" + name + "\"}", disk.counters.part_outcomes[i]);
    CHECK(stats["outcomes"][name] == disk.counters.outcomes[i]);
    CHECK(stats["part_outcomes"][name] == disk.counters.part_outcomes[i]);
  }
  for (std::size_t i = 0; i < cache::kDiskLossCount; ++i) {
    const std::string name(cache::kDiskLossNames[i]);
    has("disk_losses_total{reason=\"" + name + "\"}", disk.counters.losses[i]);
    has("disk_part_losses_total{reason=\"" + name + "\"}", disk.counters.part_losses[i]);
    CHECK(stats["losses"][name] == disk.counters.losses[i]);
    CHECK(stats["part_losses"][name] == disk.counters.part_losses[i]);
  }
  has("disk_index_bytes", disk.index_bytes);
  CHECK(stats["index_bytes"] == disk.index_bytes);
  CHECK(stats["entries"] == disk.entries);
  CHECK(stats["parts"] == disk.parts);
  CHECK(stats["write_amplification"] == disk.counters.write_amplification());
  REQUIRE(stats["disks"].size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const cache::DiskStatistics::Disk& each = disk.disks[i];
    const Json& shown = stats["disks"][i];
    const std::string label = "{disk=\"" + std::to_string(i) + "\"}";
    const std::string placed = "disk_placed_bytes_total{disk=\"" + std::to_string(i) + "\",why=";
    has("disk_segments" + label, each.segments);
    has("disk_free_segments" + label, each.free_segments);
    has("disk_capacity_bytes" + label, each.segments * each.segment_bytes);
    has("disk_objects" + label, each.objects);
    has("disk_parts" + label, each.parts);
    has("disk_live_bytes" + label, each.live_bytes);
    has(placed + "\"admit\"}", each.admitted_bytes);
    has(placed + "\"move\"}", each.moved_bytes);
    has("disk_write_amplification" + label, each.write_amplification());
    has("disk_offline" + label, i);
    has("disk_loading" + label, 1 - i);
    CHECK(shown["segments"] == each.segments);
    CHECK(shown["free_segments"] == each.free_segments);
    CHECK(shown["segment_bytes"] == each.segment_bytes);
    CHECK(shown["objects"] == each.objects);
    CHECK(shown["parts"] == each.parts);
    CHECK(shown["live_bytes"] == each.live_bytes);
    CHECK(shown["admitted_bytes"] == each.admitted_bytes);
    CHECK(shown["moved_bytes"] == each.moved_bytes);
    CHECK(shown["write_amplification"] == each.write_amplification());
    CHECK(shown["offline"] == each.offline);
    CHECK(shown["loading"] == each.loading);
  }
}

TEST_CASE("what is known of the devices is on both pages", "[observe][pages][disk]") {
  const Snapshot snapshot = distinct();
  const Json stats = Json::parse(stats_json(snapshot, {}))["disk"];
  const std::map<std::string, double> samples = samples_of(metrics_text(snapshot, {}));
  const auto has = [&](const std::string& name, auto value) {
    const auto found = samples.find("encore_disk_" + name);
    CAPTURE(name);
    REQUIRE(found != samples.end());
    CHECK(found->second == static_cast<double>(value));
  };
  has(R"(info{disk="0",path="/a \"quoted\\"})", 1);
  has(R"(info{disk="1",path="/b"})", 1);
  for (std::size_t i = 0; i < 2; ++i) {
    const disk::DiskReport& device = snapshot.devices[i];
    const Json& shown = stats["disks"][i]["device"];
    const std::string number = "{disk=\"" + std::to_string(i) + "\"";
    has("bytes_written_total" + number + ",why=\"admit\"}", device.admit_bytes);
    has("bytes_written_total" + number + ",why=\"move\"}", device.move_bytes);
    has("bytes_written_total" + number + ",why=\"format\"}", device.format_bytes);
    has("reads_total" + number + "}", device.reads);
    has("read_bytes_total" + number + "}", device.read_bytes);
    has("read_errors_total" + number + "}", device.read_errors);
    has("write_errors_total" + number + "}", device.write_errors);
    has("write_pauses_total" + number + "}", device.write_pauses);
    has("failed_records_total" + number + "}", device.failed_records);
    has("damaged_records_total" + number + "}", device.damaged_records);
    has("waiting_bytes" + number + "}", device.waiting_bytes);
    has("purge_log_entries" + number + "}", device.purge_log_entries);
    has("purge_log_overflows_total" + number + "}", device.purge_log_overflows);
    has("writes_paused" + number + "}", i);
    CHECK(shown["path"] == device.path);
    CHECK(shown["condition"] == (i == 0 ? "in-service" : "writes-paused"));
    CHECK(shown["written_bytes"] == Json{{"admit", device.admit_bytes},
                                         {"move", device.move_bytes},
                                         {"format", device.format_bytes}});
    CHECK(shown["segments_found"] == device.segments);
    CHECK(shown["segments_loaded"] == device.segments_loaded);
    for (const DeviceFigure& figure : kDeviceFigures) {
      CHECK(shown[std::string(figure.name)] == device.*figure.member);
    }
  }
}

TEST_CASE("without disks nothing is said of them", "[observe][pages][disk]") {
  Snapshot snapshot = distinct();
  snapshot.kernel.disk.disks.clear();
  snapshot.devices.clear();
  const std::string metrics = metrics_text(snapshot, {});
  CHECK_FALSE(metrics.contains("disk"));
  CHECK_FALSE(metrics.contains("storable"));
  CHECK_FALSE(Json::parse(stats_json(snapshot, {})).contains("disk"));
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
