// The kernel with disks against a naive model, over random sequences of
// everything a caller can do; and what of each history a crash leaves.
#include "tests/cache/disk_driver.h"

namespace encore::cache::test {
namespace {

KernelOptions disk_options(std::uint64_t seed) {
  KernelOptions options = plain_options(seed % 4 == 0 ? 4000 : 30'000);
  options.eviction = EvictionPolicy::kFifo;
  options.shards = seed % 2 == 0 ? 4 : 1;
  options.variants_max = 3;
  options.disks = {{.segments = 8, .segment_bytes = 64 * 1024}};
  if (seed % 3 == 0) {
    options.disks.push_back({.segments = 6, .segment_bytes = 64 * 1024});
  }
  return options;
}

}  // namespace

TEST_CASE(
    "The kernel with disks does what the naive model does, and a crash "
    "loses nothing else",
    "[cache][disk]") {
  const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{13}));
  INFO("seed " << seed);
  Driver driver(disk_options(seed), seed);
  bool same = true;
  bool sound = true;
  int steps = 0;
  for (; same && sound && steps < 20'000; ++steps) {
    same = driver.step();
    sound = steps % 50 != 0 || driver.recovers();
  }
  INFO("after " << steps << " operations, the last one of kind " << driver.last());
  CHECK(same);
  CHECK(sound);
  CHECK(driver.seen.hits > 100);
  CHECK(driver.seen.moves > 0);
  CHECK(driver.seen.drops > 0);
  CHECK(driver.seen.superseded > 0);
  CHECK(driver.seen.tombstones > 10);
  CHECK(driver.seen.found_again > 1000);
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kPlaced));
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kNoSegment));
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kTooLarge));
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kVariants));
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kQueueFull));
  CHECK(driver.seen.outcomes.contains(DiskOutcome::kShortLived));
  CHECK(driver.seen.purged > 40);
  CHECK(driver.seen.alone > 100);
  CHECK(driver.seen.refused > 10);
  CHECK(driver.seen.parts_found > 100);
  CHECK(driver.seen.parts_moved > 0);
  CHECK(driver.seen.parts_dropped > 0);
  CHECK(driver.seen.parts_found_again > 100);
  for (const DiskOutcome outcome :
       {DiskOutcome::kPlaced, DiskOutcome::kNoSegment, DiskOutcome::kTooLarge,
        DiskOutcome::kQueueFull, DiskOutcome::kShortLived}) {
    CHECK(driver.seen.part_outcomes.contains(outcome));
  }
  // This happens if the memory is small.
  CHECK((seed % 4 != 0 || driver.seen.part_outcomes.contains(DiskOutcome::kIndexFull)));
}

}  // namespace encore::cache::test
