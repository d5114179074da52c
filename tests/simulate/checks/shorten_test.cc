#include "tests/catch.h"

#include "tests/simulate/attempt.h"

namespace encore::simulate {
namespace {

// Needs forty requests of six clients to three URLs, and resets; its finding comes before the last
// of the forty, as one does that a reload or a drain has to do with.
RoundResult run_of(const Plan& plan) {
  RoundResult out;
  out.requests = plan.requests;
  const bool fails = plan.requests >= 40 && plan.clients >= 6 && plan.urls >= 3 &&
                     plan.features.has(Feature::kReset);
  if (!fails) return out;
  out.finding = "lost";
  out.text = "of " + std::to_string(plan.requests);
  out.requests = 31;
  return out;
}

}  // namespace

TEST_CASE("What a failing run is shortened to has failed as it is", "[simulate]") {
  Plan plan;
  plan.requests = 5000;
  const RoundResult failed = run_of(plan);
  REQUIRE(failed.finding == "lost");
  for (const std::uint32_t attempts : {0U, 1U, 2U, 3U, 5U, 10U, 30U, 80U, 1000U}) {
    INFO("in " << attempts << " attempts");
    std::uint32_t made = 0;
    const Shortened found = shorten(plan, failed, attempts, [&](const Plan& tried) {
      ++made;
      return run_of(tried);
    });
    CHECK(made <= attempts);
    const RoundResult again = run_of(found.plan);
    CHECK(again.finding == "lost");
    CHECK(again.text == found.result.text);
  }
}

TEST_CASE("A failing run is shortened to what it needs", "[simulate]") {
  Plan plan;
  plan.requests = 5000;
  const Shortened found = shorten(plan, run_of(plan), 1000, run_of);
  CHECK(found.plan.requests < 160);
  CHECK(found.plan.clients == 6);
  CHECK(found.plan.urls < 9);
  for (std::size_t i = 0; i < kFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    INFO(to_string(feature));
    CHECK(found.plan.features.has(feature) == (feature == Feature::kReset));
  }
}

TEST_CASE("Another finding on the way is none of the one that is shortened", "[simulate]") {
  Plan plan;
  plan.requests = 5000;
  const Shortened found = shorten(plan, run_of(plan), 1000, [](const Plan& tried) {
    RoundResult out = run_of(tried);
    if (tried.requests < 1000) out.finding = "another";
    return out;
  });
  CHECK(found.result.finding == "lost");
  CHECK(found.plan.requests >= 1000);
}

}  // namespace encore::simulate
