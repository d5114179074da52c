// Arguments of the command line: numbers within their ranges, and messages that name the option,
// the value and the accepted ones.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/cli/numbers.h"
#include "sim/cli/memory_need.h"
#include "sim/cli/warmup.h"
#include "sim/report/chart_js.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {

namespace {

// The options of a command that take a number, by its help.
std::vector<std::string> number_options(const std::string& command) {
  std::vector<std::string> options;
  std::istringstream help(run(command + " --help").out);
  for (std::string line; std::getline(help, line);) {
    std::istringstream words(line);
    std::string name;
    std::string type;
    if (words >> name >> type && name.starts_with("--") &&
        (type.starts_with("N=") || type.starts_with("X="))) {
      options.push_back(name);
    }
  }
  return options;
}

// Those that take a list, a share or a size, and check it themselves.
const std::vector<std::pair<std::string, std::vector<std::string>>> kListOptions = {
    {"blocks", {"--hashes"}},
    {"theory fill", {"--hashes"}},
    {"theory codes", {"--hashes"}},
    {"theory pair", {"--hashes"}},
    {"theory ring", {"--generations"}},
    {"theory table", {"--bits-per-key", "--hashes"}},
    {"theory layouts", {"--bits-per-key", "--hashes"}},
    {"generate zipf -o /dev/null", {"--size", "--ttl"}},
    {"stats trace", {"--default-size", "--statuses"}},
    {"replay trace",
     {"--cache-size", "--capacity", "--fpr", "--min-requests", "--probability", "--size-threshold",
      "--rotate-after", "--max-object", "--warmup"}},
    {"tune trace", {"--cache-size", "--warmup"}},
    {"drive trace --config x", {"--ttl", "--max-size"}},
};

void check_value_refused(const std::string& command, const std::string& option,
                         const std::string& value) {
  for (const bool joined : {false, true}) {
    std::vector<std::string> arguments = words_of(command);
    if (joined) {
      arguments.push_back(option + "=" + value);
    } else {
      arguments.insert(arguments.end(), {option, value});
    }
    const Ran ran = run(arguments);
    INFO(command << " " << option << " \"" << value << "\"\n" << ran.err);
    CHECK(ran.out.empty());
    check_refused(ran, option);
    CHECK(ran.err.find("\"" + value + "\"") != std::string::npos);
    CHECK(ran.err.find("accepted") != std::string::npos);
  }
}

constexpr std::array kNoNumbers = {
    "-1", "-5", "1e30", "nan", "inf", "", "10x", "0x10", "99999999999999999999999"};

}  // namespace

TEST_CASE(
    "What is no number is refused by every option that takes one, by name, with what it takes",
    "[sim][cli][plain]") {
  std::size_t options = 0;
  for (const auto& command : all_commands()) {
    for (const std::string& option : number_options(command->name())) {
      for (const char* value : kNoNumbers) {
        check_value_refused(command->name(), option, value);
      }
      ++options;
    }
  }
  CHECK(options > 60);  // the help was understood
}

TEST_CASE("Lists, shares and sizes of the command line name the option too", "[sim][cli][plain]") {
  for (const auto& [command, options] : kListOptions) {
    for (const std::string& option : options) {
      for (const char* value : kNoNumbers) {
        check_value_refused(command, option, value);
      }
    }
  }
}

TEST_CASE("Numbers are decimal, and at their limits accepted", "[sim][cli]") {
  CHECK(parse_number("--bits", "010") == 10U);
  CHECK(parse_number("--bits", "18446744073709551615") == UINT64_MAX);
  CHECK(!parse_number("--bits", "18446744073709551616"));
  CHECK(parse_number("--bits", "8", {.min = 8, .max = 8}) == 8U);
  CHECK(parse_number("--bits", "9", {.min = 1, .max = 8}).error().message ==
        "--bits \"9\", accepted: a whole number from 1 to 8");
  CHECK(parse_real("--fpr", "1e-2") == 0.01);
  CHECK(parse_real("--fpr", "1", {.max = 1}) == 1.0);
  CHECK(parse_real("--fpr", "1", {.max = 1, .without_min = true, .without_max = true})
            .error()
            .message == "--fpr \"1\", accepted: a number above 0 and below 1");
}

TEST_CASE("A list of numbers keeps to its range", "[sim][cli]") {
  CHECK(!parse_numbers("--hashes", "1..9", {.min = 1, .max = 8}));
  CHECK(!parse_numbers("--hashes", "0..8", {.min = 1, .max = 8}));
}

