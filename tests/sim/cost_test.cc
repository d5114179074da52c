// Policies that weigh the cost of a miss, by the figures that a report has of them.
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {

TEST_CASE("Each cost of a miss serves its own figure", "[sim][cost]") {
  const Directory directory;
  const std::string trace = directory.at("z.trace");
  REQUIRE(run("generate zipf --requests 800000 --objects 40000 --alpha 0.9 --size "
              "lognormal:16KiB:1.5 -o " +
              trace)
              .exit_code == 0);
  const auto policy = GENERATE(std::string("gdsf"), std::string("hyperbolic"));
  const Ran ran = run("replay " + trace + " --cache-size 256MiB --warmup 200000 --eviction " +
                      policy + "," + policy + "(cost=bytes)," + policy +
                      "(cost=latency) --admission always --miss-latency 50ms --bandwidth 1MiB "
                      "--json");
  REQUIRE(ran.exit_code == 0);
  const auto rows = nlohmann::json::parse(ran.out)["rows"];
  REQUIRE(rows.size() == 3);
  const auto figure = [&](std::size_t row, const char* key) {
    return rows[row][key].get<double>();
  };
  CHECK(rows[2]["eviction"] == policy + "(cost=latency)");
  for (const std::size_t other : {1U, 2U}) {
    CHECK(figure(0, "object_hit_ratio") > figure(other, "object_hit_ratio") + 0.01);
  }
  for (const std::size_t other : {0U, 2U}) {
    CHECK(figure(1, "byte_hit_ratio") > figure(other, "byte_hit_ratio") + 0.005);
  }
  for (const std::size_t other : {0U, 1U}) {
    CHECK(figure(2, "mean_latency_ms") < figure(other, "mean_latency_ms") - 0.1);
  }
}

TEST_CASE("A policy that weighs the time of a fetch needs it", "[sim][cost]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", "key,size\na,1\n");
  const std::string command = "replay " + trace + " --eviction gdsf(cost=latency)";
  check_refused(run(command), "replay with --miss-latency or --bandwidth");
  check_refused(run("tune " + trace + " --eviction lhd(cost=latency)"),
                "replay with --miss-latency or --bandwidth");
  CHECK(run(command + " --miss-latency 1ms").exit_code == 0);
  CHECK(run(command + " --bandwidth 1MiB").exit_code == 0);
  check_refused(run("replay " + trace + " --eviction gdsf(cost=2)"),
                "gdsf(cost=2), accepted: 1, latency, bytes");
}

}  // namespace encore::sim
