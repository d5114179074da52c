// Bodies in parts, with everything else as it is in service.
#include <string>

#include "base/units.h"
#include "cache/disk_parts.h"
#include "tests/catch.h"
#include "tests/disk/model/served.h"

namespace encore::disk {
namespace {

std::uint64_t parts_in(const Served& served) { return served.kernel().statistics().disk.parts; }

std::uint64_t parts_written(Served& served) {
  return served.kernel().statistics().disk.counters.parts_placed;
}

}  // namespace

TEST_CASE("a body in parts is loaded whole, also after a stop and after a kill", "[disk]") {
  const auto engine = GENERATE(ServedEngine::kInline, ServedEngine::kSteps);
  Served served({.engine = engine}, 1);
  REQUIRE(served.start().empty());
  served.run();
  std::uint64_t parts = 0;
  for (std::uint64_t key = 0; key < 12; ++key) {
    // Bodies of one byte, of exactly two parts, and others.
    const std::uint64_t bytes = key == 0 ? 1 : key == 2 ? 40'000 : 15'000 * key;
    REQUIRE(served.upload({key, 0}, bytes));
    const std::uint64_t each = key % 2 == 0 ? 20'000 : 68'000;
    parts += (bytes + each - 1) / each;
  }
  CHECK(served.counts.parts == parts);
  CHECK(parts_in(served) == parts);
  CHECK_FALSE(served.load({1, 0}));
  served.settle();
  for (int life = 0; life < 3; ++life) {
    const std::uint64_t heads = served.counts.heads;
    for (std::uint64_t key = 0; key < 12; ++key) CHECK(served.load({key, 0}));
    served.run();
    CHECK(served.counts.heads == heads + 12);
    if (life == 0) REQUIRE(served.stop());
    if (life == 1) served.kill();
    if (life == 2) break;
    REQUIRE(served.start().empty());
    served.run();
    CHECK(parts_in(served) == parts);
  }
  CHECK(served.counts.incomplete == 0);
  CHECK(served.fault().empty());
}

TEST_CASE("a part that is gone takes its head with it, for good", "[disk]") {
  const bool is_damaged = GENERATE(false, true);
  CAPTURE(is_damaged);
  Served served({}, 2);
  REQUIRE(served.start().empty());
  served.run();
  REQUIRE(served.upload({1, 0}, 150'000));
  REQUIRE(served.upload({3, 0}, 150'000));
  served.settle();
  CHECK(served.load({1, 0}));
  CHECK(served.load({3, 0}));
  served.run();
  REQUIRE(served.counts.heads == 2);
  const auto part = served.part_key({1, 0}, 1);
  const auto place = served.kernel().find_part(part, {});
  REQUIRE(place);
  if (is_damaged) {
    served.flip(*place, kPageBytes + 1000);
  } else {
    CHECK_FALSE(served.kernel().lost(part, *place, {}));
  }
  CHECK(served.load({1, 0}));
  served.run();
  CHECK(served.counts.heads == 2);
  CHECK(served.counts.incomplete == 1);
  CHECK(served.damaged() == (is_damaged ? 1 : 0));
  CHECK_FALSE(served.kernel().find_part(part, {}));
  CHECK_FALSE(served.find({1, 0}));
  CHECK(served.load({3, 0}));
  served.run();
  CHECK(served.counts.heads == 3);
  REQUIRE(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  CHECK_FALSE(served.find({1, 0}));
  CHECK(served.find({3, 0}));
  CHECK(served.fault().empty());
}

TEST_CASE("a head with new times has the parts of the one before", "[disk]") {
  Served served({}, 3);
  REQUIRE(served.start().empty());
  served.run();
  REQUIRE(served.upload({1, 0}, 150'000));
  served.settle();
  CHECK(served.load({1, 0}));
  served.run();
  const std::uint64_t written = parts_written(served);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(served.freshen_one());
    served.settle();
  }
  CHECK(served.load({1, 0}));
  served.run();
  CHECK(served.counts.heads == 2);
  CHECK(parts_written(served) == written);
  REQUIRE(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  CHECK(served.missing().empty());
  CHECK(served.counts.checked == 1);
  CHECK(served.fault().empty());
}

TEST_CASE("parts of nothing leave with their segments", "[disk]") {
  Served served({.disk_bytes = 2'500'000U, .segment_bytes = 128U << 10U, .keys = 400}, 4);
  REQUIRE(served.start().empty());
  served.run();
  for (int i = 0; i < 5; ++i) {
    served.begin_upload({1, 0}, 150'000);
    CHECK(served.upload_one());
    served.give_up();
  }
  // One that is replaced, too.
  REQUIRE(served.upload({2, 0}, 30'000));
  served.commit({2, 0}, 100);
  served.settle();
  CHECK(parts_in(served) >= 5);
  // Once around.
  for (std::uint64_t key = 10; key < 400; ++key) {
    served.commit({key, 0}, 10'000);
    if (key % 10 == 9) served.settle();
  }
  CHECK(parts_in(served) == 0);
  CHECK(served.fault().empty());
}

TEST_CASE("a part as long as the proxy's is moved while it is read", "[disk]") {
  Served served({.disk_bytes = 60 * kMiB,
                 .segment_bytes = 8 * kMiB,
                 .keys = 16,
                 .part_bytes = cache::kPartBytes},
                5);
  // Also where a start has found it.
  for (std::uint64_t life = 0; life < 2; ++life) {
    REQUIRE(served.start().empty());
    served.run();
    const auto before = served.counts;
    for (std::uint64_t key = life; key < 16; ++key) {
      REQUIRE(served.upload({key, 0}, cache::kPartBytes));
      served.deliver();
      for (int second = 0; second < 3; ++second) {
        served.run_writes();
        served.tick();
      }
      served.settle();
      // Its head is read before the next one comes, its part behind that.
      CHECK(served.load({0, 0}));
      served.run_read();
    }
    served.run();
    CHECK(served.counts.heads == before.heads + 16 - life);
    CHECK(served.counts.incomplete == before.incomplete);
    REQUIRE(served.stop());
    CHECK(served.counts.moved_bytes > before.moved_bytes + cache::kPartBytes);
  }
  CHECK(served.fault().empty());
}

}  // namespace encore::disk
