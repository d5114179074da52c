// Sweeps: files, tasks, results, comparisons.
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/shell_words.h"
#include "sim/sweep/comparison.h"
#include "sim/sweep/pareto.h"
#include "sim/sweep/statistics.h"
#include "sim/sweep/sweep_file.h"
#include "sim/sweep/task_results.h"
#include "sim/sweep/tasks.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {
namespace {

std::vector<std::string> values_in(const std::string& value) {
  const auto sweep = parse_sweep("traces = [\"t\"]\n[sweep]\nseed = " + value + "\n", "s.toml");
  REQUIRE(sweep);
  return sweep->options.front().values;
}

std::string fault_of(const std::string& text) {
  const auto sweep = parse_sweep(text, "s.toml");
  return sweep ? std::string() : sweep.error().message;
}

std::string swept(const std::string& lines) { return "traces = [\"t\"]\n[sweep]\n" + lines + "\n"; }

TEST_CASE("a sweep's values are lists and ranges", "[sweep]") {
  using Texts = std::vector<std::string>;
  CHECK(values_in("7") == Texts{"7"});
  CHECK(values_in("[1, 0.5, \"a\"]") == Texts{"1", "0.5", "a"});
  CHECK(values_in("{ from = 1, to = 4 }") == Texts{"1", "2", "3", "4"});
  CHECK(values_in("{ from = 0.1, to = 0.5, step = 0.1 }") ==
        Texts{"0.1", "0.2", "0.3", "0.4", "0.5"});
  CHECK(values_in("{ from = 1, to = 10, step = 4 }") == Texts{"1", "5", "9"});
  CHECK(values_in("{ from = \"1%\", to = \"100%\", points = 3 }") == Texts{"1%", "10%", "100%"});
  CHECK(values_in("{ from = \"1MiB\", to = \"64MiB\", points = 4 }") ==
        Texts{"1MiB", "4MiB", "16MiB", "64MiB"});
  CHECK(values_in("{ from = 100000, to = 300000, step = 100000 }") ==
        Texts{"100000", "200000", "300000"});
  CHECK(values_in("[1e-05, 1e6]") == Texts{"0.00001", "1000000"});
  CHECK(values_in("{ from = 100, to = 200, points = 3 }") == Texts{"100", "141", "200"});
  // Rounded to whole numbers, a value comes once.
  CHECK(values_in("{ from = 1, to = 2, points = 5 }") == Texts{"1", "2"});
}

TEST_CASE("a fault in a sweep's file is shown with its place", "[sweep]") {
  const auto [text, fault] = GENERATE(table<std::string, std::string>({
      {"traces = [", "s.toml:1:"},
      {"[sweep]\n", "without traces"},
      {"traces = 7\n", "s.toml:1:10: traces, accepted: a list of files"},
      {"traces = [\"-\"]\n", "accepted: a list of files"},
      {"trace = [\"t\"]\n", "unknown key trace; accepted: traces, [fixed], [sweep]"},
      {swept("seed = []"), "seed has an empty list"},
      {swept("seed = [1, 1]"), "seed has 1 twice"},
      {swept("threads = 2"), "threads is no option of a sweep's runs"},
      {swept("seed = { from = 1, to = 0 }"), "accepted: { from, to }"},
      {swept("seed = { from = 1, to = 2, step = 0 }"), "accepted: { from, to }"},
      {swept("seed = { from = 0, to = 2, points = 2 }"), "accepted: { from, to }"},
      {swept("seed = { from = 1, to = 2, points = 1 }"), "points, accepted: 2 to 10000"},
      {swept("seed = { from = 1, to = 2, by = 1 }"), "unknown key by"},
      {swept("seed = { from = \"1%\", to = \"2MiB\" }"), "numbers of one unit"},
      {swept("seed = { from = 1, to = 1e9 }"), "a range of 1000000000 values, accepted: 10000"},
      {swept("seed = 2026-11-29"), "a date or a time"},
      {swept("seed = { from = \"1%\", to = \"3%\", step = \"1GiB\" }"), "numbers of one unit"},
      {swept("seed = { from = 1, to = 3, points = \"5%\" }"), "points, accepted"},
      {swept("no-refresh = [true, \"yes\"]"), "accepted without others"},
      {"traces = [\"t\"]\n[fixed]\nno-refresh = [true, false]\n", "and in [sweep]"},
      {"traces = [\"t\"]\n[fixed]\neviction = [\"lru\", \"fifo\"]\n", "accepted in [sweep]"},
      {swept("\"\" = 1"), "is no option"},
      {swept("\"cache-size=1%\" = 1"), "is no option"},
      {"traces = [\"t\"]\n[fixed]\nseed = 1\n[sweep]\nseed = [1]\n", "in [fixed] and in [sweep]"},
      {swept("a = { from = 1, to = 2000 }\nb = { from = 1, to = 2000 }"), "4000000 runs"},
  }));
  CAPTURE(text);
  CHECK(fault_of(text).find(fault) != std::string::npos);
}

struct Planned {
  Directory directory;
  std::vector<Task> tasks(const std::string& options) const {
    directory.write("t.csv", "key,size\na,1\n");
    const std::string path =
        directory.write("s.toml", "traces = [\"t.csv\"]\n[sweep]\n" + options + "\n");
    const auto sweep = read_sweep(path);
    REQUIRE(sweep);
    auto tasks = plan_tasks(*sweep, 16);
    REQUIRE(tasks);
    return std::move(*tasks);
  }
};

TEST_CASE("options without effect make no runs of their own", "[sweep]") {
  const Planned planned;
  const auto tasks = planned.tasks(
      "admission = [\"always\", \"second-hit\", \"nth-hit\", \"tinylfu\", \"probability\"]\n"
      "capacity = [100, 200, 300]\nfpr = [0.1, 0.01]\nmin-requests = [2, 3]\n"
      "probability = [0.1, 0.2, 0.5, 0.9]\n");
  std::map<std::string, int> count;
  for (const Task& task : tasks) ++count[task.options.front().second];
  CHECK(count["always"] == 1);
  CHECK(count["second-hit"] == 6);
  CHECK(count["nth-hit"] == 12);
  CHECK(count["tinylfu"] == 3);
  CHECK(count["probability"] == 4);
}

TEST_CASE("a sweep has each fleet that is possible once", "[sweep]") {
  const Planned planned;
  const auto tasks = planned.tasks(
      "nodes = [1, 3]\ntier = [\"one\", \"two\"]\nbalance = [\"random\", \"bounded\"]\n"
      "balance-load = [4, 16]\nmemory = [\"local\", \"shared\", \"hint\"]\n"
      "fail-node = [0, 0.5]\n");
  std::map<std::string, int> count;
  for (const Task& task : tasks) ++count[task.options[0].second + " " + task.options[1].second];
  CHECK(count["1 one"] == 1);
  // Random, or bounded with two loads; a node that is lost or not.
  CHECK(count["1 two"] == 3);
  CHECK(count["3 one"] == 2 * 3 * 2);
  CHECK(count["3 two"] == 3 * 3 * 2);
  CHECK(planned.tasks("tier = [\"one\"]\nmemory = [\"hint\"]\n").size() == 1);
}

TEST_CASE("a task's name is that of its content", "[sweep]") {
  const Planned planned;
  const auto names = [&](const std::string& options) {
    std::set<std::string> all;
    for (const Task& task : planned.tasks(options)) all.insert(task.name);
    return all;
  };
  const auto before = names("eviction = [\"lru\", \"sieve\"]\nseed = [1, 2]");
  CHECK(before.size() == 4);
  CHECK(before == names("seed = [2, 1]\neviction = [\"sieve\", \"lru\"]"));
  const auto wider = names("eviction = [\"lru\", \"sieve\", \"fifo\"]\nseed = [1, 2]");
  CHECK(std::ranges::includes(wider, before));
  CHECK(names("eviction = [\"lru\", \"sieve\"]\nseed = [1, 2]\ncache-size = \"1%\"") != before);
  for (const std::string& name : before) {
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
  }
}

TEST_CASE("a task is claimed by one process, until that ends", "[sweep]") {
  const Planned planned;
  const auto tasks = planned.tasks("seed = [1, 2]");
  const TaskResults results(planned.directory.at("r"));
  REQUIRE(results.make_directory());
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t other = ::fork();
  if (other == 0) {
    const auto claim = results.claim(tasks[0]);
    const char said = claim && *claim ? 'y' : 'n';
    [[maybe_unused]] const auto written = ::write(ready[1], &said, 1);
    ::pause();
    ::_exit(0);
  }
  char said = 0;
  REQUIRE(::read(ready[0], &said, 1) == 1);
  CHECK(said == 'y');
  {
    const auto taken = results.claim(tasks[0]);
    REQUIRE(taken);
    CHECK_FALSE(*taken);
    const auto free = results.claim(tasks[1]);
    REQUIRE(free);
    CHECK(*free);
  }
  REQUIRE(::kill(other, SIGKILL) == 0);
  REQUIRE(::waitpid(other, nullptr, 0) == other);
  const auto again = results.claim(tasks[0]);
  REQUIRE(again);
  CHECK(*again);
  ::close(ready[0]);
  ::close(ready[1]);
  REQUIRE(results.write(tasks[0], {result_row(tasks[0], 0, {{"hits", std::uint64_t{7}}})}));
  CHECK(results.is_done(tasks[0]));
  const auto rows = results.read(tasks[0]);
  REQUIRE(rows);
  CHECK(number_of(rows->front(), "hits") == 7);
}

TEST_CASE("Student's t is that of the tables", "[sweep]") {
  // Abramowitz and Stegun, table 26.10.
  const auto [degrees, at95, at99] = GENERATE(table<double, double, double>({{1, 12.706, 63.657},
                                                                             {2, 4.303, 9.925},
                                                                             {7, 2.365, 3.499},
                                                                             {15, 2.131, 2.947},
                                                                             {30, 2.042, 2.750},
                                                                             {120, 1.980, 2.617}}));
  CHECK(student_quantile(0.95, degrees) == Approx(at95).margin(0.0006));
  CHECK(student_quantile(0.99, degrees) == Approx(at99).margin(0.0006));
  CHECK(student_cdf(-at95, degrees) == Approx(0.025).margin(0.0001));
}

TEST_CASE("the interval of a mean has it in 95 of 100 cases", "[sweep]") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(3, 2);
  int within = 0;
  constexpr int kRounds = 4000;
  for (int i = 0; i < kRounds; ++i) {
    std::array<double, 5> observed{};
    for (double& each : observed) each = normal(random);
    const Estimate mean = estimate_mean(observed);
    within += mean.low <= 3 && 3 <= mean.high ? 1 : 0;
  }
  // Four standard deviations of a binomial count are 1.4 points.
  CHECK(within > kRounds * 0.936);
  CHECK(within < kRounds * 0.964);
  const std::array one = {0.5};
  CHECK(estimate_mean(one).is_exact());
}

