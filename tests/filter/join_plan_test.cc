#include "filter/join_plan.h"

#include <cmath>
#include <numbers>

#include "filter/theory.h"
#include "tests/catch.h"

namespace encore::filter {
namespace {

// Every size and number of hashes, one after the other.
JoinPlan tried(double keys, double absent_bytes) {
  JoinPlan best{.bits = 0, .hashes = 0, .fpr = 1, .bytes = absent_bytes};
  for (std::uint32_t hashes = 1; hashes <= 30; ++hashes) {
    for (std::uint64_t bytes = 1; bytes <= 4000; ++bytes) {
      const double p = fpr({Layout::kClassic, 8 * bytes, hashes}, keys);
      const double sent = static_cast<double>(bytes) + absent_bytes * p;
      if (sent < best.bytes) {
        best = {.bits = 8 * bytes, .hashes = hashes, .fpr = p, .bytes = sent};
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("the plan of a join takes the fewest bytes of all filters", "[filter][theory]") {
  for (const double keys : {1.0, 10.0, 300.0, 1000.0}) {
    for (const double absent : {0.0, 1.0, 100.0, 2000.0, 50'000.0, 1e6}) {
      CAPTURE(keys, absent);
      const JoinPlan plan = plan_join(keys, absent);
      const JoinPlan best = tried(keys, absent);
      CHECK(plan.bytes == Approx(best.bytes).epsilon(1e-9));
      CHECK(plan.bits == best.bits);
      CHECK(plan.hashes == best.hashes);
      CHECK(plan.fpr == Approx(best.fpr).epsilon(1e-9));
    }
  }
}

TEST_CASE("the plan of a large join is near the closed form", "[filter][theory]") {
  constexpr double kLn2 = std::numbers::ln2;
  const double keys = 1e6;
  const double absent = 1e8;
  const double bits = keys / (kLn2 * kLn2) * std::log(8 * kLn2 * kLn2 * absent / keys);
  const JoinPlan plan = plan_join(keys, absent);
  CHECK(static_cast<double>(plan.bits) == Approx(bits).epsilon(0.02));
  CHECK(plan.hashes == Approx(bits / keys * kLn2).margin(1));
  CHECK(join_bytes({plan.bits, plan.hashes}, keys, absent) == Approx(plan.bytes).epsilon(1e-12));
  // Few absent keys are sent as they are.
  CHECK(plan_join(1e6, 1000).bits == 0);
  CHECK(plan_join(0, 1000).bytes == 1000);
}

}  // namespace encore::filter
