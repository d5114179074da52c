// A shard's entries on disk, with the budget and the tier that they are kept in step with.
#include "cache/disk_entries.h"

#include <algorithm>

#include "cache/disk_policies.h"
#include "cache/removals.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

KernelOptions four_segments(std::uint64_t capacity) {
  KernelOptions options = plain_options(capacity);
  options.disks = {{.segments = 4, .segment_bytes = 1U << 20U}};
  return options;
}

class Disk {
 public:
  explicit Disk(bool probation = false, std::uint64_t capacity = 1U << 20U)
      : options(four_segments(capacity)) {
    entries.configure(disk_policy_for(probation), options.variants_max);
  }

  Stored stored(std::uint64_t variant, std::uint64_t bytes = 1000) const {
    return {
        .variant = variant, .fresh_until = at(1000), .keep_until = at(2000), .disk_bytes = bytes};
  }
  DiskDecision commit(std::uint64_t id, const Stored& what) {
    const OptionalLock budget_lock(budget.mutex);
    const OptionalLock tier_lock(tier.mutex);
    return entries.commit(key(id), what, at(0), budget, tier);
  }
  // Commits and writes.
  DiskPlace store(std::uint64_t id, std::uint64_t variant = 1, std::uint64_t bytes = 1000) {
    const DiskDecision decision = commit(id, stored(variant, bytes));
    REQUIRE(decision.outcome == DiskOutcome::kPlaced);
    REQUIRE(entries.set_written(key(id), decision.place));
    return decision.place;
  }
  void store_in_memory(std::uint64_t id, std::uint64_t variant) {
    Removals gone(nullptr);
    memory.insert(key(id).hash, stored(variant), {.now = at(0)}, {.variants_max = 4}, gone);
  }
  LookupResult find(std::uint64_t id, MonotonicTime now = at(1)) {
    LookupResult result;
    entries.find(key(id), now, nullptr, result);
    return result;
  }
  DiskEntries::Reclaimed reclaim(std::span<const DiskPlace> being_read = {}) {
    const OptionalLock budget_lock(budget.mutex);
    const OptionalLock tier_lock(tier.mutex);
    REQUIRE(tier.reclaim_shard(0, budget.disk_index_max()) == 0U);
    return entries.reclaim({.disk = 0, .being_read = being_read, .now = at(1)}, budget, tier);
  }
  bool wants_reclaim() {
    const OptionalLock budget_lock(budget.mutex);
    const OptionalLock tier_lock(tier.mutex);
    return tier.reclaim_shard(0, budget.disk_index_max()).has_value();
  }
  // Bytes of the index, on which budget and tier agree.
  std::uint64_t index_bytes() {
    const OptionalLock budget_lock(budget.mutex);
    const OptionalLock tier_lock(tier.mutex);
    CHECK(budget.used() == tier.index_bytes());
    return budget.used();
  }

  KernelOptions options;
  Budget budget{options};
  DiskTier tier{options};
  Table memory{EvictionPolicy::kLru};
  DiskEntries entries{options.disks, memory, 0};
};

}  // namespace

TEST_CASE("A record is found once it is written, and its second hit is worth a promotion",
          "[cache][disk]") {
  Disk disk;
  const DiskDecision decision = disk.commit(1, disk.stored(5));
  CHECK(decision.outcome == DiskOutcome::kPlaced);
  CHECK(disk.find(1).state == LookupState::kMiss);
  CHECK(disk.find(1).any_resident);
  REQUIRE(disk.entries.set_written(key(1), decision.place));
  CHECK_FALSE(disk.entries.set_written(key(2), decision.place));
  CHECK(disk.find(1).disk == DiskHit::kFirst);
  CHECK(disk.find(1).promote());
  CHECK(disk.find(1, at(1500)).state == LookupState::kStale);
  CHECK_FALSE(disk.find(1, at(2001)).any_resident);
}

TEST_CASE("Budget and tier follow what comes and goes on disk", "[cache][disk]") {
  Disk disk;
  disk.store(1, 1);
  disk.store(1, 2);
  const DiskPlace other = disk.store(2);
  CHECK(disk.index_bytes() == 3 * kDiskEntryBytes);
  disk.store(1, 2);  // replaces
  CHECK(disk.index_bytes() == 3 * kDiskEntryBytes);
  Stored not_written = disk.stored(2, 0);
  CHECK(disk.commit(1, not_written).tombstone);  // the old record goes
  CHECK(disk.index_bytes() == 2 * kDiskEntryBytes);
  const OptionalLock budget_lock(disk.budget.mutex);
  const OptionalLock tier_lock(disk.tier.mutex);
  CHECK(disk.entries.remove(key(1), 7, disk.budget, disk.tier) == 0);
  CHECK(disk.entries.remove(key(1), std::nullopt, disk.budget, disk.tier) == 1);
  CHECK(disk.entries.lose(key(2), other, DiskLoss::kUnreadable, disk.budget, disk.tier) > 0U);
  CHECK_FALSE(disk.entries.lose(key(2), other, DiskLoss::kUnreadable, disk.budget, disk.tier));
  CHECK(disk.budget.used() == 0);
  CHECK(disk.tier.index_bytes() == 0);
}

