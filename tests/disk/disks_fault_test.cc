#include <random>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/disk/model/served.h"

namespace encore::disk {
namespace {

constexpr ServedOptions kTwoDisks{.disks = 2, .keys = 400};

std::uint64_t fill(Served& served, std::uint64_t keys) {
  std::uint64_t first = 0;
  for (std::uint64_t key = 0; key < keys; ++key) {
    first += served.commit({key, 0}, 500).place.disk == 0 ? 1U : 0U;
  }
  served.settle();
  return first;
}

std::uint64_t found_on(Served& served, std::uint16_t disk) {
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < kTwoDisks.keys; ++key) {
    const auto place = served.find({key, 0});
    found += place && place->disk == disk ? 1U : 0U;
  }
  return found;
}

DiskReport report(Served& served, std::size_t disk) {
  return served.disks().statistics().disks[disk];
}

}  // namespace

TEST_CASE("a disk that cannot be read leaves service, and the other goes on", "[disk]") {
  Served served(kTwoDisks, 1);
  REQUIRE(served.start().empty());
  const std::uint64_t first = fill(served, 400);
  REQUIRE(first > 120);
  REQUIRE(first < 280);
  served.device(0).reads_fail = true;
  for (std::uint64_t key = 0; key < 400; ++key) served.load({key, 0});
  served.run();
  CHECK(served.counts.lost == first);
  CHECK(served.counts.done == 400 - first);
  CHECK(report(served, 0).condition == DiskCondition::kOffline);
  CHECK(report(served, 0).read_errors == DiskLoads::kFailedReadsMax);
  CHECK(report(served, 1).condition == DiskCondition::kInService);
  CHECK(report(served, 1).damaged_records == 0);
  CHECK(found_on(served, 0) == 0);
  // New records go to the other one.
  CHECK(fill(served, 400) == 0);
  CHECK(found_on(served, 1) == 400);
  CHECK_FALSE(served.disks().is_queue_full());
  // Its log can be written still: what is purged does not come back with it.
  served.purge(PurgeKind::kPrefix, "https://h1");
  served.run();
  CHECK(served.counts.purges == 1);
  CHECK(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  CHECK(served.missing().empty());
  // A fifth was purged, and of an eighth of the rest, which may have variants, nothing is expected.
  CHECK(served.counts.checked == 280);
  CHECK(served.fault().empty());
}

TEST_CASE("what is purged by its name while its disk is out of service does not come back",
          "[disk]") {
  Served served(kTwoDisks, 1);
  REQUIRE(served.start().empty());
  fill(served, 400);
  std::set<std::uint64_t> first;
  for (std::uint64_t key = 0; key < 400; ++key) {
    const auto place = served.find({key, 0});
    if (place && place->disk == 0) first.insert(key);
  }
  REQUIRE(first.size() > 120);
  // Its log can be read and written.
  served.fail_records(0, false);
  served.device(0).reads_fail = true;
  std::uint64_t failing = 0;
  for (const std::uint64_t key : first) {
    if (failing++ < DiskLoads::kFailedReadsMax) served.load({key, 0});
  }
  served.run();
  REQUIRE(report(served, 0).condition == DiskCondition::kOffline);
  served.settle();
  REQUIRE(found_on(served, 0) == 0);
  // The index knows of none of them, so that there is nothing to be remembered.
  for (const std::uint64_t key : first) served.invalidate(key, true);
  CHECK(served.counts.purges == 0);
  served.settle();
  CHECK(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  std::uint64_t found = 0;
  for (const std::uint64_t key : first) found += served.load({key, 0}) ? 1U : 0U;
  served.run();
  CAPTURE(served.fault());
  CHECK(served.fault().empty());
  CHECK(found == 0);
}

TEST_CASE("fewer reads that fail, with others between them, are lost records", "[disk]") {
  Served served({.keys = 400}, 2);
  REQUIRE(served.start().empty());
  fill(served, 400);
  for (std::uint64_t key = 0; key < 400; ++key) {
    served.device(0).reads_fail = key % 100 != 99;
    served.load({key, 0});
    served.run();
  }
  CHECK(served.counts.lost == 396);
  CHECK(served.counts.done == 4);
  CHECK(served.damaged() == 396);
  CHECK(report(served, 0).condition == DiskCondition::kInService);
}

TEST_CASE("an offline disk leaves the index, step by step", "[disk]") {
  Served served(kTwoDisks, 3);
  REQUIRE(served.start().empty());
  fill(served, 400);
  REQUIRE(found_on(served, 0) > 120);
  served.device(0).writes_fail = true;
  served.purge(PurgeKind::kPrefix, "https://none");
  served.run();
  CHECK(report(served, 0).condition == DiskCondition::kOffline);
  served.settle();
  CHECK(found_on(served, 0) == 0);
  CHECK(served.kernel().statistics().disk.disks[0].objects == 0);
}

TEST_CASE("a purge that a disk cannot remember is an error, and the disk is empty then", "[disk]") {
  // The segments and the log fail, or the whole device does.
  const bool is_all = GENERATE(false, true);
  CAPTURE(is_all);
  Served served(kTwoDisks, 4);
  REQUIRE(served.start().empty());
  fill(served, 400);
  served.device(0).from = is_all ? 0 : kSecondSuperblock + kPageBytes;
  served.device(0).writes_fail = true;
  served.purge(PurgeKind::kPrefix, "https://h1");
  served.run();
  CHECK(served.counts.purges_failed == 1);
  CHECK(report(served, 0).condition == DiskCondition::kOffline);
  // As long as nobody knows what it gives back at the next start, nothing is promised.
  served.purge(PurgeKind::kPrefix, "https://h2");
  served.run();
  CHECK(served.counts.purges_failed == (is_all ? 2 : 1));
  served.device(0).writes_fail = false;
  served.purge(PurgeKind::kPrefix, "https://h2");
  served.run();
  CHECK(served.counts.purges == (is_all ? 1 : 2));
  CHECK(served.stop());
  REQUIRE(served.start().empty());
  served.run();
  CHECK(found_on(served, 0) == 0);
  CHECK(found_on(served, 1) > 120);
  CHECK(served.missing().empty());
  CHECK(served.fault().empty());
}

TEST_CASE("writes that fail five times in a row pause for half a minute", "[disk]") {
  Served served({}, 5);
  REQUIRE(served.start().empty());
  // Its segment is open: what fails from here on are the records alone.
  served.commit({0, 0}, 100);
  served.settle();
  served.fail_records(0, true);
  for (std::uint64_t n = 1; n <= DiskWriter::kFailedWritesMax; ++n) {
    CHECK_FALSE(served.disks().is_queue_full());
    CHECK(served.commit({n, 0}, 100).outcome == cache::DiskOutcome::kPlaced);
    served.deliver();
    served.run();
    served.tick();
    served.run();
  }
  // The next write sees it, at the latest a second later.
  served.tick();
  served.run();
  CHECK(served.disks().is_queue_full());
  CHECK(report(served, 0).condition == DiskCondition::kWritesPaused);
  CHECK(report(served, 0).write_pauses == 1);
  CHECK(report(served, 0).failed_records == 5);
  const std::uint64_t errors = report(served, 0).write_errors;
  CHECK(served.commit({10, 0}, 100).outcome == cache::DiskOutcome::kQueueFull);
  served.settle();
  CHECK(report(served, 0).write_errors == errors);
  SECTION("it works again") {
    served.fail_records(0, false);
    for (int second = 0; second < 31; ++second) {
      served.tick();
      served.run();
    }
    CHECK(report(served, 0).condition == DiskCondition::kInService);
    CHECK(served.commit({1, 0}, 100).outcome == cache::DiskOutcome::kPlaced);
    served.settle();
    CHECK(served.load({1, 0}));
    served.run();
    CHECK(served.counts.done == 1);
  }
  SECTION("one more that fails, and it pauses again") {
    for (int second = 0; second < 31; ++second) {
      served.tick();
      served.run();
    }
    CHECK_FALSE(served.disks().is_queue_full());
    CHECK(served.commit({1, 0}, 100).outcome == cache::DiskOutcome::kPlaced);
    served.settle();
    CHECK(report(served, 0).write_pauses == 2);
    CHECK(served.disks().is_queue_full());
  }
}

TEST_CASE("what waits to be written is bounded, and who asks is told", "[disk]") {
  Served served({.threads = {.write_bytes_max = 256U << 10U}}, 6);
  REQUIRE(served.start().empty());
  served.run();
  std::uint64_t waiting = 0;
  for (std::uint64_t key = 0; !served.disks().is_queue_full(); ++key) {
    REQUIRE(waiting < 256U << 10U);
    const auto decision = served.commit({key, 0}, 10'000);
    REQUIRE(decision.outcome == cache::DiskOutcome::kPlaced);
    served.deliver();
    waiting += decision.place.bytes;
    CHECK(report(served, 0).waiting_bytes == waiting);
  }
  CHECK(waiting >= 256U << 10U);
  CHECK(served.commit({39, 0}, 10'000).outcome == cache::DiskOutcome::kQueueFull);
  served.settle();
  CHECK(report(served, 0).waiting_bytes == 0);
  CHECK_FALSE(served.disks().is_queue_full());
  CHECK(served.commit({39, 0}, 10'000).outcome == cache::DiskOutcome::kPlaced);
}

TEST_CASE("records are given in the order of their places, whenever they come", "[disk]") {
  std::mt19937_64 random(7);
  WriteQueue queue(1000);
  std::vector<std::uint64_t> orders;
  for (std::uint64_t order = 1; order <= 200; ++order) orders.push_back(order);
  std::ranges::shuffle(orders, random);
  std::uint64_t next = 1;
  std::uint64_t taken = 0;
  bool is_taken = false;
  for (const std::uint64_t order : orders) {
    // A caller that put() tells to take does so until there is none.
    const bool is_told = queue.put(order, {.place = {.unit = static_cast<std::uint32_t>(order)}});
    REQUIRE(is_told == (order == next && !is_taken));
    is_taken |= is_told;
    while (is_taken) {
      const auto got = queue.take();
      if (!got) {
        is_taken = false;
        break;
      }
      REQUIRE(got->place.unit == next++);
      ++taken;
      if (random() % 2 == 0) break;
    }
  }
  while (queue.take()) ++taken;
  CHECK(taken == 200);
}

TEST_CASE("a writer is asked when much waits, or what is not to wait", "[disk]") {
  struct Source final : public RecordSource {
    explicit Source(bool urgent) : urgent_(urgent) {}
    Record record() const override { return {}; }
    bool is_urgent() const override { return urgent_; }
    bool urgent_;
  };
  const auto of = [](std::uint64_t bytes, bool urgent) {
    return PendingWrite{.place = {.bytes = bytes}, .source = std::make_unique<Source>(urgent)};
  };
  WriteQueue queue(1'000'000, 1000);
  CHECK_FALSE(queue.put(1, of(400, false)));
  CHECK(queue.put(3, of(700, false)));
  CHECK(queue.take());
  // The second has not come.
  CHECK_FALSE(queue.take());
  CHECK_FALSE(queue.put(2, of(10, false)));
  // Those before the gap can go.
  CHECK(queue.put(5, of(10, true)));
  CHECK(queue.take());
  CHECK(queue.take());
  CHECK_FALSE(queue.take());
  CHECK(queue.put(4, of(10, false)));
  CHECK(queue.take());
  CHECK(queue.take());
  CHECK_FALSE(queue.take());
  CHECK_FALSE(queue.put(6, of(10, false)));
  // A moved record holds up a segment.
  CHECK(queue.put(7, {.place = {.bytes = 10}, .from = cache::DiskPlace{}}));
  CHECK(queue.take());
  CHECK(queue.take());
  CHECK_FALSE(queue.take());
  // So does the first of the next one: fewer are free.
  CHECK(queue.put(8, {.place = {.bytes = 10}, .turn = {.sequence = 2}}));
  // By the clock everything is taken, asked for or not.
  CHECK(queue.take());
  CHECK_FALSE(queue.put(9, of(10, false)));
  CHECK(queue.take());
  CHECK(queue.bytes() == 0);
}

TEST_CASE("beyond twice its bound a queue keeps places, not bodies", "[disk]") {
  WriteQueue queue(1000);
  const auto object = std::make_shared<Committed>();
  for (std::uint64_t order = 1; order <= 5; ++order) {
    queue.put(order, {.place = {.bytes = 640}, .source = source_of(object)});
  }
  CHECK(queue.is_full());
  CHECK(queue.bytes() == 3 * 640);
  int with_source = 0;
  for (auto got = queue.take(); got; got = queue.take()) with_source += got->source ? 1 : 0;
  CHECK(with_source == 3);
  CHECK(queue.bytes() == 0);
}

TEST_CASE("what a failing device loses does not bring back what was before it", "[disk]") {
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    const std::size_t disks = 1 + seed % 2;
    Served served({.disks = disks,
                   .disk_bytes = disks == 1 ? 2'500'000U : 1'500'000U,
                   .segment_bytes = 128U << 10U,
                   .on_probation = seed % 4 >= 2},
                  seed);
    std::mt19937_64 random(seed);
    // On probation two of three are written, and fewer are there to be loaded.
    const int steps = seed % 4 >= 2 ? 3500 : 2000;
    for (int life = 0; life < 4; ++life) {
      REQUIRE(served.start() == "");
      // Something of this life is known to the next one, else that gives the same versions.
      served.purge(PurgeKind::kPrefix, "https://none");
      served.run();
      for (int i = 0; i < steps && served.fault().empty(); ++i) {
        const std::size_t disk = random() % disks;
        if (random() % 50 == 0) served.fail_records(disk, random() % 3 == 0);
        if (random() % 50 == 0) served.device(disk).reads_fail = random() % 8 == 0;
        served.step();
      }
      CAPTURE(served.fault());
      REQUIRE(served.fault().empty());
      for (std::size_t disk = 0; disk < disks; ++disk) {
        failed += report(served, disk).failed_records;
        served.device(disk).reads_fail = false;
      }
      served.kill();
    }
    CHECK(served.counts.done > 50);
  }
  CHECK(failed > 100);
}

}  // namespace encore::disk