TEST_CASE("Output that is lost is an error of every command", "[sim][cli][plain]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", "time,key,size\n1,a,10\n2,a,10\n3,b,10\n");
  const std::string config = directory.write("c.toml", "[admission]\nseed = \"01\"\n");
  for (const std::string& line : std::vector<std::string>{
           "blocks --events 100", "blocks --trace --hashes 2 --events 3000",
           "blocks --compare hashes --hashes 2 --events 100", "stats " + trace,
           "replay --cache-size 1KiB " + trace, "tune " + trace,
           "drive --config " + config + " " + trace, "--version", "--help", "theory --help"}) {
    check_output_is_checked(line + (line.starts_with("--") ? "" : " --no-timing"));
  }
  for (const auto& command : all_commands()) {
    check_output_is_checked(command->name() + " --help");
    if (command->name().starts_with("theory")) {
      check_output_is_checked(command->name() + " --no-timing");
      check_output_is_checked(command->name() + " --json --no-timing");
    }
    if (command->name().starts_with("generate")) {
      const std::string parts = command->name().ends_with("mixture") ? " --mix zipf=1" : "";
      check_output_is_checked(command->name() + parts + " --requests 10 --no-timing -o " +
                              directory.at("made"));
    }
  }
}

TEST_CASE("What memory cannot hold is refused with the amount", "[sim][cli]") {
  CHECK(check_memory({.what = "all of it", .bytes = 4096}, 4096));
  CHECK(!check_memory({.what = "a byte more", .bytes = 4097}, 4096));
  CHECK(check_memory({.what = "8 KiB", .bytes = 8192}, 4096).error().message ==
        "8 KiB take 8KiB of memory; available: 4KiB, reduce the sizes or the trace");
  CHECK(!check_memory({.what = "a lot", .bytes = 1e300}));
  CHECK(memory_there() > 0);
  const Directory directory;
  std::string lines = "time,key,size\n";
  for (int i = 0; i < 200; ++i) {
    lines += std::to_string(i) + ",a" + std::to_string(i % 7) + ",9999999999\n";
  }
  const std::string trace = directory.write("t.csv", lines);
  // More than any machine has: 500 TiB, 36 TiB, 46 TiB, 24 TiB, 9 TiB.
  check_refused(run("blocks --hash xxh3 --bits 4398046511104 --hashes 1..1000"),
                "of 4398046511104 bits (--bits)");
  check_refused(run("blocks --filter pair --capacity 1 --hashes 1 --events 1000000000000"),
                "the counts of 1000000000000 events");
  check_refused(run("blocks --compare structures --hashes 7 --events 500000000000"), "events");
  check_refused(
      run("replay --bits 4398046511104 --admission second-hit --cache-size 1KiB,2KiB,3KiB "
          "--eviction lru,sieve,fifo,lfu,slru,2q,arc,gdsf " +
          trace),
      "the filters of 24 runs (--bits or --capacity and --fpr");
  check_refused(
      run("replay --admission tinylfu --capacity 4400000000000 --cache-size 1KiB,2KiB " + trace),
      "");
  check_refused(
      run("drive --proxy http://127.0.0.1:1 --connections 1024 --max-size 9999999999 " + trace),
      "1024 bodies (--connections) of 9.3GiB");
}

TEST_CASE("The largest number ends a list of numbers", "[sim][cli]") {
  const auto one = parse_numbers("--n", "18446744073709551615");
  REQUIRE(one);
  CHECK(*one == std::vector<std::uint64_t>{UINT64_MAX});
  const auto three = parse_numbers("--n", "18446744073709551613..18446744073709551615");
  REQUIRE(three);
  CHECK(three->size() == 3);
  CHECK(three->back() == UINT64_MAX);
}

