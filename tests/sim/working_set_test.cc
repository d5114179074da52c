// Working sets and one-hit objects against naive counts.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/replay/trace_statistics.h"
#include "tests/catch.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using Json = nlohmann::json;

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("encore_working_set_" + std::to_string(::getpid()) + name))
      .string();
}

Json report(const std::string& command_line) {
  const Ran ran = run(command_line + " --json --no-timing");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("The mean working set is that of all windows counted one by one", "[sim][stats]") {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < 300; ++i) {
    ids.push_back(i * i % 97 + (i % 5 == 0 ? 1000 + i : 0));
  }
  const auto bytes_of = [](std::uint64_t id) { return 1 + id % 10; };
  TraceStatistics statistics;
  for (const std::uint64_t id : ids) {
    statistics.add(
        {.key = filter::identify({}, std::to_string(id)).hash, .size_bytes = bytes_of(id)});
  }
  const TraceSummary summary = statistics.summary();
  for (const unsigned exponent : {0U, 1U, 3U, 6U, 8U, 9U, 20U}) {
    const std::uint64_t window = std::uint64_t{1} << exponent;
    double objects = 0;
    double bytes = 0;
    for (std::size_t end = 1; end <= ids.size(); ++end) {
      std::map<std::uint64_t, std::uint64_t> seen;
      for (std::size_t i = end - std::min<std::size_t>(end, window); i < end; ++i) {
        seen[ids[i]] = bytes_of(ids[i]);
      }
      objects += static_cast<double>(seen.size());
      for (const auto& [id, size] : seen) {
        bytes += static_cast<double>(size);
      }
    }
    const WorkingSet::Mean mean = summary.working_set.mean(exponent, ids.size());
    CHECK(std::abs(mean.objects - objects / 300) < 1e-9);
    CHECK(std::abs(mean.bytes - bytes / 300) < 1e-9);
  }
}

TEST_CASE("An interval's working set is its different objects with their largest sizes",
          "[sim][replay]") {
  ObjectTable table;
  std::vector<ReplayRequest> requests;
  for (const auto& [key, bytes] : std::vector<std::pair<const char*, std::uint64_t>>{
           {"a", 5}, {"b", 7}, {"a", 9}, {"c", 1}, {"b", 3}, {"c", 2}, {"d", 4}}) {
    requests.push_back(table.number({.key = filter::identify({}, key).hash, .size_bytes = bytes}));
  }
  auto run = ReplayRun::create(
      {.kernel = kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways),
       .interval_requests = 3});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  const std::vector<ReplayInterval>& intervals = (*run)->intervals();
  REQUIRE(intervals.size() == 3);
  CHECK(intervals[0].objects_requested == 2);
  CHECK(intervals[0].object_bytes == 9 + 7);
  CHECK(intervals[1].objects_requested == 2);
  CHECK(intervals[1].object_bytes == 7 + 2);
  CHECK(intervals[2].objects_requested == 1);
  CHECK(intervals[2].object_bytes == 4);
}

TEST_CASE("One-hit objects are kept out or let in, each one counted once", "[sim][replay]") {
  const std::string trace = temporary(".enc");
  // 4000 objects, three quarters of them asked for once.
  REQUIRE(run("generate akamai --requests 10000 --objects 4000 --size 100 -o " + trace).exit_code ==
          0);
  const std::string line =
      "replay " + trace + " --cache-size 20% --capacity 1000 --eviction lru --interval 4000 ";
  const Json all =
      report(line + "--admission always,never,exact-second-hit,second-hit --fpr 0.05 --shadow 1");
  const Json& rows = all["rows"];
  REQUIRE(rows.size() == 4);
  for (const Json& row : rows) {
    CHECK(row["one_hit_kept_out"].get<int>() + row["one_hit_let_in"].get<int>() == 3000);
    CHECK(row["footprint_objects"] == 4000);
    CHECK(row["footprint_bytes"] == 400000);
  }
  CHECK(rows[0]["one_hit_let_in"] == 3000);
  CHECK(rows[1]["one_hit_let_in"] == 0);
  CHECK(rows[2]["one_hit_let_in"] == 0);
  // One-hit objects that a filter admits were taken for others: these are among the false
  // admissions.
  CHECK(rows[3]["one_hit_let_in"] > 0);
  CHECK(rows[3]["one_hit_let_in"] <= rows[3]["false_admissions"]);
  // A first admission writes an object once: the rest are re-admissions, of 100 bytes each.
  for (const Json& row : rows) {
    const auto written = row["bytes_written"].get<std::uint64_t>();
    const auto rewritten = row["bytes_rewritten"].get<std::uint64_t>();
    CHECK(written == 100 * row["objects_written"].get<std::uint64_t>());
    CHECK(written - rewritten <= 400000);
  }
  CHECK(rows[0]["bytes_written"].get<int>() - rows[0]["bytes_rewritten"].get<int>() == 400000);
  const Json& intervals = all["intervals"];
  REQUIRE(intervals.size() == 12);
  CHECK(intervals[0]["working_set_bytes"] ==
        100 * intervals[0]["working_set_objects"].get<std::uint64_t>());
  const Json windows = report("stats " + trace)["working_set"];
  CHECK(windows.front() == Json({{"window", 1}, {"objects", 1.0}, {"bytes", 100.0}}));
  CHECK(windows.back()["window"] == 16384);
  std::filesystem::remove(trace);
}

}  // namespace encore::sim
