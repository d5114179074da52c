#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/load.h"
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

}  // namespace encore::sim
