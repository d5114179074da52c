// Comparisons: the mean over settings, where there is no ratio, and how values are chosen.
#include "sim/sweep/comparison.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

struct ComparedRun {
  std::string trace = "t";
  std::uint64_t size = 1;
  double hits = 0;
  std::vector<std::array<std::uint64_t, 2>> parts = {};  // requests, hits
  double bytes_written = 1;
  std::uint64_t seed = 1;
};
Row compared_line(const ComparedRun& run) {
  std::vector<Row> parts;
  for (const auto& [requests, hits] : run.parts) {
    parts.push_back({{"requests", requests}, {"hits", hits}});
  }
  return {{"schema", std::uint64_t{1}},
          {"trace", run.trace},
          {"options", Row{{"cache-size", run.size}, {"seed", run.seed}}},
          {"result", Row{{"object_hit_ratio", run.hits},
                         {"bytes_written", run.bytes_written},
                         {"parts", parts}}}};
}

Comparison comparison_of(const std::vector<ComparedRun>& first,
                         const std::vector<ComparedRun>& second) {
  std::vector<Row> a;
  std::vector<Row> b;
  for (const ComparedRun& run : first) a.push_back(compared_line(run));
  for (const ComparedRun& run : second) b.push_back(compared_line(run));
  auto done = compare(a, b);
  REQUIRE(done);
  return std::move(*done);
}

}  // namespace

TEST_CASE("Settings of one trace do not make its mean surer than its parts do", "[compare]") {
  // Ten settings that are the same observation ten times.
  std::vector<ComparedRun> first;
  std::vector<ComparedRun> second;
  for (std::uint64_t size = 1; size <= 10; ++size) {
    first.push_back({.size = size, .hits = 0.5, .parts = {{100, 40}, {100, 60}}});
    second.push_back({.size = size, .hits = 0.6, .parts = {{100, 55}, {100, 65}}});
  }
  const Comparison done = comparison_of(first, second);
  CHECK(done.mean.source == IntervalSource::kParts);
  CHECK(done.mean.traces == 1);
  CHECK(done.mean.hits.value == Approx(0.1));
  CHECK(done.mean.hits.high - 0.1 == Approx(12.706 * 0.05).epsilon(0.001));
  CHECK(done.mean.hits.certainty == Approx(done.settings[0].hits.certainty));
  // If the parts move settings in opposite directions, their mean is surer than each.
  for (std::size_t i = 0; i < 10; i += 2) {
    second[i].parts = {{100, 45}, {100, 75}};
  }
  CHECK(comparison_of(first, second).mean.hits.high == Approx(0.1).margin(1e-9));
}

TEST_CASE("Without parts or seeds in common the mean is as unsure as its settings", "[compare]") {
  std::vector<ComparedRun> first = {{.size = 1, .hits = 0.5, .parts = {{100, 40}, {100, 60}}},
                                    {.size = 2, .hits = 0.5, .parts = {{200, 100}}}};
  std::vector<ComparedRun> second = {{.size = 1, .hits = 0.6, .parts = {{100, 55}, {100, 65}}},
                                     {.size = 2, .hits = 0.6, .parts = {{200, 120}}}};
  const Comparison done = comparison_of(first, second);
  const double each = (done.settings[0].hits.high - done.settings[0].hits.low) / 2;
  const double other = (done.settings[1].hits.high - done.settings[1].hits.low) / 2;
  CHECK(done.mean.hits.high - done.mean.hits.value == Approx((each + other) / 2));
  for (ComparedRun* run : {&first[0], &first[1], &second[0], &second[1]}) run->parts.clear();
  CHECK(comparison_of(first, second).mean.hits.is_exact());
  CHECK(comparison_of(first, second).mean.source == IntervalSource::kExact);
}

TEST_CASE("Seeds that all settings share give the interval of their mean", "[compare]") {
  std::vector<ComparedRun> first;
  std::vector<ComparedRun> second;
  for (std::uint64_t size = 1; size <= 4; ++size) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      first.push_back({.size = size, .hits = 0.5, .seed = seed});
      second.push_back({.size = size, .hits = seed == 1 ? 0.6 : 0.66, .seed = seed});
    }
  }
  const Comparison done = comparison_of(first, second);
  CHECK(done.mean.source == IntervalSource::kSeeds);
  CHECK(done.mean.hits.high - done.mean.hits.value == Approx(12.706 * 0.03).epsilon(0.001));
}