TEST_CASE("No file is written that is read, and none twice", "[sim][cli]") {
  const Directory directory;
  const std::string csv = "time,key,size\n0,a,10\n1,b,20\n2,a,10\n";
  const std::string trace = directory.write("trace.csv", csv);
  const std::string link = directory.at("link");
  std::filesystem::create_symlink(trace, link);
  for (const std::string& path : {trace, directory.at("./trace.csv"), link}) {
    for (const char* option : {"--json", "--html", "--svg", "--png"}) {
      const Ran ran = run("stats " + trace + " " + option + "=" + path);
      CHECK(ran.exit_code == 2);
      CHECK(ran.err.find(option) != std::string::npos);
      CHECK(ran.err.find(path) != std::string::npos);
    }
  }
  std::ostringstream kept;
  kept << std::ifstream(trace).rdbuf();
  CHECK(kept.str() == csv);
  const std::string once = directory.at("once");
  CHECK(run("stats " + trace + " --json=" + once + " --html " + once).exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(once));
  CHECK(run("stats " + trace + " --json=/dev/null --html /dev/null").exit_code == 0);
}

TEST_CASE("What cannot be meant is refused", "[sim][cli]") {
  const Directory directory;
  for (const char* name : {"t.csv.gz", "t.xz", "t.zip"}) {
    const Ran ran = run("generate zipf --requests 10 -o " + directory.at(name));
    CHECK(ran.exit_code == 2);
    CHECK(ran.err.find(".zst") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(directory.at(name)));
  }
  const std::string trace = directory.write("t.csv", "time,key,size\n1,a,10\n2,a,10\n");
  check_refused(run("replay " + trace + " --cache-size 1KiB --max-object 0"), "--max-object \"0\"");
  CHECK(run("theory ring --window 18446744073709551615").exit_code == 2);
  CHECK(run("theory ring --window 4503599627370496").exit_code == 0);
}

TEST_CASE("What belongs to a pair is refused for a single filter", "[sim][cli]") {
  for (const char* option : {"--generations 4", "--capacity 100", "--no-refresh"}) {
    const Ran ran = run("blocks --hashes 1 --events 1000 " + std::string(option));
    CHECK(ran.exit_code == 2);
    CHECK(ran.err.find("--filter pair") != std::string::npos);
  }
}

TEST_CASE("A rate that no key reaches has no capacity, and a note", "[sim][cli]") {
  const Ran ran = run("theory capacity --fpr 1e-30 --layout split --json");
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("\"capacity\": null") != std::string::npos);
  CHECK(ran.out.find("No key fits into a split filter") != std::string::npos);
}

TEST_CASE("A filter without refresh is sized for that", "[sim][cli]") {
  const Directory directory;
  const std::string trace = directory.write("trace.csv", "time,key,size\n0,a,10\n1,b,20\n2,a,10\n");
  const std::string command = "replay " + trace +
                              " --cache-size 1MiB --layout classic --fpr 0.5 --capacity 100000 "
                              "--no-timing --json";
  CHECK(run(command).out != run(command + " --no-refresh").out);
}

TEST_CASE("A warm-up must leave something to count", "[sim][cli]") {
  for (const char* share : {"1%", "20%", "99%", "0.5%"}) {
    const auto warmup = parse_warmup(share);
    REQUIRE(warmup);
    CHECK(warmup->requests == 0);
    CHECK(warmup->share > 0);
  }
  CHECK(warmup_requests(*parse_warmup("9"), 10) == 9U);
  CHECK(warmup_requests(*parse_warmup("99%"), 10) == 9U);
  CHECK(!warmup_requests(*parse_warmup("10"), 10));
  CHECK(!warmup_requests({}, 0));
  const Directory directory;
  const std::string trace = directory.write("t.csv", "time,key,size\n1,a,10\n2,a,10\n3,b,10\n");
  // Streamed, and held.
  for (const std::string size : {"1KiB", "50%"}) {
    const std::string replay = "replay " + trace + " --cache-size " + size + " --warmup ";
    CHECK(run(replay + "2").exit_code == 0);
    check_refused(run(replay + "3"),
                  "--warmup 3 leaves nothing to count: the trace has 3 requests");
    check_refused(run(replay + "18446744073709551615"), "the trace has 3 requests");
  }
}

TEST_CASE("A trace without a request is an error of every command that reads one", "[sim][cli]") {
  const Directory directory;
  const std::string post =
      directory.write("post.csv", "time,key,size,method\n1,a,10,POST\n2,b,10,POST\n");
  const std::string header = directory.write("header.csv", "time,key,size\n");
  const std::string config = directory.write("c.toml", "[admission]\nseed = \"01\"\n");
  for (const std::string& trace : {post, header}) {
    check_refused(run("stats " + trace), "no counted request");
    check_refused(run("replay " + trace + " --cache-size 1KiB"), "no counted request");
    check_refused(run("replay " + trace + " --cache-size 50%"), "no counted request");
    check_refused(run("replay " + trace + " --mrc 3 --eviction lru"), "no counted request");
    check_refused(run("tune " + trace), "no counted request");
    check_refused(run("drive " + trace + " --config " + config), "no counted request");
  }
  check_refused(run("stats " + post),
                "records, 2 are excluded (--methods, --statuses, --all-lines, --hosts), 0 are bad");
}

