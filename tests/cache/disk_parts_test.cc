// Parts of bodies on disk, and objects that are on disk alone. (For their behaviour among
// everything else see disk_driver_test.)
#include "cache/disk_parts.h"

#include <set>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

KernelOptions one_disk() {
  KernelOptions options = plain_options(20'000);
  options.disks = {{.segments = 8, .segment_bytes = 64 * 1024}};
  return options;
}

Key part(std::uint64_t i) { return part_key(key(1).hash, 77, i); }

// Placed and written.
DiskPlace put_part(Kernel& kernel, std::uint64_t i, std::uint64_t bytes = 4096) {
  const DiskDecision decision = kernel.place_part(part(i), {.bytes = bytes}, at(1));
  REQUIRE(decision.outcome == DiskOutcome::kPlaced);
  CHECK_FALSE(kernel.written(part(i), decision.place, Kernel::Write::kDone, at(1)));
  return decision.place;
}

class Ask final : public Visitor {
 public:
  Verdict visit(const EntryView& /*entry*/) override { return Verdict::kRemove; }
  Verdict visit_disk(const DiskView& /*view*/) override {
    ++asked;
    return Verdict::kRemove;
  }
  int asked = 0;
};

}  // namespace

TEST_CASE("The parts of a body are all of it", "[cache][disk]") {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kPartBytes - 1, kPartBytes,
                                    kPartBytes + 1, 10 * kPartBytes, std::uint64_t{10} << 40U}) {
    std::uint64_t sum = 0;
    const std::uint64_t count = part_count(bytes);
    for (const std::uint64_t i : {std::uint64_t{0}, count - 1}) {
      if (count != 0) {
        CHECK(part_bytes(bytes, i) > 0);
        CHECK(part_bytes(bytes, i) <= kPartBytes);
        CHECK((i + 1 == count || part_bytes(bytes, i) == kPartBytes));
        sum = i * kPartBytes + part_bytes(bytes, i);
      }
    }
    CHECK(sum == bytes);
  }
}

TEST_CASE("Segments of the usual sizes are filled by parts", "[cache][disk]") {
  for (const std::uint64_t segment : {16 * kMiB, 64 * kMiB, 256 * kMiB}) {
    SegmentLog log({.disk = 0, .segments = 4, .segment_bytes = segment});
    std::uint64_t parts = 0;
    // A front of a few KiB: checksums of 63 blocks, a header.
    while (log.place({.bytes = kPartBytes + 4096})->place.segment == 0) ++parts;
    CHECK(static_cast<double>(parts * kPartBytes) > 0.98 * static_cast<double>(segment));
  }
}

TEST_CASE("A part's key is XXH3 of its four words", "[cache][disk]") {
  const filter::Hash128 object{0x0123456789abcdef, 0xfedcba9876543210};
  const Key found = part_key(object, 5, 1'000'000);
  // XXH3_128bits() of libxxhash 0.8 says so of these 32 bytes. Disks are full of them.
  CHECK(found.hash == filter::Hash128{0x58abc75d28536fae, 0xde39702a5ff48a36});
  CHECK(found.bytes.empty());
}

