// The block experiment with filters that grow, count or lie in buckets.
#include <cmath>
#include <vector>

#include "filter/scalable_theory.h"
#include "sim/replay/block_experiment.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

BlockWorkload workload_of(std::uint64_t seed) {
  BlockWorkload workload;
  workload.seed = seed;
  workload.block_bytes = 32;
  workload.reused_blocks = 1000;
  workload.events = 20'000;
  return workload;
}

BlockFilter filter_of(BlockKind kind) {
  BlockFilter filter;
  filter.hash = {.family = filter::HashFamily::kXxh3};
  filter.bits = 100'000;
  filter.hashes = 4;
  filter.other = {.kind = kind, .capacity = 500, .fpr = 0.05};
  return filter;
}

BlockResult run_seeds(const BlockFilter& filter) {
  std::vector<BlockResult> results;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto run = run_blocks(workload_of(seed), {&filter, 1});
    REQUIRE(run);
    results.push_back(std::move(run->front()));
  }
  for (std::size_t i = 1; i < results.size(); ++i) {
    results.front().add(results[i]);
  }
  return results.front();
}

}  // namespace

TEST_CASE("Every kind of filter answers new blocks as often as its bits and theory say",
          "[sim][blocks][theory]") {
  for (const BlockKind kind :
       {BlockKind::kScalable, BlockKind::kGrowable, BlockKind::kCounting, BlockKind::kBucketed}) {
    CAPTURE(to_string(kind));
    const BlockFilter filter = filter_of(kind);
    const BlockResult result = run_seeds(filter);
    CHECK(std::abs(result.all.z().value_or(0)) < 4.5);
    CHECK(std::abs(result.one_off.z().value_or(0)) < 4.5);
    CHECK(result.called_new == 0);
    CHECK(result.all.by_theory() == Approx(result.all.by_bits()).epsilon(0.02));
    CHECK(result.all.false_positives > 1000);
    if (kind == BlockKind::kScalable) {
      CHECK(result.fpr_theory_end < filter.other.fpr);
      CHECK(result.slices > 4);
    }
    if (kind == BlockKind::kGrowable) {
      CHECK(result.fpr_theory_end > 10 * filter.other.fpr);
    }
  }
}

TEST_CASE("A bucket for each few keys costs what blocks cost, one bucket nothing",
          "[sim][blocks][theory]") {
  BlockFilter single = filter_of(BlockKind::kSingle);
  BlockFilter one = filter_of(BlockKind::kBucketed);
  one.other.buckets = 1;
  BlockFilter many = one;
  many.other.buckets = 200;
  const BlockResult alone = run_seeds(single);
  CHECK(run_seeds(one).all.by_theory() == Approx(alone.all.by_theory()).epsilon(0.01));
  CHECK(run_seeds(many).all.by_theory() > 1.02 * alone.all.by_theory());
}

TEST_CASE("blocks runs every kind by name, and refuses what says nothing to it", "[sim][cli]") {
  const std::string few = " --events 3000 --reused-blocks 100 --block-size 16 --no-timing --json";
  for (const std::string kind : {"scalable", "growable", "counting", "bucketed"}) {
    INFO(kind);
    const bool grows = kind == "scalable" || kind == "growable";
    const Ran ran = run("blocks --filter " + kind + (grows ? "" : " --hashes 3,4") + few);
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.find("\"filter\": \"" + kind + "\"") != std::string::npos);
  }
  check_refused(run("blocks --filter heap" + few),
                "accepted: single, pair, scalable, growable, counting, bucketed");
  check_refused(run("blocks --filter scalable --bits 1000" + few),
                "--bits with --filter scalable, accepted: --filter single, pair, counting");
  check_refused(run("blocks --filter counting --fpr 0.1" + few),
                "--fpr with --filter counting, accepted: --filter scalable, growable");
  check_refused(run("blocks --filter single --buckets 3" + few), "accepted: --filter bucketed");
  check_refused(run("blocks --filter counting --hash cut32" + few), "accepted: a good hash");
  check_refused(run("blocks --filter counting --hash chained" + few), "accepted: one of 128 bits");
  check_refused(run("blocks --filter bucketed --layout split" + few), "accepted: classic");
  check_refused(run("blocks --filter counting --compare hashes" + few),
                "accepted: --filter single, pair");
}

TEST_CASE("The theory of kinds shows its figures", "[sim][cli][theory]") {
  const Ran scalable = run("theory scalable --capacity 1000 --fpr 0.01 --keys 1000000 --no-timing");
  CHECK(scalable.exit_code == 0);
  const filter::ScalableForecast forecast =
      filter::forecast({.seed = {}, .capacity = 1000, .fpr = 0.01}, 1e6);
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.2f  %.6f", forecast.bits / 1e6, forecast.fpr);
  CHECK(scalable.out.find(shown) != std::string::npos);
  const Ran counting = run("theory counting --keys 990210 --bits 10000000 --hashes 7 --no-timing");
  CHECK(counting.exit_code == 0);
  CHECK(counting.out.find("1.368") != std::string::npos);
  const Ran merged = run("theory union --keys 99021 --others 99021 --bits 1000000 --hashes 7");
  CHECK(merged.exit_code == 0);
  CHECK(merged.out.find("50.000 %  75.000 %  25.000 %") != std::string::npos);
  const Ran kinds = run("theory kinds --keys 100000 --fpr 0.01 --capacity 1000");
  CHECK(kinds.exit_code == 0);
  for (const char* line :
       {"theory scalable --fpr 0", "theory scalable --growth 0.5", "theory scalable --tightening 1",
        "theory scalable --capacity 0", "theory counting --layout round",
        "theory counting --hashes 0", "theory union --common 5 --keys 4", "theory union --bits 0",
        "theory kinds --fpr 1", "theory kinds --keys 0"}) {
    INFO(line);
    CHECK(run(line).exit_code == 2);
  }
}

}  // namespace encore::sim
