#include "tests/catch.h"
#include "tests/disk/model/crash_model.h"

namespace encore::disk {

// A share of what `./dev crash` runs.
TEST_CASE("whatever a crash leaves, only what was promised is found", "[disk][crash][plain]") {
  CrashReport sum;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const CrashReport report = run_crash_model({.seed = seed, .steps = 120, .subsets = 3});
    INFO(report.fault.value_or(""));
    REQUIRE_FALSE(report.fault);
    sum.images += report.images;
    sum.records += report.records;
    sum.heads += report.heads;
    sum.scanned += report.scanned;
    sum.turns += report.turns;
    sum.moved += report.moved;
    sum.moved_parts += report.moved_parts;
    sum.purges += report.purges;
  }
  CHECK(sum.images > 5'000);
  CHECK(sum.records > 10 * sum.images);
  CHECK(sum.heads > sum.images);
  CHECK(sum.scanned > sum.images / 2);
  CHECK(sum.turns > 100);
  CHECK(sum.moved > 20);
  CHECK(sum.moved_parts > 5);
  CHECK(sum.purges > 50);
}

}  // namespace encore::disk
