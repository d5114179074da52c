#include "tests/catch.h"

#include "tests/simulate/attempt.h"

namespace encore::simulate {
namespace {

Plan plan_of(std::uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.direction = seed % 2 == 0 ? Direction::kForward : Direction::kReverse;
  plan.requests = 1500;
  return plan;
}

}  // namespace

TEST_CASE("The same seed is the same run, step by step", "[simulate]") {
  std::uint64_t secured = 0;
  // The last is one whose origins speak TLS.
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL, 4ULL, 31ULL}) {
    const RoundResult once = run_round(plan_of(seed));
    // Other addresses, other memory: nothing of that may decide anything.
    const std::vector<std::string> elsewhere(1000 * seed, std::string(100, 'x'));
    const RoundResult again = run_round(plan_of(seed));
    const RoundResult apart = attempt(plan_of(seed));
    INFO("seed " << seed << ": " << once.finding << " " << once.text);
    CHECK(once.finding.empty());
    CHECK(once.digest == again.digest);
    CHECK(once.digest == apart.digest);
    CHECK(once.counters == again.counters);
    CHECK(once.steps == again.steps);
    if (once.counters.contains("tls: origins' connections")) ++secured;
  }
  CHECK(secured > 0);
}

TEST_CASE("Other seeds are other runs", "[simulate]") {
  CHECK(run_round(plan_of(1)).digest != run_round(plan_of(3)).digest);
}

TEST_CASE("Features that are left out do not happen", "[simulate]") {
  Plan plan = plan_of(2);
  plan.requests = 4000;
  for (std::size_t i = 0; i < kFeatures; ++i) plan.features.remove(static_cast<Feature>(i));
  const RoundResult calm = run_round(plan);
  INFO(calm.finding << " " << calm.text);
  CHECK(calm.finding.empty());
  for (const char* name :
       {"purges", "drains", "reloads: another configuration", "shortages of descriptors",
        "steps of the wall clock", "request: half-closed", "origin: cut"}) {
    INFO(name);
    CHECK(!calm.counters.contains(name));
  }
}

}  // namespace encore::simulate
