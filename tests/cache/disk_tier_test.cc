// The disk tier by itself: where a record goes, or why it does not; names; what leaves first.
// One thread uses it, without its mutex.
#include "cache/disk_tier.h"

#include <random>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "cache/disk_names.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kTierSegment = 64 * 1024;

KernelOptions tier_options(const std::vector<std::uint32_t>& segments) {
  KernelOptions options = plain_options(1'000'000);
  for (const std::uint32_t each : segments) {
    options.disks.push_back({.segments = each, .segment_bytes = kTierSegment});
  }
  return options;
}

DiskTier::PlaceRequest request(std::uint64_t number, std::uint64_t bytes = 1) {
  return {.key = key(number).hash, .bytes = bytes, .useless_from = at(10'000), .now = at(100)};
}

// Fills segments of the only disk with a record each that is in the index.
std::vector<DiskPlace> fill(DiskTier& tier, std::size_t count) ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<DiskPlace> places;
  for (std::size_t i = 0; i < count; ++i) {
    const DiskDecision decision = tier.place(request(i, kTierSegment * 3 / 4));
    REQUIRE(decision.outcome == DiskOutcome::kPlaced);
    tier.on_entry_added({decision.place, false});
    places.push_back(decision.place);
  }
  return places;
}

}  // namespace

TEST_CASE("Records go to disks in proportion to their size, and stay there if another is lost",
          "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  const std::vector<std::uint32_t> segments = {100, 200, 500};
  DiskTier all(tier_options(segments));
  DiskTier less(tier_options(segments));
  less.take_offline(1);
  CHECK_FALSE(all.is_offline(1));
  CHECK(less.is_offline(1));
  constexpr std::uint64_t kRecords = 8000;
  std::vector<double> counts(3);
  std::vector<double> moved(3);
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const DiskDecision before = all.place(request(i));
    const DiskDecision after = less.place(request(i));
    REQUIRE(before.outcome == DiskOutcome::kPlaced);
    REQUIRE(after.outcome == DiskOutcome::kPlaced);
    counts[before.place.disk] += 1;
    if (before.place.disk != 1) REQUIRE(after.place.disk == before.place.disk);
    if (before.place.disk == 1) moved[after.place.disk] += 1;
  }
  for (std::size_t disk = 0; disk < 3; ++disk) {
    const double share = segments[disk] / 800.0;
    CHECK(std::abs(counts[disk] / kRecords - share) < 0.02);
  }
  CHECK(moved[1] == 0);
  CHECK(std::abs(moved[0] / counts[1] - 1.0 / 6) < 0.04);
  CHECK(all.bytes_in_service() == 800 * kTierSegment);
  CHECK(less.bytes_in_service() == 600 * kTierSegment);
  less.take_offline(0);
  less.take_offline(2);
  CHECK(less.place(request(1)).outcome == DiskOutcome::kOffline);
  CHECK(less.bytes_in_service() == 0);
}

