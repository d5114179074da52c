#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/load.h"
#include "sim/cli/tune_choice.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {

namespace {

class TuneTrace {
 public:
  explicit TuneTrace(const std::string& pattern) {
    path_ = (std::filesystem::temp_directory_path() /
             ("encore_tune_" + std::to_string(::getpid()) + ".csv"))
                .string();
    REQUIRE(run("generate " + pattern + " -o " + path_).exit_code == 0);
  }
  ~TuneTrace() { std::filesystem::remove(path_); }
  TuneTrace(const TuneTrace&) = delete;
  TuneTrace& operator=(const TuneTrace&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("Tune recommends second-hit where most objects are asked for once", "[sim][tune][long]") {
  const TuneTrace trace("akamai --requests 100000 --size lognormal:16KiB:1");
  const Ran ran = run("tune " + trace.path() + " --cache-size 5% --no-timing");
  REQUIRE(ran.exit_code == 0);
  const std::size_t section = ran.out.find("[admission]");
  REQUIRE(section != std::string::npos);
  const auto config = encore::config::parse_config(ran.out.substr(section), "tuned");
  REQUIRE(config);
  CHECK(config->admission.policy == encore::config::Policy::kSecondHit);
  CHECK(ran.out == run("tune " + trace.path() + " --cache-size 5% --no-timing --threads 1").out);
}

TEST_CASE("Tune says so where second-hit does not pay", "[sim][tune]") {
  // Every object comes twice, soon after: nothing to keep out, and half of the hits to lose.
  const TuneTrace trace("mixture --requests 60000 --objects 60000 --mix scan=1");
  std::ofstream doubled(trace.path(), std::ios::trunc);
  for (int i = 0; i < 30000; ++i) {
    doubled << i << "," << i << ",100\n" << i << "," << i << ",100\n";
  }
  doubled.close();
  const Ran ran = run("tune " + trace.path() + " --cache-size 10% --no-timing");
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("does not pay") != std::string::npos);
  const auto config =
      encore::config::parse_config(ran.out.substr(ran.out.find("[admission]")), "tuned");
  REQUIRE(config);
  CHECK(config->admission.policy == encore::config::Policy::kAlways);
}

TEST_CASE("Tune tries windows far below a 64th of the objects, and says how sure it is",
          "[sim][tune][long]") {
  // Each object comes twice, 20 requests apart, and the objects that come once between them are
  // many: a window of some twenty has all the hits, and a larger one nothing more.
  const TuneTrace trace("zipf --requests 10");
  std::ofstream lines(trace.path(), std::ios::trunc);
  for (int i = 0; i < 40000; ++i) {
    const int again = i - 10;
    lines << i << ",o" << i << ",1000\n";
    lines << i << ","
          << (i % 2 == 0 && again >= 0 ? "o" + std::to_string(again) : "p" + std::to_string(i))
          << ",1000\n";
  }
  lines.close();
  const Ran ran = run("tune " + trace.path() + " --cache-size 100KiB --no-timing --json");
  REQUIRE(ran.exit_code == 0);
  const auto report = nlohmann::json::parse(ran.out);
  CHECK(report["windows"][1]["capacity"] < 60);
  const auto& chosen = report["rows"][1];
  CHECK(chosen["capacity"] < 1000);
  // Nothing that was tried has more hits and fewer writes.
  for (const char* table : {"windows", "fprs"}) {
    for (const auto& row : report[table]) {
      const bool better =
          row["object_hit_ratio"] > 1.005 * chosen["object_hit_ratio"].get<double>() &&
          row["bytes_written"] < 0.98 * chosen["bytes_written"].get<double>();
      CHECK_FALSE(better);
    }
  }
  CHECK(chosen["hits_lost_low"] <= chosen["hits_lost"]);
  CHECK(chosen["hits_lost"] <= chosen["hits_lost_high"]);
  CHECK(chosen["writes_saved_low"] < chosen["writes_saved_high"]);
  CHECK(run("tune " + trace.path() + " --cache-size 100KiB --no-timing").out.find("(95 %: ") !=
        std::string::npos);
}

TEST_CASE("Tune weighs probation in front of a disk", "[sim][tune]") {
  const TuneTrace trace("akamai --requests 100000 --size lognormal:16KiB:1");
  const std::string command =
      "tune " + trace.path() +
      " --cache-size 4MiB --disk-size 60MiB --disk-segment 1MiB --no-timing";
  const Ran ran = run(command);
  REQUIRE(ran.exit_code == 0);
  const std::size_t section = ran.out.find("[admission]");
  REQUIRE(section != std::string::npos);
  const auto config = encore::config::parse_config(
      ran.out.substr(section) + "[[disk]]\npath = \"disk\"\nsize = \"1GiB\"\n", "tuned");
  INFO(ran.out << (config ? "" : config.error().message));
  REQUIRE(config);
  CHECK(config->admission.policy == encore::config::Policy::kProbation);

  const auto rows = nlohmann::json::parse(run(command + " --json").out)["rows"];
  REQUIRE(rows.size() == 8);
  CHECK(rows[0]["admission"] == "always");
  CHECK(rows[1]["admission"] == "second-hit");
  std::vector<std::uint64_t> written;
  for (std::size_t i = 2; i < rows.size(); ++i) {
    CHECK(rows[i]["admission"] == "probation");
    written.push_back(rows[i]["bytes_written"].get<std::uint64_t>());
    CHECK(written.back() < rows[0]["bytes_written"].get<std::uint64_t>());
    CHECK(rows[i]["object_hit_ratio"].get<double>() > rows[0]["object_hit_ratio"].get<double>());
  }
  // The dearer a written byte is, the fewer there are.
  CHECK(written.back() < written.front());
  CHECK(rows[4]["write_cost"] == config->admission.write_cost);
}

TEST_CASE("Tune refuses what it cannot study", "[sim][tune]") {
  const TuneTrace trace("zipf --requests 1000");
  for (const char* bad : {"--cache-size 1MiB,2MiB", "--eviction belady", "--warmup 100%",
                          "--warmup 5", "--layout round", "--cache-size 0"}) {
    INFO(bad);
    CHECK(run("tune " + trace.path() + " " + bad).exit_code == 2);
  }
  CHECK(run("tune /nonexistent").exit_code == 2);
}

TEST_CASE("with costs the cheapest is chosen, and the runner-up is the next", "[sim][tune]") {
  Measured always{.policy = cache::AdmissionPolicy::kAlways};
  always.requests = 1'000'000;
  always.hits = 0.5;
  always.misses = 500'000;
  always.bytes_written = std::uint64_t{100} << 30U;
  Measured filter = always;
  filter.policy = cache::AdmissionPolicy::kSecondHit;
  filter.window = 100;
  filter.fpr = 0.01;
  filter.misses = 510'000;
  filter.bytes_written = std::uint64_t{10} << 30U;
  filter.filter_bytes = std::uint64_t{1} << 30U;
  Measured larger = filter;
  larger.window = 200;
  larger.misses = 505'000;
  larger.bytes_written = std::uint64_t{20} << 30U;
  const std::vector<Measured> all = {always, filter, larger};
  CHECK(cost_of(filter, {.miss = 2, .write = 3, .memory = 5}) == Approx(1.02 + 30 + 5));
  CHECK(cheapest(all, {.write = 1}) == 1);
  CHECK(cheapest(all, {.miss = 1}) == 0);
  // 10,000 and 5,000 misses against 80 and 90 GiB.
  CHECK(cheapest(all, {.miss = 1'000'000, .write = 400}) == 2);
  CHECK(next_to(all, 1, {.write = 1}) == 2);
  CHECK(next_to(all, 0, {.miss = 1}) == 2);
  CHECK(cheapest(all, {.write = 1, .memory = 1000}) == 0);
}

TEST_CASE("tune says what it chose, against what, and how sure that is", "[sim][tune]") {
  const TuneTrace trace("akamai --requests 20000 --seed 3 --csv");
  const std::string costs = GENERATE(Catch::Generators::as<std::string>{}, "", " --cost-write 1",
                                     " --cost-miss 1", " --cost-memory 1000000 --cost-origin 1");
  const Ran ran = run("tune " + trace.path() + " --cache-size 1% --json" + costs);
  REQUIRE(ran.exit_code == 0);
  const auto report = nlohmann::json::parse(ran.out);
  int chosen = 0;
  int runner_up = 0;
  double cheapest_cost = 0;
  double chosen_cost = 0;
  for (const auto& row : report["front"]) {
    chosen += row["choice"] == "chosen" ? 1 : 0;
    runner_up += row["choice"] == "runner-up" ? 1 : 0;
    if (costs.empty()) {
      CHECK(row["cost"].is_null());
      continue;
    }
    const auto cost = row["cost"].get<double>();
    cheapest_cost = cheapest_cost == 0 ? cost : std::min(cost, cheapest_cost);
    if (row["choice"] == "chosen") chosen_cost = cost;
    // None of the front is beaten by another row of it.
    for (const auto& other : report["front"]) {
      const bool beats = other["object_hit_ratio"] > row["object_hit_ratio"] &&
                         other["byte_hit_ratio"] > row["byte_hit_ratio"] &&
                         other["bytes_written"] < row["bytes_written"] &&
                         other["filter_bytes"] < row["filter_bytes"];
      CHECK_FALSE((beats && row["pareto"] == true));
    }
  }
  CHECK(chosen == 1);
  CHECK(runner_up == 1);
  CHECK(chosen_cost == cheapest_cost);
  const std::string notes = report["notes"].dump();
  CHECK(notes.find("runner-up: ") != std::string::npos);
  CHECK(notes.find(costs.empty() ? "How sure: " : "is cheaper with a probability of ") !=
        std::string::npos);
  const bool stores_all = notes.find("Chosen: always") != std::string::npos;
  CHECK((report["paste"].get<std::string>().find("policy = \"always\"") != std::string::npos) ==
        stores_all);
}

}  // namespace encore::sim