TEST_CASE("the front has what nothing dominates", "[sweep]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  std::uniform_int_distribution<int> small(0, 5);
  std::vector<Goals> all(60);
  for (Goals& each : all) {
    for (double& goal : each) goal = small(random);
  }
  const std::vector<bool> front = pareto_front(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool beaten = std::ranges::any_of(all, [&](const Goals& other) {
      bool no_worse = true;
      for (std::size_t g = 0; g < kGoals; ++g) no_worse = no_worse && other[g] >= all[i][g];
      return no_worse && other != all[i];
    });
    CHECK(front[i] == !beaten);
  }
}

std::string csv_trace() {
  std::mt19937 random(7);
  std::string text = "key,size\n";
  for (int i = 0; i < 4000; ++i) {
    const auto key = random() % (1 + random() % 400);
    text += "k" + std::to_string(key) + "," + std::to_string(100 + key) + "\n";
  }
  return text;
}

TEST_CASE("a sweep has the rows of the replays that it makes", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const std::string sweep =
      directory.write("s.toml",
                      "traces = [\"t.csv\"]\n[fixed]\nwarmup = \"10%\"\n"
                      "[sweep]\neviction = [\"lru\", \"sieve\"]\n"
                      "admission = [\"always\", \"second-hit\"]\n"
                      "cache-size = [\"5%\", \"20%\"]\ncapacity = [50, 200]\n");
  const Ran ran = run({"sweep", sweep, "--json", "--no-timing"});
  REQUIRE(ran.exit_code == 0);
  const auto report = nlohmann::json::parse(ran.out);
  REQUIRE(report["rows"].size() == 12);
  for (const auto& row : report["rows"]) {
    std::string line = "replay " + directory.at("t.csv") + " --warmup 10% --json --no-timing";
    for (const char* option : {"eviction", "admission", "capacity", "cache-size"}) {
      if (row.contains(option) && !row[option].is_null()) {
        line += std::string(" --") + option + "=" +
                (row[option].is_string() ? row[option].get<std::string>() : row[option].dump());
      }
    }
    const Ran alone = run(line);
    REQUIRE(alone.exit_code == 0);
    const auto expected = nlohmann::json::parse(alone.out)["rows"][0];
    for (const char* key : {"hits", "bytes_written", "cache_bytes", "fpr_measured", "requests"}) {
      CHECK(row[key] == expected[key]);
    }
    std::uint64_t hits = 0;
    CHECK(row["parts"].size() == 16);
    for (const auto& part : row["parts"]) hits += part["hits"].get<std::uint64_t>();
    CHECK(hits == expected["hits"]);
  }
  // The results that are there are taken.
  const Ran again = run({"sweep", sweep, "--merge", "--json", "--no-timing"});
  CHECK(again.exit_code == 0);
  CHECK(nlohmann::json::parse(again.out)["rows"] == report["rows"]);
}

