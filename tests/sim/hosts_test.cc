// Requests of some hosts, out of a log of all.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"
#include "tests/sim/trace_bytes.h"

namespace encore::sim {
namespace {

TEST_CASE("--hosts counts the URLs of these hosts", "[sim][trace]") {
  const Directory directory;
  const std::string trace = directory.write(
      "t.csv",
      "key,size\nhttp://a.example/1,1\nhttps://A.example:8443/2,1\na.example/3,1\n"
      "http://www.a.example?x,1\nhttp://nota.example/5,1\nhttp://b.test/a.example,1\n/7,1\n"
      "http://[::1]:80/8,1\n");
  const auto [hosts, requests] = GENERATE(table<std::string, int>({{"a.example", 3},
                                                                   {".a.example", 1},
                                                                   {"a.example,.a.example", 4},
                                                                   {".example", 5},
                                                                   {"B.TEST", 1},
                                                                   {"[::1]", 1}}));
  CAPTURE(hosts);
  const Ran ran = run("stats --json --hosts " + hosts + " " + trace);
  REQUIRE(ran.exit_code == 0);
  CHECK(nlohmann::json::parse(ran.out)["rows"][0]["requests"] == requests);
}

TEST_CASE("--hosts says where it finds nothing, or cannot", "[sim][trace]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", "key,size\nhttp://a.example/1,1\n");
  const Ran none = run("stats --hosts c.example " + trace);
  check_refused(none, "the trace has no counted request");
  CHECK(none.err.find("--hosts") != std::string::npos);
  const std::string binary = directory.write("t.bin", little(1, 8) + little(2, 8));
  check_refused(run("stats --format int64-little --hosts a.example " + binary), "numbers for keys");
  check_refused(run("stats --hosts a,,b " + trace), "--hosts");
}

}  // namespace
}  // namespace encore::sim