TEST_CASE("Sizes that the counters have no room for are refused, and large ones count in full",
          "[sim][cli]") {
  const Directory directory;
  // Two objects of 600 GiB do not fit into 1100 GiB together.
  constexpr std::uint64_t kLarge = std::uint64_t{600} << 30U;
  const auto two_of = [&](const std::string& name, std::uint64_t bytes) {
    const std::string size = std::to_string(bytes);
    return directory.write(name, "time,key,size\n1,a," + size + "\n2,b," + size + "\n3,a," + size +
                                     "\n4,b," + size + "\n");
  };
  const std::string replay = "replay --eviction lru --admission always --json --no-timing ";
  for (const char* how : {"", "--hold ", "--mrc 3 "}) {
    const std::string size = *how == '-' && how[2] == 'm' ? "" : "--cache-size 1100GiB ";
    CHECK(run(replay + size + how + two_of("large", kLarge)).exit_code == 0);
  }
  const Ran large = run(replay + "--cache-size 1100GiB " + two_of("large", kLarge));
  CHECK(large.out.find("\"hits\": 0,") != std::string::npos);
  CHECK(large.out.find("\"used_bytes\": " + std::to_string(kLarge)) != std::string::npos);
  // 1.5 TiB: a cache that takes it is refused, one that does not says that it is too large.
  const std::string huge = two_of("huge", std::uint64_t{3} << 39U);
  for (const char* how : {"--cache-size 4TiB", "--cache-size 4TiB --hold", "--cache-size 100%",
                          "--mrc 3", "--cache-size 4TiB --overhead 10"}) {
    INFO(how);
    check_refused(run(replay + how + " " + huge), "accepted: objects below a tebibyte");
  }
  check_refused(run("tune --cache-size 4TiB " + huge), "accepted: objects below a tebibyte");
  for (const char* how : {"--cache-size 1TiB", "--cache-size 4TiB --max-object 1GiB"}) {
    const Ran smaller = run(replay + how + " " + huge);
    CHECK(smaller.exit_code == 0);
    CHECK(smaller.out.find("\"too_large_or_full\": 4,") != std::string::npos);
  }
  std::string pebibytes = "time,key,size\n";
  for (int i = 0; i < 5000; ++i) {
    pebibytes += std::to_string(i) + ",k" + std::to_string(i) + ",1125899906842624\n";
  }
  const std::string many = directory.write("many", pebibytes);
  check_refused(run("stats " + many), "add up to more than 4 EiB");
  check_refused(run("replay --cache-size 1GiB " + many), "add up to more than 4 EiB");
  // Two sizes that are the same in 32 bits are two sizes.
  const std::string changed = directory.write("changed", "time,key,size\n1,a,1\n2,a,4294967297\n");
  CHECK(run("stats --json " + changed).out.find("\"size_changes\": 1") != std::string::npos);
}

TEST_CASE("Runs that differ in one number have names of their own", "[sim][cli]") {
  if (chart_js().empty()) {
    WARN("skipped: built without Chart.js");
    return;
  }
  const Directory directory;
  std::string lines = "time,key,size\n";
  for (int i = 0; i < 2000; ++i) {
    lines += std::to_string(i) + ",k" + std::to_string(i * i % 701) + ",100\n";
  }
  const std::string page = directory.at("page.html");
  const Ran ran = run("replay " + directory.write("t", lines) +
                      " --cache-size 10KiB --eviction lru --admission tinylfu,adaptsize --capacity "
                      "100,200 --interval 500 --json --no-timing --html " +
                      page);
  REQUIRE(ran.exit_code == 0);
  std::ifstream file(page);
  const std::string html((std::istreambuf_iterator<char>(file)), {});
  for (const char* name : {"lru, tinylfu c=100\"", "lru, tinylfu c=200\"", "lru, adaptsize c=100\"",
                           "lru, adaptsize c=200\""}) {
    CHECK(html.find(name) != std::string::npos);
  }
}

}  // namespace encore::sim
