// A replay on probation: what it answers, counts and reports, and what it refuses.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using nlohmann::json;

ReplayRequest ask(std::uint32_t object, std::uint64_t size, std::int64_t seconds = 0,
                  std::uint32_t ttl_seconds = kNoTtl) {
  return {.key = {object * 0x9e3779b97f4a7c15U, object},
          .time_ns = seconds * 1'000'000'000,
          .size_bytes = size,
          .ttl_seconds = ttl_seconds,
          .object = object};
}

// 8,000 bytes of memory before 80,000 of disk.
ReplayOptions on_probation(bool fill) {
  ReplayOptions options;
  options.kernel = kernel(8000, cache::EvictionPolicy::kFifo, cache::AdmissionPolicy::kAlways);
  options.probation = {
      .settings = {.disk_bytes = 80'000, .keys = options.kernel.admission.filter, .fill = fill},
      .write_cost = {}};
  return options;
}

struct Replayed {
  ReplayCounts counts;
  std::vector<ReplayOutcome> outcomes;
};

Replayed replay(const std::vector<ReplayRequest>& requests, ReplayOptions options) {
  Replayed replayed;
  options.outcomes = &replayed.outcomes;
  auto run = ReplayRun::create(options);
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  replayed.counts = (*run)->counts();
  return replayed;
}

class TraceFile {
 public:
  TraceFile()
      : path_((std::filesystem::temp_directory_path() /
               ("encore_probation_" + std::to_string(::getpid()) + ".csv"))
                  .string()) {
    REQUIRE(
        run("generate akamai --requests 20000 --size lognormal:10KiB:1 -o " + path_).exit_code ==
        0);
  }
  ~TraceFile() { std::filesystem::remove(path_); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("probation's outcomes have the names of the proxy's details", "[sim][probation]") {
  std::vector<ReplayRequest> requests = {ask(1, 1000), ask(1, 1000), ask(2, 1001), ask(2, 1001)};
  for (std::uint32_t i = 3; i <= 10; ++i) requests.push_back(ask(i, 1000));
  requests.push_back(ask(1, 1000));
  requests.push_back(ask(1, 1000));
  const Replayed replayed = replay(requests, on_probation(false));
  std::vector<std::string> names;
  for (const ReplayOutcome outcome : replayed.outcomes) names.emplace_back(to_string(outcome));
  CHECK(names == std::vector<std::string>{"probation", "hit", "too-large-to-wait",
                                          "too-large-to-wait", "probation", "probation",
                                          "probation", "probation", "probation", "probation",
                                          "probation", "probation", "second-request", "hit"});
  CHECK(replayed.counts.hits == 2);
  CHECK(replayed.counts.disk_hits == 1);
  CHECK(replayed.counts.objects_written == 1);
  CHECK(replayed.counts.disk_bytes_admitted == 1000);
  CHECK(replayed.counts.disk_bytes_filled == 0);
  // With a fill the object was on disk already when it was asked for again.
  const Replayed filled = replay(requests, on_probation(true));
  CHECK(to_string(filled.outcomes[12]) == "hit");
  CHECK(filled.counts.disk_bytes_filled == filled.counts.disk_bytes_admitted);
  CHECK(filled.counts.disk_bytes_filled > 0);
}

TEST_CASE("a stale object that waits is validated and keeps its place", "[sim][probation]") {
  std::vector<ReplayRequest> requests = {ask(1, 1000, 0, 10), ask(1, 1000, 9, 10),
                                         ask(1, 1000, 10, 10), ask(1, 1000, 19, 10)};
  const Replayed replayed = replay(requests, on_probation(false));
  CHECK(replayed.counts.hits == 2);
  CHECK(replayed.counts.validations == 1);
  CHECK(to_string(replayed.outcomes[2]) == "revalidated");
  CHECK(replayed.counts.bytes_from_origin == 1000);
}

TEST_CASE("a warm-up is not counted, and intervals add up to the whole", "[sim][probation]") {
  std::vector<ReplayRequest> requests;
  for (std::uint32_t i = 0; i < 4000; ++i) requests.push_back(ask(i * i % 257, 500 + i * i % 257));
  const Replayed whole = replay(requests, on_probation(true));
  ReplayOptions options = on_probation(true);
  options.warmup_requests = 1000;
  options.interval_requests = 700;
  auto run = ReplayRun::create(options);
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  CHECK((*run)->counts().requests == 3000);
  CHECK((*run)->counts().disk_bytes_filled < whole.counts.disk_bytes_filled);
  std::uint64_t hits = 0;
  for (const ReplayInterval& interval : (*run)->intervals()) hits += interval.counts.hits;
  CHECK(hits == (*run)->counts().hits);
  const Replayed head = replay({requests.begin(), requests.begin() + 1000}, on_probation(true));
  CHECK(head.counts.hits + hits == whole.counts.hits);
  CHECK(head.counts.disk_bytes_moved + (*run)->counts().disk_bytes_moved ==
        whole.counts.disk_bytes_moved);
}

TEST_CASE("one command compares fixed windows, samples and the kernel's policies",
          "[sim][probation]") {
  const TraceFile trace;
  const Ran ran = run("replay " + trace.path() +
                      " --cache-size 1MiB,2MiB --disk-size 16MiB --disk-segment 512KiB --eviction "
                      "sieve,lru --admission second-hit,probation --window 0.5,samples "
                      "--write-cost 0.1,1 --no-timing --json");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const json report = json::parse(ran.out);
  // For each size: two evictions by second-hit, and probation, which has no other eviction, thrice.
  REQUIRE(report["rows"].size() == 2 * (2 + 3));
  REQUIRE(report["probation"].size() == 6);
  REQUIRE(report["what_if"].size() == 4 * 6);
  CHECK(report["parameters"]["window"] == "0.5,samples");
  CHECK(report["parameters"]["fill"] == true);
  CHECK(report["probation"][0]["admission_parameter"] == "w 0.5");
  CHECK(report["probation"][0]["window"] == 0.5);
  CHECK(report["probation"][0]["write_cost"].is_null());
  CHECK(report["probation"][1]["write_cost"] == 0.1);
  for (const json& row : report["probation"]) {
    const json& whole = report["rows"][row["run"].get<std::size_t>()];
    CHECK(whole["admission"] == "probation");
    CHECK(whole["eviction"] == "fifo");
    CHECK(whole["object_hit_ratio"] == row["object_hit_ratio"]);
    CHECK(row["memory_hit_ratio"].get<double>() + row["disk_hit_ratio"].get<double>() ==
          Approx(row["object_hit_ratio"].get<double>()));
    CHECK(row["disk_bytes_written"].get<std::uint64_t>() ==
          row["disk_bytes_first"].get<std::uint64_t>() +
              row["disk_bytes_moved"].get<std::uint64_t>() +
              row["disk_bytes_filled"].get<std::uint64_t>());
    CHECK(row["full_once"] == true);
    CHECK(row["fpr_theory"].get<double>() < 0.003);
    CHECK(row["pair_capacity_max"] == 4096);
  }
  double followed = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    followed += report["what_if"][i]["followed_share"].get<double>();
  }
  CHECK(followed == Approx(1));
}

TEST_CASE("a fill is a start as warm as storing all, and can be left out", "[sim][probation]") {
  const TraceFile trace;
  const std::string command =
      "replay " + trace.path() +
      " --cache-size 1MiB --disk-size 32MiB --disk-segment 1MiB --admission probation "
      "--no-timing --json --window 1 ";
  const json fill = json::parse(run(command + "--fill").out)["probation"][0];
  const json none = json::parse(run(command + "--no-fill").out)["probation"][0];
  CHECK(fill["disk_bytes_filled"] > 0);
  CHECK(none["disk_bytes_filled"] == 0);
  CHECK(fill["object_hit_ratio"] > none["object_hit_ratio"]);
  CHECK(fill["disk_bytes_written"] > none["disk_bytes_written"]);
  // A bound on the wait that leaves next to none.
  const json hasty = json::parse(run(command + "--no-fill --wait-max 10ms").out)["probation"][0];
  CHECK(hasty["memory_hit_ratio"] < none["memory_hit_ratio"]);
}

TEST_CASE("copies turn hits on disk into hits in memory", "[sim][probation]") {
  const TraceFile trace;
  const std::string command = "replay " + trace.path() +
                              " --cache-size 1MiB --disk-size 16MiB --disk-segment 512KiB "
                              "--admission probation --window 1 --no-timing --json ";
  const json none = json::parse(run(command).out)["probation"][0];
  const json half = json::parse(run(command + "--copies 0.5").out)["probation"][0];
  CHECK(none["copies_bytes"] == 0);
  CHECK(half["copies_bytes"] == 524'288);
  CHECK(half["memory_hit_ratio"].get<double>() > none["memory_hit_ratio"].get<double>() + 0.05);
}

TEST_CASE("a memory for few objects is said to be too small", "[sim][probation]") {
  const TraceFile trace;
  const std::string command = "replay " + trace.path() +
                              " --disk-size 16MiB --disk-segment 512KiB --admission probation "
                              "--no-timing --cache-size ";
  CHECK(run(command + "100KiB").out.find("below 64, probation loses hits") != std::string::npos);
  CHECK(run(command + "4MiB").out.find("probation loses") == std::string::npos);
}

TEST_CASE("options of probation that are wrong are refused with what is accepted",
          "[sim][probation]") {
  const TraceFile trace;
  const std::string plain = "replay " + trace.path() + " --cache-size 1MiB --admission probation ";
  const std::string command = plain + "--disk-size 16MiB --disk-segment 512KiB ";
  check_refused(run(plain), "--admission probation without --disk-size");
  for (const char* window : {"0", "2.1", "-1", "few", ""}) {
    check_refused(run(command + "--window=" + window), "--window");
  }
  check_refused(run(command + "--window 0"), "accepted: above 0 and up to 2, or samples");
  check_refused(run(command + "--write-cost 100.5"), "--write-cost");
  check_refused(run(command + "--write-cost -1"), "--write-cost");
  check_refused(run(command + "--window 1 --write-cost 1"),
                "--write-cost has no effect without --window samples");
  check_refused(run(command + "--fill --no-fill"), "accepted: one of them");
  check_refused(run(command + "--copies 1"), "--copies");
  check_refused(run(plain + "--disk-size 16MiB --disk-segment 5MiB"), "accepted: up to a quarter");
  check_refused(run("replay " + trace.path() + " --cache-size 1MiB --admission always,probation " +
                    "--disk-size 16MiB --disk-segment 500KiB"),
                "accepted: a power of two");
  check_refused(run(command + "--capacity 200000000000"), "of memory; available");
  check_refused(run(command + "--shards 4"), "accepted: 1");
  check_refused(run(command + "--hash md5"), "accepted: xxh3");
  check_refused(run(command + "--wait-max soon"), "--wait-max");
  check_refused(run(command + "--overhead 76"), "--overhead cannot be combined with");
  check_refused(run(command + "--rotate-after 1h"), "--rotate-after cannot be combined with");
  check_refused(run(command + "--head-bytes 200"), "--head-bytes cannot be combined with");
  check_refused(run(command + "--sample 0.5"), "--disk-size cannot be combined with a sample");
  check_refused(run("replay " + trace.path() + " --admission always --window 1"),
                "--window needs --admission probation");
}

}  // namespace encore::sim