TEST_CASE("what a sweep's replays refuse is known before the first one", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const auto [options, fault] = GENERATE(table<std::string, std::string>({
      {"evicton = [\"lru\"]", "s.toml:3:12: t.csv evicton=lru: unknown option \"--evicton\""},
      {"evicton = [\"lru\"]", "(see encore-sim replay --help)"},
      {"eviction = [\"lru\",\n  \"lrv\"]", "s.toml:4:3: t.csv eviction=lrv: --eviction: unknown"},
      {"fpr = [0.1]\neviction = [\"lrv\"]", "s.toml:4:13: "},
      {"cache-size = [\"1%\", \"0%\"]", "s.toml:3:21: t.csv: --cache-size \"0%\", accepted: above"},
      {"nodes = { from = 1023, to = 1025 }", "s.toml:3:9: t.csv nodes=1025: --nodes \"1025\""},
      {"window = [\"1\"]\nadmission = [\"probation\"]", "s.toml:4:14: "},
      {"window = [\"1\"]\nadmission = [\"probation\"]", "without --disk-size"},
  }));
  const std::string sweep =
      directory.write("s.toml", "traces = [\"t.csv\"]\n[sweep]\n" + options + "\n");
  CAPTURE(options);
  check_refused(run({"sweep", sweep}), fault);
  CHECK_FALSE(std::filesystem::exists(directory.at("s.results")));
}

