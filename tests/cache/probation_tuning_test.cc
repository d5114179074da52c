#include "cache/probation_tuning.h"

#include "base/units.h"
#include "cache/probation_samples.h"
#include "tests/catch.h"

namespace encore::cache::test {
namespace {

KernelStatistics statistics_of(std::uint64_t entries, std::uint64_t live_bytes) {
  KernelStatistics statistics;
  statistics.waiting_max_bytes = kMiB;
  statistics.disk.entries = entries;
  statistics.disk.disks = {
      {.segments = 15, .segment_bytes = kMiB, .live_bytes = live_bytes},
      {.segments = 99, .segment_bytes = kMiB, .live_bytes = 0, .offline = true}};
  return statistics;
}

KernelOptions four_shards() {
  KernelOptions options;
  options.shards = 4;
  options.admission.filter = {.bits = 1000, .hashes = 8, .capacity = 100, .seed = {1, 2}};
  return options;
}

const ProbationTuning kBase{
    .whole = {.segment_bytes = 7, .move_share = 0.65, .fill = false, .wait_max = Nanoseconds(5)},
    .write_cost = 0.2};

}  // namespace

TEST_CASE("Samples are planned for the disks in service once their objects are known",
          "[cache][probation]") {
  CHECK_FALSE(next_tuning(statistics_of(255, kMiB), four_shards(), kBase, nullptr));
  CHECK_FALSE(next_tuning(statistics_of(256, 0), four_shards(), kBase, nullptr));
  KernelStatistics none_waits = statistics_of(256, kMiB);
  none_waits.waiting_max_bytes = 0;
  CHECK_FALSE(next_tuning(none_waits, four_shards(), kBase, nullptr));
  // Objects of 4 KiB: 16 MiB of disk and memory hold 4,096.
  const auto planned = next_tuning(statistics_of(256, kMiB), four_shards(), kBase, nullptr);
  REQUIRE(planned);
  CHECK(planned->rate == ProbationSamples::rate_for(4096));
  CHECK(planned->write_cost == 0.2);
  CHECK(planned->whole.memory_bytes == kMiB);
  CHECK(planned->whole.disk_bytes == 15 * kMiB);
  CHECK(planned->whole.segment_bytes == 0);
  CHECK(planned->whole.move_share == 0.65);
  CHECK(planned->whole.keys.bits == 4000);
  CHECK(planned->whole.keys.capacity == 400);
  CHECK_FALSE(planned->whole.fill);
  CHECK(planned->whole.wait_max == Nanoseconds(5));
  CHECK(ProbationSamples::create(
      {.whole = planned->whole, .rate = planned->rate, .write_cost = planned->write_cost}, {}));
}

TEST_CASE("Samples are taken anew for half or twice as many objects, other disks or costs",
          "[cache][probation]") {
  const auto taken = next_tuning(statistics_of(1024, 64 * kMiB), four_shards(), kBase, nullptr);
  REQUIRE(taken);
  const auto is_kept = [&](const KernelStatistics& statistics, const ProbationTuning& base) {
    return !next_tuning(statistics, four_shards(), base, &*taken);
  };
  KernelStatistics many = statistics_of(200'000, 64 * kMiB);
  const auto rate_of = [&](const KernelStatistics& statistics) {
    return next_tuning(statistics, four_shards(), kBase, nullptr)->rate;
  };
  CHECK(is_kept(statistics_of(1024, 64 * kMiB), kBase));
  REQUIRE(rate_of(many) < taken->rate / 2);
  CHECK_FALSE(is_kept(many, kBase));
  ProbationTuning dearer = kBase;
  dearer.write_cost = 0.3;
  CHECK_FALSE(is_kept(statistics_of(1024, 64 * kMiB), dearer));
  KernelStatistics larger = statistics_of(1024, 64 * kMiB);
  larger.disk.disks[0].segments = 16;
  CHECK_FALSE(is_kept(larger, kBase));
}

}  // namespace encore::cache::test
