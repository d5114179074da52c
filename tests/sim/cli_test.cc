#include "base/cli/numbers.h"
#include "base/cli/progress.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {

TEST_CASE("The blocks command prints the lecture's rows", "[sim][cli]") {
  const Ran ran = run("blocks --no-timing");
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("\n1  79997             3735  0.046689  0.095159     0.048372") !=
        std::string::npos);
  CHECK(ran.out.find("\n4  79997              225  0.002813  0.011812     0.002695") !=
        std::string::npos);
  CHECK(ran.err.empty());
}

TEST_CASE("The fill table has the published columns", "[sim][cli]") {
  const Ran ran = run("theory fill --keys 80000 --bits 800000 --hashes 1..9 --json --no-timing");
  REQUIRE(ran.exit_code == 0);
  for (const char* published :
       {"\"fpr_full\": 0.0951", "\"fpr_full\": 0.0328", "\"fpr_full\": 0.0174",
        "\"fpr_full\": 0.0118", "\"fpr_full\": 0.0094", "\"fpr_full\": 0.0084",
        "\"fpr_full\": 0.0081", "\"fpr_incremental\": 0.0483", "\"fpr_incremental\": 0.0115",
        "\"fpr_incremental\": 0.0047", "\"fpr_incremental\": 0.0026", "\"fpr_incremental\": 0.0018",
        "\"fpr_incremental\": 0.0015", "\"fpr_incremental\": 0.0013"}) {
    CHECK(ran.out.find(published) != std::string::npos);
  }
  CHECK(ran.out.find("machine") == std::string::npos);
}

TEST_CASE("The same seed gives the same bytes, however many threads ran", "[sim][cli]") {
  const std::string line =
      "blocks --seeds 5 --events 2000 --block-size 16 --hashes 3 --filter pair --capacity 100 "
      "--json --no-timing";
  const Ran first = run(line);
  REQUIRE(first.exit_code == 0);
  CHECK(first.out == run(line).out);
  CHECK(first.out.find("\"deciles\"") != std::string::npos);
}

TEST_CASE("The comparisons show memory, and what a bad hash costs", "[sim][cli]") {
  const Ran structures =
      run("blocks --compare structures --hashes 7 --events 5000 --block-size 16 --no-timing");
  CHECK(structures.exit_code == 0);
  CHECK(structures.out.find("\n64-bit hashes ") != std::string::npos);
  const Ran hashes =
      run("blocks --compare hashes --hashes 7 --events 5000 --block-size 16 --no-timing");
  CHECK(hashes.exit_code == 0);
  CHECK(hashes.out.find("\nstride0 ") != std::string::npos);
  CHECK(run("blocks --compare apples").exit_code == 2);
}

TEST_CASE("Wrong use ends with one line and exit 2", "[sim][cli]") {
  for (const char* line :
       {"blocks --hashes x", "blocks --hashes 0", "blocks --events 0", "blocks --bits 0",
        "blocks --hash rot13", "blocks --layout round", "blocks --filter triple",
        "blocks --rng dice", "blocks --trace", "blocks --seeds 0", "blocks --no-such-option",
        "blocks --layout split --hashes 3", "blocks --layout blocked --hash crc32",
        "theory fill --keys 0", "theory ring --window 0", "blocks --bits -1"}) {
    INFO(line);
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  }
}

TEST_CASE("Without a command the commands are listed, and a wrong option says where help is",
          "[sim][cli]") {
  for (const auto& [line, listed] :
       {std::pair("", "\n  blocks "), std::pair("nonsense", "\n  blocks "),
        std::pair("theory", "\n  fill "), std::pair("theory x", "\n  fill ")}) {
    INFO(line);
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with("encore-sim: "));
    CHECK(ran.err.find("Usage: encore-sim ") != std::string::npos);
    CHECK(ran.err.find(listed) != std::string::npos);
  }
  CHECK(run("theory fill --no-such").err.find("(see encore-sim theory fill --help)") !=
        std::string::npos);
}