TEST_CASE("--list has the tasks that are left, and each runs alone", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const std::string sweep = directory.write(
      "s.toml", "traces = [\"t.csv\"]\n[sweep]\neviction = [\"lru\", \"fifo\", \"sieve\"]\n");
  const auto listed = [&] {
    const Ran ran = run({"sweep", sweep, "--list"});
    CHECK(ran.exit_code == 0);
    std::vector<std::string> lines;
    std::istringstream text(ran.out);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  };
  auto lines = listed();
  REQUIRE(lines.size() == 3);
  for (std::size_t left = 3; left > 0; --left) {
    const Ran unfinished = run({"sweep", sweep, "--merge"});
    CHECK(unfinished.exit_code == 1);
    CHECK(unfinished.out.find("Missing: " + std::to_string(left) + " tasks") != std::string::npos);
    std::vector<std::string> words = words_of(lines.front());
    words.erase(words.begin());
    const Ran one = run(words);
    CAPTURE(lines.front(), one.err);
    CHECK(one.exit_code == 0);
    lines = listed();
    CHECK(lines.size() == left - 1);
  }
  const Ran merged = run({"sweep", sweep, "--merge"});
  CHECK(merged.exit_code == 0);
  CHECK(merged.out.find("3 of 3 tasks, 3 runs") != std::string::npos);
  check_refused(run({"sweep", sweep, "--task", "none"}), "no such task");
  check_refused(run({"sweep", sweep, "--list", "--merge"}), "accepted: one of them");
}

Row line_of(std::uint64_t seed, double hits, const std::vector<std::array<std::uint64_t, 2>>& parts,
            const std::string& eviction) {
  std::vector<Row> rows;
  for (const auto& [requests, part_hits] : parts) {
    rows.push_back({{"requests", requests}, {"hits", part_hits}});
  }
  return {{"schema", std::uint64_t{1}},
          {"trace", std::string("t")},
          {"options", Row{{"eviction", eviction}, {"seed", seed}}},
          {"result", Row{{"object_hit_ratio", hits}, {"parts", rows}}}};
}