TEST_CASE("A part is found once it is written, and no object for it", "[cache][disk]") {
  const auto kernel = make_kernel(one_disk());
  const DiskDecision decision = kernel->place_part(part(0), {.bytes = 5000}, at(1));
  REQUIRE(decision.outcome == DiskOutcome::kPlaced);
  CHECK(decision.version != 0);
  CHECK_FALSE(decision.tombstone);
  CHECK(kernel->find_part(part(0), at(1)).error() == PartMissing::kNotWritten);
  kernel->written(part(0), decision.place, Kernel::Write::kDone, at(1));
  CHECK(kernel->find_part(part(0), at(1)) == decision.place);
  // There is no end to its time.
  CHECK(kernel->find_part(part(0), at(1'000'000'000)) == decision.place);
  CHECK(kernel->find_part(part(1), at(1)).error() == PartMissing::kAbsent);
  CHECK(kernel->admit(key(1), {.size_bytes = 10}, at(1)) != AdmitReason::kResident);
  const KernelStatistics statistics = kernel->statistics();
  CHECK(statistics.disk.entries == 0);
  CHECK(statistics.disk.parts == 1);
  CHECK(statistics.used_bytes == kernel->charge_of_disk_entry());
  CHECK(statistics.disk.index_bytes == kernel->charge_of_disk_entry());
  CHECK(statistics.disk.counters.part_outcomes[static_cast<std::size_t>(DiskOutcome::kPlaced)] ==
        1);
  CHECK(statistics.disk.counters.outcomes == decltype(statistics.disk.counters.outcomes){});
  CHECK(statistics.disk.counters.fresh_hits + statistics.counters.misses == 0);
  CHECK(statistics.disk.disks[0].objects == 0);
  CHECK(statistics.disk.disks[0].parts == 1);
}

TEST_CASE("Parts are not shown to who purges, and have no tombstones", "[cache][disk]") {
  const auto kernel = make_kernel(one_disk());
  const DiskPlace first = put_part(*kernel, 0);
  put_part(*kernel, 1);
  DiskDecision object;
  kernel->commit(key(1), {.charge_bytes = 100, .disk_bytes = 100}, 0, at(1), &object);
  Ask ask;
  Kernel::Cursor cursor;
  while (kernel->for_each(cursor, 100, ask, at(2))) {
  }
  CHECK(ask.asked == 1);
  CHECK(kernel->statistics().disk.entries == 0);
  CHECK(kernel->statistics().disk.parts == 2);
  CHECK_FALSE(kernel->lost(part(0), first, at(3)));
  CHECK_FALSE(kernel->find_part(part(0), at(3)));
  const DiskDecision again = kernel->place_part(part(0), {.bytes = 100}, at(3));
  CHECK_FALSE(kernel->written(part(0), again.place, Kernel::Write::kFailed, at(3)));
  CHECK_FALSE(kernel->find_part(part(0), at(3)));
  const DiskCounters& counters = kernel->statistics().disk.counters;
  CHECK(counters.part_losses[static_cast<std::size_t>(DiskLoss::kUnreadable)] == 1);
  CHECK(counters.part_losses[static_cast<std::size_t>(DiskLoss::kWriteFailed)] == 1);
  CHECK(counters.losses == decltype(counters.losses){});
}

TEST_CASE("A part is refused as an object would be, and what there was of it goes",
          "[cache][disk]") {
  KernelOptions options = one_disk();
  const auto kernel = make_kernel(options);
  const auto refused = [&](const PartRequest& wish) {
    put_part(*kernel, 0, 100);
    const DiskOutcome outcome = kernel->place_part(part(0), wish, at(10)).outcome;
    CHECK(kernel->statistics().disk.parts == 0);
    return outcome;
  };
  CHECK(refused({.bytes = 100, .queue_full = true}) == DiskOutcome::kQueueFull);
  CHECK(refused({.bytes = 100, .useless_from = at(69)}) == DiskOutcome::kShortLived);
  CHECK(refused({.bytes = 1 << 20}) == DiskOutcome::kTooLarge);
  kernel->take_offline(0, at(10));
  CHECK(kernel->place_part(part(0), {.bytes = 100}, at(10)).outcome == DiskOutcome::kOffline);
  options.capacity_bytes = 60;  // half of it has no room for an entry
  CHECK(make_kernel(options)->place_part(part(0), {.bytes = 100}, at(10)).outcome ==
        DiskOutcome::kIndexFull);
}

TEST_CASE("Parts that are read move on as their segment goes, and others do not", "[cache][disk]") {
  const auto kernel = make_kernel(one_disk());
  std::uint64_t next = 0;
  while (put_part(*kernel, next).segment == 0) {
    ++next;
  }
  REQUIRE(next > 8);
  const std::set<std::uint64_t> read{1, 4, 6};
  std::vector<DiskPlace> being_read;
  for (std::uint64_t i = 0; i < next; ++i) {
    const auto place = kernel->find_part(part(i), at(2));
    REQUIRE(place);
    if (read.contains(i)) {
      being_read.push_back(*place);
    }
  }
  kernel->resize_disk(0, 2, at(3));
  std::uint32_t moved = 0;
  while (kernel->statistics().disk.counters.segments_reclaimed == 0) {
    const DiskReclaim step = kernel->reclaim_disk(0, being_read, at(4));
    REQUIRE(step.state != DiskReclaim::State::kNothing);
    moved += static_cast<std::uint32_t>(step.moves.size());
    CHECK(step.buried.empty());
  }
  CHECK(moved == 3);
  for (std::uint64_t i = 0; i < next; ++i) {
    CHECK(kernel->find_part(part(i), at(5)).has_value() == read.contains(i));
  }
  CHECK(kernel->statistics()
            .disk.counters.part_losses[static_cast<std::size_t>(DiskLoss::kDropped)] == next - 3);
}

TEST_CASE("What is for the disk only takes the place of what memory had", "[cache][disk]") {
  CountingOwner owner;
  KernelOptions options = one_disk();
  options.entry_overhead_bytes = kEntryOverheadBytes;
  const auto kernel = make_kernel(options, {.owner = &owner});
  DiskDecision decision;
  REQUIRE(kernel->commit(key(1), {.charge_bytes = 500, .payload = 7}, 0, at(1)) ==
          CommitOutcome::kStored);
  const Stored alone{.disk_bytes = 900, .disk_only = true};
  REQUIRE(kernel->commit(key(1), alone, 0, at(1), &decision) == CommitOutcome::kReplaced);
  REQUIRE(decision.outcome == DiskOutcome::kPlaced);
  CHECK(owner.released(7) == 1);
  CHECK(kernel->statistics().used_bytes == kernel->charge_of_disk_entry());
  CHECK(kernel->statistics().objects == 0);
  kernel->written(key(1), decision.place, Kernel::Write::kDone, at(1));
  const LookupResult found = kernel->lookup(key(1), at(2));
  CHECK(found.on_disk());
  CHECK(found.state == LookupState::kFresh);
  CHECK(kernel->admit(key(1), {.size_bytes = 10}, at(2)) == AdmitReason::kResident);
  // Again, from disk to disk; and another one that nobody had, with a reservation that goes back.
  CHECK(kernel->commit(key(1), alone, 0, at(3), &decision) == CommitOutcome::kReplaced);
  REQUIRE(kernel->reserve(key(2), 5000, at(3)) == ReserveOutcome::kReserved);
  CHECK(kernel->commit(key(2), alone, 5000, at(3), &decision) == CommitOutcome::kStored);
  CHECK(kernel->statistics().used_bytes == 2 * kernel->charge_of_disk_entry());
  CHECK(kernel->statistics().reserved_bytes == 0);
  CHECK(kernel->statistics().disk.counters.stored_alone == 3);
}

TEST_CASE("What the disk does not take of it is nowhere then", "[cache][disk]") {
  CountingOwner owner;
  const auto kernel = make_kernel(one_disk(), {.owner = &owner});
  DiskDecision decision;
  REQUIRE(kernel->commit(key(1), {.charge_bytes = 500, .payload = 7, .disk_bytes = 600}, 0, at(1),
                         &decision) == CommitOutcome::kStored);
  REQUIRE(decision.outcome == DiskOutcome::kPlaced);
  kernel->written(key(1), decision.place, Kernel::Write::kDone, at(1));
  const Stored refused{.disk_bytes = 900, .disk_queue_full = true, .disk_only = true};
  CHECK(kernel->commit(key(1), refused, 0, at(2), &decision) == CommitOutcome::kRefused);
  CHECK(decision.outcome == DiskOutcome::kQueueFull);
  // The record of the one before must not be found again.
  CHECK(decision.tombstone);
  CHECK(kernel->lookup(key(1), at(2)).state == LookupState::kMiss);
  CHECK_FALSE(kernel->lookup(key(1), at(2)).any_resident);
  CHECK(owner.released(7) == 1);
  CHECK(kernel->statistics().used_bytes == 0);
  // Nothing was, nothing is, and nothing has to be remembered.
  CHECK(kernel->commit(key(2), refused, 0, at(2), &decision) == CommitOutcome::kRefused);
  CHECK_FALSE(decision.tombstone);
  CHECK(kernel->statistics().disk.counters.stored_alone == 0);
}

TEST_CASE("A body takes an eighth of the disks in service", "[cache][disk]") {
  KernelOptions options = one_disk();
  options.disks.push_back({.segments = 4, .segment_bytes = 128 * 1024});
  const auto kernel = make_kernel(options);
  CHECK(kernel->disk_body_max() == 128 * 1024);
  kernel->resize_disk(1, 12, at(1));
  CHECK(kernel->disk_body_max() == 256 * 1024);
  kernel->take_offline(1, at(1));
  CHECK(kernel->disk_body_max() == 64 * 1024);
}

TEST_CASE("The largest object of the memory is no bound for what is on disk only",
          "[cache][disk][admission]") {
  KernelOptions options = one_disk();
  options.max_object_bytes = 1000;
  const auto kernel = make_kernel(options);
  CHECK(kernel->admit(key(1), {.size_bytes = 1001}, at(1)) == AdmitReason::kTooLarge);
  CHECK(kernel->admit(key(1), {.size_bytes = 1001, .disk_only = true}, at(1)) ==
        AdmitReason::kPolicyAlways);
}

}  // namespace encore::cache::test