TEST_CASE("A mistyped command or option is told what was probably meant", "[sim][cli]") {
  for (const auto& [line, said] :
       {std::pair("blcks", "unknown command \"blcks\", did you mean \"blocks\"?\n"),
        std::pair("theory fil", "unknown command \"fil\", did you mean \"fill\"?\n"),
        std::pair("layuots", "unknown command \"layuots\", did you mean \"theory layouts\"?\n"),
        std::pair("apples", "unknown command \"apples\"\n"),
        std::pair("--versoin", "unknown option \"--versoin\", did you mean \"--version\"?\n"),
        std::pair("replay --cach-size=1MiB x",
                  "unknown option \"--cach-size\", did you mean \"--cache-size\"? (see encore-sim "
                  "replay --help)\n"),
        // A missing argument after it is not the reported fault.
        std::pair("tune --evicton=lru",
                  "unknown option \"--evicton\", did you mean \"--eviction\"? (see"),
        std::pair("theory pair --fpr 0.1",
                  "unknown option \"--fpr\" (see encore-sim theory pair --help)\n"),
        // Options stand behind their command.
        std::pair("--seed 1 blocks",
                  "unknown option \"--seed\", accepted: behind \"blocks\" (see encore-sim blocks "
                  "--help)\n"),
        std::pair("theory --no-such fill", "unknown option \"--no-such\" (see encore-sim theory"),
        std::pair("blocks apples", "unexpected argument \"apples\" (see encore-sim blocks")}) {
    const Ran ran = run(line);
    CHECK(ran.exit_code == 2);
    CHECK_THAT(ran.err, Catch::Matchers::StartsWith(std::string("encore-sim: ") + said));
  }
}

TEST_CASE("Help exists for every command, with an example", "[sim][cli]") {
  for (const auto& command : all_commands()) {
    const Ran ran = run(command->name() + " --help");
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.find("Example:") != std::string::npos);
    CHECK(ran.out.find("--json") != std::string::npos);
    CHECK(command->example().starts_with("encore-sim " + command->name()));
  }
}

TEST_CASE("The help of a group of commands has an example of its own", "[sim][cli]") {
  for (const std::string group : {"theory", "generate"}) {
    const Ran ran = run(group + " --help");
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, Catch::Matchers::Contains("Example:\n  encore-sim " + group + " "));
    CHECK_THAT(run("--help").out, !Catch::Matchers::Contains("see encore-sim " + group));
  }
}

TEST_CASE("Lists of numbers read as people write them", "[sim][cli]") {
  CHECK(parse_numbers("--hashes", "7") == std::vector<std::uint64_t>{7});
  CHECK(parse_numbers("--hashes", "1..3,8") == std::vector<std::uint64_t>{1, 2, 3, 8});
  for (const char* bad : {"", ",", "1,", "3..1", "1..", "..2", "x", "1..99999", "-1", "1..-1"}) {
    INFO(bad);
    CHECK(!parse_numbers("--hashes", bad));
  }
}

TEST_CASE("A progress line shows the share and the time that is left", "[sim][cli]") {
  CHECK(progress_line({.title = "replay: running", .done = 25, .total = 100, .seconds = 10}) ==
        "replay: running  [#####               ]  25 %  ETA 0:30");
  CHECK(progress_line({.title = "drive", .done = 25, .seconds = 10}) == "drive  25");
  CHECK(progress_line({.title = "stats: reading", .done = 5 << 20, .in_bytes = true}) ==
        "stats: reading  5MiB");
}

TEST_CASE("An interrupted replay says no speed, for how far each run came is not known",
          "[sim][cli]") {
  const Directory directory;
  const std::string trace = directory.at("trace.bin");
  REQUIRE(run("generate zipf --requests 20000 --objects 500 --no-timing -o " + trace).exit_code ==
          0);
  for (const bool stopped : {false, true}) {
    std::ostringstream out;
    std::ostringstream err;
    Monitor monitor;
    monitor.stop = stopped;
    CHECK(run_program({"replay", trace, "--cache-size", "100KiB", "--json"}, {out, err}, monitor) ==
          (stopped ? kExitInterrupted : 0));
    for (const char* speed : {"\"requests_per_cpu_second\"", "\"run_requests_per_cpu_second\""}) {
      CHECK((out.str().find(speed) == std::string::npos) == stopped);
    }
    CHECK(out.str().find("\"cpu_seconds\"") != std::string::npos);
  }
}

}  // namespace encore::sim
