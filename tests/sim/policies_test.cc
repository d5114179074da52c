// Eviction policies and their parameters on the command line.
#include <string>

#include "cache/eviction_name.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

// Objects of which some come again soon, some later, many never.
std::string trace_in(const Directory& directory) {
  std::string text = "time,key,size\n";
  for (int i = 0; i < 4000; ++i) {
    const int object = i % 4 == 0 ? 1000 + i : i % 4 == 1 ? i / 4 % 25 : i / 8 * 7 % 90;
    text += std::to_string(i) + ",k" + std::to_string(object) + "," +
            std::to_string(1 + object % 9) + "\n";
  }
  return directory.write("t.csv", text);
}

std::string replay_of(const std::string& eviction, const std::string& trace) {
  return "replay --no-timing --cache-size 200 --admission always --eviction " + eviction + " " +
         trace;
}

}  // namespace

TEST_CASE("A policy is replayed with parameters, and the report names them", "[sim]") {
  const Directory directory;
  const std::string trace = trace_in(directory);
  const Ran ran =
      run(replay_of("s3-fifo(ghost=2,small=50%),s3-fifo,lecar(learning-rate=1)", trace));
  CHECK(ran.err.empty());
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("s3-fifo(small=0.5,ghost=2)") != std::string::npos);
  CHECK(ran.out.find("lecar(learning-rate=1)") != std::string::npos);
  CHECK(run(replay_of("slru(protected=0.8)", trace)).out.find("slru(protected=0.8)") !=
        std::string::npos);
  // Only the values differ from what the defaults give.
  const auto hits = [&](const std::string& eviction) {
    const std::string out = run(replay_of(eviction + " --json", trace)).out;
    return out.substr(out.find("\"hits\""), 30);
  };
  CHECK(hits("s3-fifo(small=0.1,ghost=1,promote=2)") == hits("s3-fifo"));
  CHECK(hits("s3-fifo(small=0.9)") != hits("s3-fifo"));
}

TEST_CASE("A wrong parameter of a policy ends the command, and names what is accepted", "[sim]") {
  const Directory directory;
  const std::string trace = trace_in(directory);
  const auto refusal = [&](const std::string& command) {
    const Ran ran = run(command);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refusal(replay_of("lru,s3-fifo(smal=0.1)", trace))
            .find("--eviction: s3-fifo has no parameter \"smal\", did you mean \"small\"?") !=
        std::string::npos);
  CHECK(refusal(replay_of("s3-fifo(small=7)", trace)).find("accepted: 0.0001 to 0.9999") !=
        std::string::npos);
  CHECK(refusal(replay_of("s3-fifo(small=0.1,lru", trace)).find("has no \")\"") !=
        std::string::npos);
  CHECK(refusal("tune --cache-size 100 --eviction lhd(sample=0) " + trace)
            .find("lhd(sample=0), accepted: a whole number, 1 to 65536") != std::string::npos);
}

TEST_CASE("The command policies lists each policy and each parameter", "[sim]") {
  const Ran ran = run("policies --json");
  REQUIRE(ran.exit_code == 0);
  for (std::size_t i = 0; i < cache::kEvictionPolicyCount; ++i) {
    const auto policy = static_cast<cache::EvictionPolicy>(i);
    CHECK(ran.out.find("\"" + std::string(to_string(policy)) + "\"") != std::string::npos);
    for (const cache::PolicyParameter& parameter : cache::parameters_of(policy)) {
      CHECK(ran.out.find(parameter.meaning) != std::string::npos);
    }
  }
}

}  // namespace encore::sim