TEST_CASE("A record is refused for the first of the reasons that there are", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  for (unsigned facts = 0; facts < 32; ++facts) {
    const bool is_short = (facts & 1U) != 0;
    const bool is_queue_full = (facts & 2U) != 0;
    const bool is_offline = (facts & 4U) != 0;
    const bool is_over_rate = (facts & 8U) != 0;
    const bool is_large = (facts & 16U) != 0;
    KernelOptions options = tier_options({8});
    options.disk_rules.life_seconds_min = 60;
    options.disk_rules.write_rate_max = 100'000;
    DiskTier tier(options);
    if (is_over_rate) {
      while (tier.place(request(1, 50'000)).outcome == DiskOutcome::kPlaced) {
      }
    }
    if (is_offline) tier.take_offline(0);
    DiskTier::PlaceRequest wish = request(2, is_large ? kTierSegment : 100);
    wish.queue_full = is_queue_full;
    wish.useless_from = wish.now + std::chrono::seconds(60) - Nanoseconds(is_short ? 1 : 0);
    CAPTURE(facts);
    const DiskOutcome expected = is_short        ? DiskOutcome::kShortLived
                                 : is_queue_full ? DiskOutcome::kQueueFull
                                 : is_offline    ? DiskOutcome::kOffline
                                 : is_over_rate  ? DiskOutcome::kWriteRate
                                 : is_large      ? DiskOutcome::kTooLarge
                                                 : DiskOutcome::kPlaced;
    CHECK(tier.place(wish).outcome == expected);
  }
}

TEST_CASE("What is moved takes of the write rate, and is never refused for it", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  const std::uint64_t rate = GENERATE(0U, 100'000U);
  KernelOptions options = tier_options({64});
  options.disk_rules.write_rate_max = rate;
  DiskTier tier(options);
  const DiskDecision first = tier.place(request(1, 40'000));
  REQUIRE(first.outcome == DiskOutcome::kPlaced);
  tier.on_entry_added({first.place, false});
  DiskPlace place = first.place;
  for (int i = 0; i < 3; ++i) {
    const auto moved = tier.place_move(place, 0);
    REQUIRE(moved);
    CHECK(moved->place != place);
    CHECK(moved->place.bytes == place.bytes);
    place = moved->place;
  }
  CHECK(tier.counters.moved == 3);
  CHECK(tier.counters.moved_bytes == 3 * first.place.bytes);
  CHECK((tier.place(request(2)).outcome == DiskOutcome::kWriteRate) == (rate != 0));
  // Four times 40,000 were taken, 100,000 were there: the rest is due in a second.
  DiskTier::PlaceRequest later = request(3);
  later.now = at(99);
  CHECK((tier.place(later).outcome == DiskOutcome::kWriteRate) == (rate != 0));
  later.now = at(101);
  CHECK(tier.place(later).outcome == DiskOutcome::kPlaced);
}

TEST_CASE("The highest of rates does not overflow, over however long a time", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  KernelOptions options = tier_options({8});
  options.disk_rules.write_rate_max = kWriteRateMax;
  DiskTier tier(options);
  DiskTier::PlaceRequest wish = request(1);
  for (const std::int64_t seconds : {100, 101, 9'000}) {
    wish.now = at(seconds);
    CHECK(tier.place(wish).outcome == DiskOutcome::kPlaced);
    wish.now += std::chrono::microseconds(999'999);
    CHECK(tier.place(wish).outcome == DiskOutcome::kPlaced);
  }
}

TEST_CASE("Names have numbers as long as there are any; usual ones always", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  DiskTier tier(tier_options({8}));
  CHECK(tier.intern("") == 0);
  CHECK(tier.names(0).empty());
  CHECK(tier.names(kDiskNamesMax).empty());
  CHECK(tier.names(7).empty());
  CHECK(tier.intern("x-one") == 1);
  CHECK(tier.intern("x-two") == 2);
  CHECK(tier.intern("x-one") == 1);
  CHECK(tier.names(1) == "x-one");
  CHECK(tier.names(2) == "x-two");
  CHECK(tier.intern(std::string(kNamesBytesMax, 'n')) == 3);
  CHECK_FALSE(tier.intern(std::string(kNamesBytesMax + 1, 'n')));
  CHECK(tier.counters.names_refused == 1);
  std::uint32_t unusual = 3;
  while (tier.intern("x-" + std::to_string(unusual))) ++unusual;
  CHECK(unusual == kDiskNamesMax - 1 - kUsualTexts);
  CHECK(tier.counters.names_refused == 2);
  const std::string usual(kUsualNames.front());
  REQUIRE(is_usual(usual));
  const auto number = tier.intern(usual);
  REQUIRE(number);
  CHECK(tier.names(*number) == usual);
  CHECK(tier.intern("x-two") == 2);
}

TEST_CASE("What is placed is counted, and what fills a disk apart, until it was full once",
          "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  DiskTier tier(tier_options({8}));
  CHECK(tier.is_filling(0));
  DiskTier::PlaceRequest wish = request(1, 1000);
  const DiskDecision plain = tier.place(wish);
  wish.waits = true;
  const DiskDecision fills = tier.place(wish);
  wish.waits = false;
  wish.part = true;
  const DiskDecision part = tier.place(wish);
  CHECK(tier.counters.admitted == 3);
  CHECK(tier.counters.admitted_bytes ==
        std::uint64_t{plain.place.bytes} + fills.place.bytes + part.place.bytes);
  CHECK(tier.counters.filled == 1);
  CHECK(tier.counters.filled_bytes == fills.place.bytes);
  CHECK(tier.counters.parts_placed == 1);
  CHECK(tier.counters.parts_placed_bytes == part.place.bytes);
  tier.on_entry_added({plain.place, false});
  tier.on_entry_added({part.place, true});
  DiskLoad load = tier.load_for(key(1).hash);
  CHECK(load.objects == 2);  // one is in no index, and lives in its segment still
  CHECK(load.size_bytes == 8 * kTierSegment);
  CHECK_FALSE(load.full_once);
  DiskStatistics statistics;
  tier.add_to(statistics);
  CHECK(statistics.entries == 1);
  CHECK(statistics.parts == 1);
  CHECK(statistics.index_bytes == 2 * kDiskEntryBytes);
  REQUIRE(statistics.disks.size() == 1);
  CHECK(statistics.disks[0].parts == 1);
  CHECK(statistics.disks[0].objects == 2);
  CHECK(statistics.disks[0].live_bytes == load.bytes);
  CHECK(statistics.disks[0].admitted_bytes == tier.counters.admitted_bytes);
  CHECK_FALSE(statistics.disks[0].offline);
  tier.on_entry_removed({part.place, true});
  tier.take_offline(0);
  load = tier.load_for(key(1).hash);
  CHECK(load.objects == 0);
  CHECK(load.bytes == 0);
  CHECK(load.size_bytes == 0);
  DiskStatistics after;
  tier.add_to(after);
  CHECK(after.parts == 0);
  CHECK(after.disks[0].offline);
}

TEST_CASE("Segments are reclaimed in their order, shard after shard, once few are free",
          "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  const bool counts = GENERATE(true, false);
  KernelOptions options = tier_options({8});
  options.shards = 2;
  DiskTier tier(options);
  constexpr std::uint64_t kIndexMax = 1'000'000;
  std::vector<DiskPlace> places = fill(tier, 6);
  // Two are free: as many as there shall be.
  CHECK_FALSE(tier.reclaim_shard(0, kIndexMax));
  CHECK_FALSE(tier.hides_records());
  CHECK(tier.version_of_removal(0) == 0);
  CHECK(tier.version_of_removal(1) == 1);
  for (const DiskPlace& each : fill(tier, 1)) places.push_back(each);
  CHECK(tier.place(request(99, kTierSegment * 3 / 4)).outcome == DiskOutcome::kNoSegment);
  REQUIRE(tier.reclaim_shard(0, kIndexMax) == 0U);
  CHECK(tier.is_filling(0));
  CHECK(tier.reclaimed_segment(0, kIndexMax, counts) == places[0].segment);
  CHECK_FALSE(tier.is_filling(0));
  CHECK(tier.load_for(key(1).hash).full_once);
  CHECK(tier.hides_records());
  CHECK(tier.version_of_removal(0) == 2);
  CHECK_FALSE(tier.has_older(0, places[0].segment));
  CHECK(tier.has_older(0, places[2].segment));
  CHECK(tier.is_counting(0) == counts);
  if (counts) {
    tier.shard_counted(0, 0);
    CHECK(tier.is_counting(0));
    CHECK(tier.reclaim_shard(0, kIndexMax) == 1U);
    tier.shard_counted(0, 1);
    CHECK_FALSE(tier.is_counting(0));
    CHECK(tier.reclaim_shard(0, kIndexMax) == 0U);
  }
  CHECK(tier.reclaimed_segment(0, kIndexMax, counts) == places[0].segment);
  CHECK_FALSE(tier.shard_reclaimed(0, 0));
  CHECK(tier.reclaim_shard(0, kIndexMax) == 1U);
  CHECK_FALSE(tier.free_segment(0, places[0].segment));
  tier.on_entry_removed({places[0], false});
  CHECK_FALSE(tier.free_segment(0, places[0].segment));
  CHECK(tier.shard_reclaimed(0, 1));
  CHECK_FALSE(tier.reclaim_shard(0, kIndexMax));
  CHECK_FALSE(tier.free_segment(0, places[1].segment));
  CHECK(tier.free_segment(0, places[0].segment));
  CHECK_FALSE(tier.free_segment(0, places[0].segment));
  CHECK_FALSE(tier.hides_records());
  CHECK_FALSE(tier.reclaim_shard(0, kIndexMax));
  CHECK(tier.place(request(99, kTierSegment * 3 / 4)).outcome == DiskOutcome::kPlaced);
  CHECK(tier.reclaim_shard(0, kIndexMax) == 0U);
}

TEST_CASE("An index near its bound lets segments go, and a lost disk lets all go", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  DiskTier tier(tier_options({8}));
  const std::vector<DiskPlace> places = fill(tier, 3);
  const std::uint64_t held = tier.index_bytes();
  CHECK(held == 3 * kDiskEntryBytes);
  CHECK(tier.has_room(kDiskEntryBytes, held + kDiskEntryBytes));
  CHECK_FALSE(tier.has_room(kDiskEntryBytes + 1, held + kDiskEntryBytes));
  // Within a thirty-second of it.
  const std::uint64_t bound = 32 * held;
  CHECK_FALSE(tier.reclaim_shard(0, bound));
  std::uint64_t near = held;
  while (near - near / 32 < held) ++near;
  CHECK_FALSE(tier.reclaim_shard(0, near));
  CHECK(tier.reclaim_shard(0, near - 1) == 0U);
  tier.take_offline(0);
  // The newest one, too.
  for (const DiskPlace& place : places) {
    REQUIRE(tier.reclaim_shard(0, bound) == 0U);
    CHECK(tier.reclaimed_segment(0, bound, false) == place.segment);
    tier.on_entry_removed({place, false});
    CHECK(tier.shard_reclaimed(0, 0));
    CHECK(tier.free_segment(0, place.segment));
  }
  CHECK_FALSE(tier.reclaim_shard(0, bound));
}

TEST_CASE("What a start finds is known by its segments' order, and hidden until it is loaded",
          "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  DiskTier tier(tier_options({8, 8}));
  const std::vector<std::uint64_t> sequences = {9, 0, 5, 7};
  CHECK(tier.attach(0, sequences, 40));
  CHECK_FALSE(tier.attach(0, sequences, 40));
  CHECK(tier.next_version() == 41);
  CHECK(tier.hides_records());
  tier.loaded(0);
  CHECK_FALSE(tier.hides_records());
  // One more may have begun.
  CHECK(tier.sequence(0) == 10);
  CHECK(tier.sequence(1) == 0);
  CHECK(tier.is_filling(0));
  const auto place = [](std::uint32_t segment, std::uint32_t unit) {
    return DiskPlace{.disk = 0, .segment = segment, .unit = unit, .bytes = 4096};
  };
  CHECK(tier.is_later(place(0, 8), place(3, 16)));
  CHECK_FALSE(tier.is_later(place(2, 16), place(3, 8)));
  CHECK(tier.is_later(place(3, 16), place(3, 8)));
  CHECK_FALSE(tier.is_later(place(3, 8), place(3, 8)));
  CHECK(tier.takes_found(place(0, 8)));
  CHECK_FALSE(tier.takes_found(place(1, 8)));
  CHECK_FALSE(tier.takes_found(place(8, 8)));
  CHECK_FALSE(tier.takes_found(place(100, 8)));
  // Known, and not.
  tier.found({place(0, 8), false}, true);
  tier.found({place(3, 8), true}, true);
  tier.found({place(2, 8), false}, false);
  CHECK(tier.index_bytes() == 2 * kDiskEntryBytes);
  DiskStatistics statistics;
  tier.add_to(statistics);
  CHECK(statistics.entries == 1);
  CHECK(statistics.parts == 1);
  CHECK(statistics.disks[0].objects == 1);
  CHECK(statistics.disks[1].objects == 0);
  // Records without room leave first, and all before them.
  CHECK_FALSE(tier.reclaim_shard(0, 1'000'000));
  tier.found_without_room(place(3, 24));
  tier.found_without_room(place(2, 24));
  CHECK(tier.hides_records());
  CHECK(tier.is_unknown_beside(1));
  CHECK_FALSE(tier.is_unknown_beside(0));
  for (const std::uint32_t segment : {2U, 3U}) {
    REQUIRE(tier.reclaim_shard(0, 1'000'000) == 0U);
    CHECK(tier.reclaimed_segment(0, 1'000'000, false) == segment);
    if (segment == 3) tier.on_entry_removed({place(3, 8), true});
    CHECK(tier.shard_reclaimed(0, 0));
    CHECK(tier.free_segment(0, segment));
  }
  CHECK_FALSE(tier.reclaim_shard(0, 1'000'000));
  CHECK_FALSE(tier.hides_records());
  CHECK_FALSE(tier.is_unknown_beside(1));
  tier.take_offline(0);
  CHECK_FALSE(tier.takes_found(place(0, 8)));
}

TEST_CASE("A disk that was full at the last start is no more filled", "[cache][disk]")
ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  for (const std::uint32_t used : {5U, 6U}) {
    DiskTier tier(tier_options({8}));
    std::vector<std::uint64_t> sequences;
    for (std::uint32_t i = 0; i < used; ++i) sequences.push_back(i + 1);
    REQUIRE(tier.attach(0, sequences, 7));
    CHECK(tier.is_filling(0) == (used == 5));
    // The later of two versions counts.
    CHECK(tier.next_version() == 8);
  }
  DiskTier tier(tier_options({8, 8}));
  const std::vector<std::uint64_t> none;
  CHECK(tier.attach(0, none, 9));
  CHECK(tier.attach(1, none, 4));
  CHECK(tier.next_version() == 10);
  const std::vector<std::uint64_t> many(kSegmentsMax + std::size_t{1});
  DiskTier other(tier_options({8}));
  CHECK_FALSE(other.attach(0, many, 1));
}

}  // namespace encore::cache::test