TEST_CASE("a comparison's interval is that of parts, of seeds, or none", "[sweep]") {
  const Selection lru{.path = "r", .options = {{"eviction", "lru"}}};
  const Selection sieve{.path = "r", .options = {{"eviction", "sieve"}}};
  std::vector<Row> rows = {line_of(1, 0.5, {{100, 40}, {100, 60}}, "lru"),
                           line_of(1, 0.6, {{100, 55}, {100, 65}}, "sieve")};
  const auto comparison = [&] {
    const auto first = selected(lru, rows);
    const auto second = selected(sieve, rows);
    REQUIRE(first);
    REQUIRE(second);
    auto done = compare(*first, *second);
    REQUIRE(done);
    return std::move(*done);
  };
  const Compared by_parts = comparison().settings.front();
  CHECK(by_parts.source == IntervalSource::kParts);
  CHECK(by_parts.hits.value == Approx(0.1));
  // Two parts, 15 and 5 more of 100: each moves the difference by .025; t of one degree.
  CHECK(by_parts.hits.high - by_parts.hits.value == Approx(12.706 * 0.05).epsilon(0.001));
  rows = {line_of(1, 0.5, {}, "lru"), line_of(1, 0.6, {}, "sieve")};
  rows.push_back(line_of(2, 0.4, {}, "lru"));
  rows.push_back(line_of(2, 0.56, {}, "sieve"));
  const Compared by_seeds = comparison().settings.front();
  CHECK(by_seeds.source == IntervalSource::kSeeds);
  CHECK(by_seeds.pairs == 2);
  CHECK(by_seeds.hits.value == Approx(0.13));
  CHECK(by_seeds.hits.high - by_seeds.hits.value == Approx(12.706 * 0.03).epsilon(0.001));
  rows = {line_of(1, 0.5, {}, "lru"), line_of(1, 0.4, {}, "sieve")};
  const Compared exact = comparison().settings.front();
  CHECK(exact.source == IntervalSource::kExact);
  CHECK(exact.hits.is_exact());
  CHECK(exact.hits.value == Approx(-0.1));
}

TEST_CASE("a filter's own options do not keep it from being compared", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const std::string sweep =
      directory.write("s.toml",
                      "traces = [\"t.csv\"]\n[sweep]\nadmission = [\"always\", \"second-hit\"]\n"
                      "capacity = 100\ncache-size = [\"10%\", \"30%\"]\n");
  REQUIRE(run({"sweep", sweep}).exit_code == 0);
  const std::string results = directory.at("s.results/results.jsonl");
  const Ran ran = run({"compare", results + ":admission=always", results + ":admission=second-hit",
                       "--json", "--no-timing"});
  REQUIRE(ran.exit_code == 0);
  CHECK(nlohmann::json::parse(ran.out)["rows"].size() == 2);
}

TEST_CASE("compare says where B has fewer hits", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const std::string sweep = directory.write(
      "s.toml",
      "traces = [\"t.csv\"]\n[fixed]\nadmission = \"always\"\n[sweep]\n"
      "eviction = [\"lru\", \"random\", \"belady\"]\ncache-size = [\"10%\", \"30%\"]\n");
  REQUIRE(run({"sweep", sweep}).exit_code == 0);
  const std::string results = directory.at("s.results/results.jsonl");
  const Ran better = run({"compare", results + ":eviction=lru", results + ":eviction=belady",
                          "--worse-max", "0", "--json", "--no-timing"});
  CHECK(better.exit_code == 0);
  const auto report = nlohmann::json::parse(better.out);
  for (const auto& row : report["rows"]) CHECK(row["verdict"] == "more");
  const Ran worse = run(
      {"compare", results + ":eviction=belady", results + ":eviction=lru", "--worse-max", "0.5"});
  CHECK(worse.exit_code == 1);
  CHECK(worse.out.find("2 settings are worse by more than 0.5 percentage points") !=
        std::string::npos);
  check_refused(run({"compare", results + ":eviction=lrv", results}),
                "nothing with eviction=lrv, accepted: lru, random, belady");
  check_refused(run({"compare", results + ":eviction=lru", results + ":eviction="}),
                "accepted: FILE or FILE:OPTION=VALUE");
  check_refused(run({"compare", directory.at("t.csv"), results}),
                "accepted: lines of encore-sim sweep");
}

