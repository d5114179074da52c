#include "proxy/disk/disks.h"

#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/disk/model/served.h"

namespace encore::disk {

TEST_CASE("what was written is loaded, and found again after a clean stop", "[disk]") {
  const auto engine = GENERATE(ServedEngine::kInline, ServedEngine::kSteps);
  Served served({.engine = engine}, 1);
  REQUIRE(served.start().empty());
  served.run();
  for (std::uint64_t key = 0; key < 20; ++key) served.commit({key, 0}, 1000 * key);
  CHECK_FALSE(served.load({1, 0}));
  served.settle();
  for (std::uint64_t key = 0; key < 20; ++key) CHECK(served.load({key, 0}));
  served.run();
  CHECK(served.counts.done == 20);
  REQUIRE(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  CHECK(served.missing().empty());
  CHECK(served.counts.checked == 20);
  CHECK(served.fault().empty());
}

TEST_CASE("no number of a body is given twice, in whatever life", "[disk]") {
  std::set<std::uint64_t> numbers;
  Served served({}, 1);
  for (int life = 0; life < 6; ++life) {
    // The clock stands still.
    REQUIRE(served.start() == "");
    served.run();
    for (int i = 0; i < 100; ++i) numbers.insert(served.disks().new_body_number());
    // So much of it reaches the disk that there may be parts.
    served.commit({0, 0}, 100);
    served.deliver();
    served.run();
    if (life % 2 == 0) {
      REQUIRE(served.stop());
    } else {
      served.kill();
    }
  }
  CHECK(numbers.size() == 600);
  CHECK_FALSE(numbers.contains(0));
}

namespace {

constexpr std::uint64_t kSeeds = 24;

}  // namespace

TEST_CASE("what was dropped with its segment is forgotten on the disk, too", "[disk]") {
  Served served({.disk_bytes = 2'500'000U, .segment_bytes = 128U << 10U, .keys = 400}, 1);
  REQUIRE(served.start().empty());
  served.run();
  // Once around, and what nobody asked for goes.
  for (std::uint64_t key = 0; key < 400; ++key) {
    served.commit({key, 0}, 10'000);
    if (key % 10 == 9) served.settle();
  }
  served.settle();
  std::uint64_t dropped = 0;
  for (std::uint64_t key = 0; key < 400; ++key) {
    if (served.find({key, 0})) continue;
    ++dropped;
    // The kernel sees nothing that would have to be remembered.
    served.invalidate(key, true);
  }
  CHECK(dropped > 100);
  CHECK(served.counts.purges == 0);
  served.settle();
  served.kill();
  REQUIRE(served.start().empty());
  // It is seen as soon as it is loaded; later it would be dropped again.
  served.run_reads();
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < 400; ++key) found += served.load({key, 0}) ? 1U : 0U;
  served.run_reads();
  CAPTURE(served.fault());
  CHECK(served.fault().empty());
  CHECK(found == 400 - dropped);
}

TEST_CASE("a purge is forgotten when all that it is of has been overwritten", "[disk]") {
  Served served({.disk_bytes = 2'500'000U, .segment_bytes = 128U << 10U, .keys = 400}, 2);
  REQUIRE(served.start().empty());
  served.run();
  const auto entries = [&] { return served.disks().statistics().disks[0].purge_log_entries; };
  for (std::uint64_t key = 0; key < 100; ++key) served.commit({key, 0}, 1'000);
  served.settle();
  for (std::uint64_t key = 0; key < 100; ++key) served.invalidate(key, true);
  served.settle();
  CHECK(entries() >= 100);
  // Three times around.
  for (std::uint64_t key = 0; key < 800; ++key) {
    served.commit({100 + key % 300, 0}, 10'000);
    if (key % 10 == 9) served.settle();
  }
  served.settle();
  CHECK(entries() < 100);
  CHECK(served.fault().empty());
}

TEST_CASE("a purge that is told behind the loading holds, also when older ones are forgotten",
          "[disk]") {
  const bool is_purged = GENERATE(true, false);
  CAPTURE(is_purged);
  Served served({.disk_bytes = 2'500'000U, .segment_bytes = 128U << 10U, .keys = 400}, 3);
  REQUIRE(served.start().empty());
  served.run();
  for (std::uint64_t key = 1; key < 100; ++key) {
    served.commit({key, 0}, 10'000);
    if (key % 10 == 9) served.settle();
  }
  served.commit({0, 0}, 1'000);
  served.settle();
  REQUIRE(served.stop());
  REQUIRE(served.start().empty());
  // The index does not know the record yet, and finds it before the disks learn of the purge.
  cache::DiskTombstone tombstone;
  if (is_purged) {
    served.kernel().invalidate(served.key(0), {}, &tombstone);
    REQUIRE(tombstone);
  }
  served.run_reads();
  REQUIRE(served.find({0, 0}));
  served.disks().add_tombstone(served.key(0).hash, tombstone);
  // Segments are written anew, and what is of older ones alone is forgotten.
  for (std::uint64_t key = 100; key < 220; ++key) {
    served.commit({key, 0}, 10'000);
    if (key % 20 == 19) served.settle();
  }
  served.settle();
  std::uint64_t gone = 0;
  for (std::uint64_t key = 1; key < 100; ++key) gone += served.find({key, 0}) ? 0U : 1U;
  CHECK(gone > 10);
  REQUIRE(served.find({0, 0}));
  const std::uint64_t done = served.counts.done;
  CHECK(served.load({0, 0}));
  served.run();
  CHECK(served.counts.done == done + (is_purged ? 0 : 1));
  CHECK(served.find({0, 0}).has_value() == !is_purged);
}

TEST_CASE("what was replaced unwritten, and then purged, does not come back", "[disk]") {
  Served served({.threads = {.write_bytes_max = 64U << 10U}}, 1);
  REQUIRE(served.start().empty());
  served.run();
  REQUIRE(served.commit({0, 0}, 1000).outcome == cache::DiskOutcome::kPlaced);
  served.settle();
  for (std::uint64_t key = 1; !served.disks().is_queue_full(); ++key) {
    REQUIRE(key < 40);
    served.commit({key, 0}, 10'000);
    served.deliver();
  }
  CHECK(served.commit({0, 0}, 1000).outcome == cache::DiskOutcome::kQueueFull);
  // The kernel knows nothing of it on a disk any more. That is not a second ago yet.
  served.invalidate(0, true);
  served.run();
  served.kill();
  REQUIRE(served.start().empty());
  served.run();
  served.load({0, 0});
  served.run();
  CAPTURE(served.fault());
  CHECK(served.fault().empty());
}

TEST_CASE("a segment is not written again while somebody reads in it", "[disk]") {
  Served served({.disk_bytes = 2'500'000U, .segment_bytes = 128U << 10U, .keys = 400}, 1);
  REQUIRE(served.start().empty());
  served.commit({0, 0}, 10'000);
  served.settle();
  REQUIRE(served.load({0, 0}));
  // As much as goes around the ring twice comes while the load waits for its turn.
  for (std::uint64_t key = 1; key < 400; ++key) {
    served.commit({key, 0}, 10'000);
    served.deliver();
    served.tick();
    served.run_writes();
  }
  CHECK(served.counts.done + served.counts.lost == 0);
  served.run();
  CHECK(served.counts.done == 1);
  CHECK(served.fault().empty());
  // And is written again afterwards.
  served.settle();
  CHECK(served.commit({1, 0}, 10'000).outcome == cache::DiskOutcome::kPlaced);
}

TEST_CASE("nothing comes back, in whatever order and however it ends", "[disk][long]") {
  std::uint64_t checked = 0;
  std::uint64_t freshened = 0;
  std::uint64_t incomplete = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    Served served(turning(seed), seed);
    std::mt19937_64 random(seed);
    for (int life = 0; life < 8; ++life) {
      CAPTURE(life);
      REQUIRE(served.start() == "");
      // Else it lives while it is being loaded.
      if (random() % 2 == 0) {
        served.run_reads();
        const std::string missing = served.missing();
        CAPTURE(missing);
        REQUIRE(missing.empty());
      }
      served.live(1500);
      CAPTURE(served.fault());
      REQUIRE(served.fault().empty());
      CHECK(served.damaged() == 0);
      if (random() % 2 == 0) {
        REQUIRE(served.stop());
      } else {
        served.kill();
      }
    }
    REQUIRE(served.fault().empty());
    CHECK(served.counts.done > 100);
    CHECK(served.counts.moved_bytes > 0);
    CHECK(served.counts.purges > 10);
    CHECK(served.counts.heads > 20);
    checked += served.counts.checked;
    freshened += served.counts.freshened;
    incomplete += served.counts.incomplete;
  }
  CHECK(checked > 20 * kSeeds);
  CHECK(freshened > 20 * kSeeds);
  CHECK(incomplete > kSeeds);
}

namespace {

// Small objects of many keys, and few purges: what was replaced lies on a disk for long.
void replace(Served& served, std::mt19937_64& random, int steps) {
  constexpr std::uint64_t kReplaced = 300;
  for (int i = 0; i < steps && served.fault().empty(); ++i) {
    const auto what = random() % 100;
    if (what < 40) {
      served.commit({random() % kReplaced, 0}, random() % 6000);
    } else if (what < 50) {
      served.load({random() % kReplaced, 0});
    } else if (what < 52) {
      served.invalidate(random() % kReplaced, random() % 2 == 0);
    } else if (what < 56) {
      served.settle();
    } else {
      served.deliver_one();
    }
  }
}

void ask_for_all(Served& served, std::uint64_t keys) {
  for (std::uint64_t key = 0; key < keys && served.fault().empty(); ++key) {
    served.load({key, 0});
    served.run_reads();
  }
}

}  // namespace

TEST_CASE("nothing comes back, whatever sizes disks and memory have in each life", "[disk]") {
  constexpr std::uint64_t kKeys = 300;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::size_t disks = 1 + seed % 2;
    CAPTURE(seed, disks);
    Served served({.disks = disks,
                   .segment_bytes = 128U << 10U,
                   .keys = kKeys,
                   .on_probation = seed % 4 >= 2},
                  seed);
    std::mt19937_64 random(seed);
    for (int life = 0; life < 8; ++life) {
      CAPTURE(life);
      // The index has room for all that is found, or not for half of it.
      const bool has_room = random() % 2 == 0;
      served.resize((1'600'000U + random() % 2'500'000U) / disks,
                    has_room ? 512U << 10U : 10'000U + random() % 8 * 2'000U);
      REQUIRE(served.start() == "");
      // Something of this life is known to the next one, else that gives the same versions.
      served.purge(PurgeKind::kPrefix, "https://none");
      // Else it lives while it is being loaded.
      if (random() % 4 != 0) served.settle();
      ask_for_all(served, kKeys);
      replace(served, random, random() % 3 == 0 ? 3000 : 300);
      CAPTURE(served.fault());
      REQUIRE(served.fault().empty());
      if (random() % 2 == 0) {
        REQUIRE(served.stop());
      } else {
        served.kill();
      }
    }
    CHECK(served.counts.done > 50);
  }
}

TEST_CASE("a record that cannot be read when its end of the disk is given up stays buried",
          "[disk]") {
  Served served({.disk_bytes = 3'000'000U, .segment_bytes = 128U << 10U, .keys = 400}, 1);
  REQUIRE(served.start().empty());
  served.run();
  // An older one of the same name lies in the midst of what stays.
  for (std::uint64_t key = 1; key < 110; ++key) {
    served.commit({key, 0}, 10'000);
    if (key == 45) served.commit({0, 0}, 1000);
    if (key % 10 == 9) served.settle();
  }
  served.commit({0, 0}, 1000);
  served.settle();
  const auto place = served.find({0, 0});
  REQUIRE(place);
  REQUIRE(served.stop());
  served.flip(*place, 3);
  for (int life = 0; life < 3; ++life) {
    served.resize(1'100'000U, 512U << 10U);
    REQUIRE(served.start().empty());
    REQUIRE(served.disks().kernel_disks()[0].segments <= place->segment);
    served.settle();
    // Else it would be found out of itself.
    if (life != 0) CHECK_FALSE(served.load({0, 0}));
    served.commit({200, 0}, 1000);
    served.settle();
    CAPTURE(served.fault());
    CHECK(served.fault().empty());
    REQUIRE(served.stop());
  }
}

TEST_CASE("no turn has the number of an earlier one, also where nothing is left", "[disk]") {
  Served served({.disks = 2, .disk_bytes = 1'500'000U, .segment_bytes = 128U << 10U, .keys = 400},
                1);
  std::uint64_t newest = 0;
  for (int life = 0; life < 4; ++life) {
    // An index with room for three gives up segment after segment.
    served.resize(1'500'000U, life == 1 ? 280U : 512U << 10U);
    REQUIRE(served.start().empty());
    served.settle();
    CHECK(served.kernel().disk_sequence(0) > newest);
    if (life == 1) CHECK(served.kernel().statistics().disk.disks[0].objects < 4);
    for (std::uint64_t key = 0; key < 80 && life != 1; ++key) {
      served.commit({key, 0}, 5'000);
      if (key % 10 == 9) served.settle();
    }
    if (life != 1) newest = served.kernel().disk_sequence(0);
    CAPTURE(served.fault());
    CHECK(served.fault().empty());
    REQUIRE(served.stop());
  }
}

TEST_CASE("a purge that takes the place of all others is reported", "[disk]") {
  Served served({.engine = ServedEngine::kInline}, 1);
  REQUIRE(served.start().empty());
  const auto report = [&] { return served.disks().statistics().disks[0]; };
  std::uint64_t entries = 0;
  for (std::uint64_t i = 1; report().purge_log_overflows == 0; ++i) {
    REQUIRE(i < 20'000);
    REQUIRE(report().purge_log_entries >= entries);
    entries = report().purge_log_entries;
    served.purge(PurgeKind::kPrefix, std::to_string(i) + std::string(3000, 'x'));
  }
  CHECK(entries > 10);
  CHECK(report().purge_log_overflows == 1);
  CHECK(report().purge_log_entries < entries);
}

}  // namespace encore::disk