TEST_CASE("A key has so many variants on disk as it may, and they are told from those in memory",
          "[cache][disk]") {
  Disk disk;
  const std::uint32_t most = disk.options.variants_max;
  for (std::uint64_t variant = 0; variant < most; ++variant) disk.store(1, variant);
  CHECK(disk.commit(1, disk.stored(most)).outcome == DiskOutcome::kVariants);
  CHECK(disk.commit(1, disk.stored(0)).outcome == DiskOutcome::kPlaced);
  disk.store_in_memory(1, 1);
  CHECK(disk.entries.count_alone(key(1)) == most - 1);
  CHECK(disk.entries.has(key(1), most - 1));
  CHECK_FALSE(disk.entries.has(key(1), most));
}

TEST_CASE("Where the index has no room a record takes the place of its older one, and no other",
          "[cache][disk]") {
  constexpr std::uint64_t kMost = 20;
  // Half of the memory is the index's, or others have nearly all of it.
  const bool others_have_it = GENERATE(false, true);
  Disk disk(false, others_have_it ? 1U << 20U : 2 * kMost * kDiskEntryBytes + 1);
  if (others_have_it) {
    const OptionalLock budget_lock(disk.budget.mutex);
    disk.budget.grow((1U << 20U) - kMost * kDiskEntryBytes - kDiskEntryBytes + 1);
  }
  for (std::uint64_t id = 0; id < kMost; ++id) {
    CAPTURE(id);
    REQUIRE(disk.commit(id, disk.stored(1)).outcome == DiskOutcome::kPlaced);
  }
  const auto entries_now = [&] {
    const OptionalLock tier_lock(disk.tier.mutex);
    return disk.tier.index_bytes() / kDiskEntryBytes;
  };
  CHECK(disk.commit(kMost, disk.stored(1)).outcome == DiskOutcome::kIndexFull);
  CHECK(disk.commit(0, disk.stored(2)).outcome == DiskOutcome::kIndexFull);
  CHECK(disk.commit(0, disk.stored(1)).outcome == DiskOutcome::kPlaced);
  CHECK(entries_now() == kMost);
  const auto place_part = [&](std::uint64_t id) {
    const OptionalLock budget_lock(disk.budget.mutex);
    const OptionalLock tier_lock(disk.tier.mutex);
    return disk.entries.place_part(key(id), {.bytes = 4096}, at(0), disk.budget, disk.tier).outcome;
  };
  CHECK(place_part(100) == DiskOutcome::kIndexFull);
  // One that goes leaves room for another.
  CHECK(disk.commit(0, disk.stored(1, 0)).outcome == DiskOutcome::kNotWanted);
  CHECK(entries_now() == kMost - 1);
  CHECK(place_part(100) == DiskOutcome::kPlaced);
  CHECK(place_part(100) == DiskOutcome::kPlaced);
  CHECK(place_part(101) == DiskOutcome::kIndexFull);
  CHECK(entries_now() == kMost);
  const auto counters_now = [&] {
    const OptionalLock tier_lock(disk.tier.mutex);
    return disk.tier.counters;
  };
  const DiskCounters counters = counters_now();
  const auto of = [](DiskOutcome outcome) { return static_cast<std::size_t>(outcome); };
  CHECK(counters.outcomes[of(DiskOutcome::kPlaced)] == kMost + 1);
  CHECK(counters.outcomes[of(DiskOutcome::kIndexFull)] == 2);
  CHECK(counters.outcomes[of(DiskOutcome::kNotWanted)] == 1);
  CHECK(counters.part_outcomes[of(DiskOutcome::kPlaced)] == 2);
  CHECK(counters.part_outcomes[of(DiskOutcome::kIndexFull)] == 2);
  CHECK(counters.replaced == 2);
}