TEST_CASE("reports of replay are compared, and directories of sweeps", "[sweep]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", csv_trace());
  const std::string sweep =
      directory.write("s.toml", "traces = [\"t.csv\"]\n[sweep]\neviction = [\"lru\", \"sieve\"]\n");
  REQUIRE(run({"sweep", sweep}).exit_code == 0);
  const std::string results = directory.at("s.results");
  CHECK(run({"compare", results + ":eviction=lru", results + ":eviction=sieve"}).exit_code == 0);
  for (const char* eviction : {"lru", "sieve"}) {
    REQUIRE(run("replay " + trace + " --admission always --parts 8 --eviction " + eviction +
                " --json=" + directory.at(std::string(eviction) + ".json"))
                .exit_code == 0);
  }
  const Ran ran = run({"compare", directory.at("lru.json") + ":eviction=lru",
                       directory.at("sieve.json") + ":eviction=sieve", "--json", "--no-timing"});
  CAPTURE(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK(nlohmann::json::parse(ran.out)["rows"][0]["by"] == "parts");
  check_refused(run({"sweep", directory.at("")}), "it is a directory");
  REQUIRE(run("stats " + trace + " --json=" + directory.at("stats.json")).exit_code == 0);
  check_refused(run({"compare", directory.at("stats.json"), directory.at("stats.json")}),
                "accepted: a report of encore-sim replay");
}

TEST_CASE("what is no result is refused, whatever its shape", "[sweep]") {
  const Directory directory;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(100'000, '}');
  const std::string text =
      GENERATE_COPY(std::string("{\"schema\":1,\"options\":5,\"result\":{},\"trace\":\"a\"}"),
                    std::string("{\"schema\":1,\"options\":{},\"result\":[],\"trace\":\"a\"}"),
                    std::string("{\"schema\":99,\"rows\":[{\"object_hit_ratio\":1}]}"),
                    std::string("[1,2]"), std::string(), std::string("7"), deep);
  const std::string path = directory.write("odd.jsonl", text);
  CHECK(run({"compare", path, path}).exit_code == 2);
}

TEST_CASE("a task is another one with other parts, or another trace of the same size", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", "key,size\na,1\n");
  const std::string path = directory.write("s.toml", "traces = [\"t.csv\"]\n[sweep]\nseed = 1\n");
  const auto name = [&](std::uint64_t parts) {
    const auto sweep = read_sweep(path);
    REQUIRE(sweep);
    const auto tasks = plan_tasks(*sweep, parts);
    REQUIRE(tasks);
    return tasks->front().name;
  };
  const std::string first = name(16);
  CHECK(first == name(16));
  CHECK(first != name(0));
  directory.write("t.csv", "key,size\nb,1\n");
  CHECK(first != name(16));
}

TEST_CASE("a damaged result is named with what to do", "[sweep]") {
  const Directory directory;
  directory.write("t.csv", csv_trace());
  const std::string sweep =
      directory.write("s.toml", "traces = [\"t.csv\"]\n[sweep]\ncache-size = [\"10%\", \"30%\"]\n");
  REQUIRE(run({"sweep", sweep}).exit_code == 0);
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(directory.at("s.results"))) {
    if (entry.path().filename().string().starts_with("t-")) path = entry.path().string();
  }
  const std::string whole = contents(path);
  for (const std::string& left : {whole.substr(0, whole.find('\n') + 1), whole.substr(0, 50)}) {
    std::ofstream(path, std::ios::binary) << left;
    check_refused(run({"sweep", sweep}), "remove the file to run the task again");
  }
}

TEST_CASE("seeds without effect do not make a difference certain", "[sweep]") {
  const Selection lru{.path = "r", .options = {{"eviction", "lru"}}};
  const Selection sieve{.path = "r", .options = {{"eviction", "sieve"}}};
  std::vector<Row> rows;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    rows.push_back(line_of(seed, 0.5, {{100, 40}, {100, 60}}, "lru"));
    rows.push_back(line_of(seed, 0.6, {{100, 55}, {100, 65}}, "sieve"));
  }
  const auto done = compare(*selected(lru, rows), *selected(sieve, rows));
  REQUIRE(done);
  CHECK(done->settings.front().source == IntervalSource::kParts);
  CHECK(done->settings.front().hits.high - 0.1 == Approx(12.706 * 0.05).epsilon(0.001));
}

TEST_CASE("a word for a shell comes back from it as it was", "[sweep]") {
  CHECK(shell_word("a/b-c=1%") == "a/b-c=1%");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's $x") == "'it'\\''s $x'");
}

}  // namespace
}  // namespace encore::sim
