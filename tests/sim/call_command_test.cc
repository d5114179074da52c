// Commands as functions: the report of the command line, with objects in the place of names.
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/lru.h"
#include "sim/cli/program.h"
#include "sim/replay/own_policy.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

// Requests for ten objects in turn.
class CalledReader final : public TraceReader {
 public:
  explicit CalledReader(std::uint64_t requests) : left_(requests) {}
  Result<std::size_t> read(std::span<Request> out) override {
    std::size_t count = 0;
    for (; count < out.size() && left_ != 0; --left_, ++count) {
      out[count] = {.key = {.lo = left_ % 10, .hi = 1}, .size_bytes = 100};
    }
    counts_.counted += count;
    return count;
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return TraceFormat::kEncore; }

 private:
  std::uint64_t left_;
  TraceCounts counts_;
};

Given called_with(std::uint64_t requests) {
  Given given;
  given.open = [requests](const TraceOptions& /*options*/) -> Result<std::unique_ptr<TraceReader>> {
    auto reader = std::make_unique<CalledReader>(requests);
    reader->add_source({.path = "given", .format = TraceFormat::kEncore, .reason = {}});
    return reader;
  };
  return given;
}

std::uint64_t called_hits(const Report& report, std::size_t row) {
  return std::get<std::uint64_t>(*find(report.tables.front().rows.at(row), "hits"));
}

}  // namespace

TEST_CASE("A called command gives the report that it would print", "[sim][call]") {
  const Directory directory;
  std::string lines = "time,key,size\n";
  for (int i = 0; i < 500; ++i) {
    lines += std::to_string(i) + ",k" + std::to_string(i * i % 53) + ",10\n";
  }
  const std::string trace = directory.write("t", lines);
  const std::vector<std::string> words = {"replay",   trace,          "--eviction",
                                          "lru,fifo", "--cache-size", "200"};
  Monitor monitor;
  const auto report = call_command(words, {}, monitor);
  REQUIRE(report);
  const Ran ran =
      run("replay " + trace + " --eviction lru,fifo --cache-size 200 --no-timing --json");
  CHECK(to_json(*report, {.machine = false}) == ran.out);
  CHECK(report->command == "replay");
  CHECK_FALSE(report->interrupted);
  CHECK(find(report->machine, "seconds") != nullptr);
}

TEST_CASE("A called command reads the trace and asks the policy that it is given", "[sim][call]") {
  Given given = called_with(1000);
  Monitor monitor;
  const std::vector<std::string> words = {"replay",       "given", "--eviction",  "fifo",
                                          "--cache-size", "1000",  "--admission", "always"};
  const auto fifo = call_command(words, given, monitor);
  REQUIRE(fifo);
  CHECK(called_hits(*fifo, 0) == 990);
  given.own = own_policy<cache::Lru>();
  auto fewer = words;
  fewer[5] = "900";  // a loop of ten objects through a cache of nine: LRU hits never
  const auto own = call_command(fewer, given, monitor);
  REQUIRE(own);
  CHECK(called_hits(*own, 0) == 0);
  auto admits = words;
  admits.back() = "second-hit";
  const auto refused = call_command(admits, given, monitor);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("a policy of your own") == 0);
}

TEST_CASE("Errors and help of a called command are its error's text", "[sim][call]") {
  Monitor monitor;
  const auto unknown = call_command({"replay", "t", "--evictoin", "lru"}, {}, monitor);
  REQUIRE(!unknown);
  CHECK(unknown.error().message.find("--eviction") != std::string::npos);
  CHECK(unknown.error().message.back() != '\n');
  const auto help = call_command({"replay", "--help"}, {}, monitor);
  REQUIRE(!help);
  CHECK(help.error().message.find("--cache-size") != std::string::npos);
  CHECK(!call_command({"replay", "/nonexistent"}, {}, monitor));
  const Directory directory;
  const std::string trace = directory.write("t", "time,key,size\n1,a,1\n");
  CHECK(!call_command({"stats", trace, "--json=" + trace}, {}, monitor));
}

TEST_CASE("A called command writes the files of its options, unless it is interrupted",
          "[sim][call]") {
  const Directory directory;
  const std::string trace = directory.write("t", "time,key,size\n1,a,1\n2,a,1\n");
  const std::string json = directory.at("json");
  Monitor monitor;
  REQUIRE(call_command({"stats", trace, "--json=" + json, "--no-timing"}, {}, monitor));
  CHECK(std::filesystem::file_size(json) > 100);
  monitor.stop = true;
  const auto cut = call_command({"replay", "given", "--cache-size", "1000", "--admission", "always",
                                 "--json=" + directory.at("no")},
                                called_with(100), monitor);
  REQUIRE(cut);
  CHECK(cut->interrupted);
  CHECK_FALSE(std::filesystem::exists(directory.at("no")));
}

}  // namespace encore::sim