TEST_CASE("The mean over traces contains the truth in 19 of 20 cases", "[compare][theory]") {
  // A trace moves all its settings together; settings move less by themselves.
  constexpr int kTrials = 2000;
  std::mt19937_64 random(1);
  std::normal_distribution<double> of_trace(0.02, 0.01);
  std::normal_distribution<double> of_setting(0, 0.002);
  int contained = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<ComparedRun> first;
    std::vector<ComparedRun> second;
    for (int trace = 0; trace < 4; ++trace) {
      const double moved = of_trace(random);
      for (std::uint64_t size = 1; size <= 10; ++size) {
        const std::string name = "t" + std::to_string(trace);
        first.push_back({.trace = name, .size = size, .hits = 0.5});
        second.push_back({.trace = name, .size = size, .hits = 0.5 + moved + of_setting(random)});
      }
    }
    const MeanDifference mean = comparison_of(first, second).mean;
    contained += mean.hits.low <= 0.02 && 0.02 <= mean.hits.high ? 1 : 0;
    if (trial == 0) {
      CHECK(mean.source == IntervalSource::kTraces);
      CHECK(mean.traces == 4);
    }
  }
  // 4.5 standard errors of a share of 0.95.
  CHECK(std::abs(contained - 0.95 * kTrials) < 4.5 * std::sqrt(kTrials * 0.95 * 0.05));
}

TEST_CASE("Where A wrote nothing there is no share, and compare says so", "[compare]") {
  const Comparison done = comparison_of({{.size = 1, .hits = 0.5, .bytes_written = 0},
                                         {.size = 2, .hits = 0.5, .bytes_written = 100}},
                                        {{.size = 1, .hits = 0.5, .bytes_written = 10},
                                         {.size = 2, .hits = 0.5, .bytes_written = 110}});
  CHECK(!done.settings[0].written);
  REQUIRE(done.settings[1].written);
  CHECK(done.settings[1].written->value == Approx(0.1));
  const Directory directory;
  std::string lines;
  for (const char* admission : {"never", "always"}) {
    lines += R"({"schema":1,"trace":"t","options":{"admission":")" + std::string(admission) +
             R"("},"result":{"object_hit_ratio":0.5,"bytes_written":)" +
             (admission == std::string("never") ? "0" : "7") + "}}\n";
  }
  const std::string path = directory.write("r.jsonl", lines);
  const Ran ran = run({"compare", path + ":admission=never", path + ":admission=always", "--json"});
  REQUIRE(ran.exit_code == 0);
  const auto report = nlohmann::json::parse(ran.out);
  CHECK(report["rows"][0]["written_difference"].is_null());
  CHECK(report["notes"].dump().find("A wrote nothing in 1 settings") != std::string::npos);
}

TEST_CASE("A value with commas is chosen in quotation marks", "[compare]") {
  const auto chosen =
      parse_selection("a:b.jsonl:eviction=\"s3-fifo(small=0.2,ghost=2)\",name=\"a \"\"b\"\"\",c=d");
  REQUIRE(chosen);
  CHECK(chosen->path == "a:b.jsonl");
  const std::vector<std::pair<std::string, std::string>> options = {
      {"eviction", "s3-fifo(small=0.2,ghost=2)"}, {"name", "a \"b\""}, {"c", "d"}};
  CHECK(chosen->options == options);
  for (const char* wrong : {"r:eviction=\"lru", "r:eviction=\"lru\"x", "r:eviction=\"\"",
                            "r:eviction=s3-fifo(small=0.2,ghost)", "r:a=b,", "r:=b"}) {
    CAPTURE(wrong);
    const auto refused = parse_selection(wrong);
    REQUIRE(!refused);
    CHECK(refused.error().message.find("in quotation marks") != std::string::npos);
  }
}

}  // namespace encore::sim