TEST_CASE("Behind a copy in memory that is freshened the record is to be validated",
          "[cache][disk]") {
  Disk disk;
  disk.store(1, 3);
  Stored fresh = disk.stored(3);
  fresh.fresh_until = at(5000);
  CHECK(disk.entries.freshen(key(1), fresh, at(10)));
  CHECK(disk.find(1, at(4999)).state == LookupState::kFresh);
  disk.store_in_memory(1, 3);
  CHECK(disk.entries.freshen(key(1), fresh, at(10)));
  CHECK(disk.find(1, at(11)).state == LookupState::kStale);
  CHECK_FALSE(disk.entries.freshen(key(2), fresh, at(10)));
}

TEST_CASE("A part is found by its place alone, and needs no tombstone", "[cache][disk]") {
  Disk disk;
  CHECK(disk.entries.find_part(key(1)) == std::unexpected(PartMissing::kAbsent));
  const OptionalLock budget_lock(disk.budget.mutex);
  const OptionalLock tier_lock(disk.tier.mutex);
  const auto first =
      disk.entries.place_part(key(1), {.bytes = 4096}, at(0), disk.budget, disk.tier);
  CHECK(first.outcome == DiskOutcome::kPlaced);
  CHECK(disk.entries.find_part(key(1)) == std::unexpected(PartMissing::kNotWritten));
  const auto second =
      disk.entries.place_part(key(1), {.bytes = 4096}, at(0), disk.budget, disk.tier);
  CHECK(disk.tier.index_bytes() == kDiskEntryBytes);  // replaced
  REQUIRE(disk.entries.set_written(key(1), second.place));
  CHECK(disk.entries.find_part(key(1)) == second.place);
  CHECK(disk.entries.lose(key(1), second.place, DiskLoss::kUnreadable, disk.budget, disk.tier) ==
        DiskVersion{0});
  CHECK(disk.budget.used() == 0);
}

TEST_CASE("A segment is reclaimed in bounded steps: requested objects move, all others are dropped",
          "[cache][disk]") {
  const bool probation = GENERATE(false, true);
  Disk disk(probation);
  std::vector<DiskPlace> places;
  for (std::uint64_t id = 0; !disk.wants_reclaim(); ++id) places.push_back(disk.store(id));
  const std::uint64_t before = disk.index_bytes() / kDiskEntryBytes;
  for (std::uint64_t id = 0; id < 20; ++id) {
    disk.find(id);
    disk.find(id);
  }
  const DiskPlace read = places[21];
  std::uint64_t moved = 0;
  std::uint64_t dropped = 0;
  std::uint32_t steps = 0;
  DiskEntries::Reclaimed step;
  do {
    step = disk.reclaim({&read, 1});
    REQUIRE(step.done.segment == places[0].segment);
    REQUIRE(step.done.moves.size() + step.done.dropped <= DiskEntries::kReclaimMax);
    moved += step.done.moves.size();
    dropped += step.done.dropped;
    // Records that compete are counted first, in a step of its own.
    CHECK(step.counted == (probation && steps == 0));
  } while (++steps < 100 && step.done.state != DiskReclaim::State::kDone);
  CHECK(step.done.state == DiskReclaim::State::kDone);
  CHECK(moved == 21);
  CHECK(dropped > DiskEntries::kReclaimMax);
  CHECK(disk.index_bytes() / kDiskEntryBytes == before - dropped);
  CHECK(disk.entries.has(key(19)));
  CHECK(disk.entries.has(key(21)));
  CHECK_FALSE(disk.entries.has(key(20)));
  // Half of the visits are left of them with probation, and none without.
  CHECK(disk.find(19).promote() == probation);
}

TEST_CASE("Loading takes the newest record of a variant, and says which other disk has one",
          "[cache][disk]") {
  Disk disk;
  DiskRecord record{.key = key(1).hash, .variant = 4, .fresh_until = at(9), .keep_until = at(9)};
  record.place = {.disk = 0, .segment = 0, .unit = 8, .bytes = 512};
  DiskRecord newer = record;
  newer.place.segment = 1;
  const std::vector<std::uint64_t> sequences = {1, 2};
  const OptionalLock budget_lock(disk.budget.mutex);
  const OptionalLock tier_lock(disk.tier.mutex);
  REQUIRE(disk.tier.attach(0, sequences, 10));
  const std::vector<DiskRecord> records = {newer, record};
  const DiskLoaded loaded = disk.entries.load(records, disk.budget, disk.tier);
  CHECK(loaded.inserted == 1);
  CHECK(loaded.twins.empty());
  CHECK(disk.entries.has_at(key(1), newer.place));
  CHECK_FALSE(disk.entries.has_at(key(1), record.place));
}

}  // namespace encore::cache::test
