// The policies of disks, each by what it says of single objects.
#include "cache/disk_policies.h"

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kRoom = 1000;

DiskObject object(std::uint32_t visits, std::uint64_t bytes = 100) {
  DiskObject made;
  made.visits = visits;
  made.view.visited = visits != 0;
  made.view.place.bytes = bytes;
  made.view.fresh_until = at(10);
  made.view.keep_until = at(20);
  return made;
}

}  // namespace

TEST_CASE("Without probation fresh objects move that were requested, in one round",
          "[cache][disk]") {
  const DiskPolicy& policy = disk_policy_for(false);
  ReinsertBudget room(kRoom, 1);
  CHECK_FALSE(policy.compares());
  CHECK(policy.move(object(1), at(9), room) == 0U);
  CHECK_FALSE(policy.move(object(1), at(10), room));
  CHECK_FALSE(policy.move(object(0), at(9), room));
  DiskObject copied = object(0);
  copied.in_memory = true;
  CHECK(policy.move(copied, at(9), room) == 0U);
  DiskObject part = object(1);
  part.part = true;
  CHECK_FALSE(policy.move(part, at(9), room));
  part.being_read = true;
  CHECK(policy.move(part, at(9), room) == 0U);
}

TEST_CASE("Without probation a shard moves as much as its share and what is left before it",
          "[cache][disk]") {
  const DiskPolicy& policy = disk_policy_for(false);
  ReinsertBudget room(kRoom, 4);
  CHECK(policy.move(object(1, 250), at(0), room));
  room.moved(250);
  CHECK_FALSE(policy.move(object(1), at(0), room));
  DiskObject later = object(1, 500);
  later.shard = 2;
  CHECK(policy.move(later, at(0), room));
  DiskObject read = object(1);
  read.being_read = true;
  CHECK(policy.move(read, at(0), room));
}

TEST_CASE("Probation moves what has two visits and can be validated, the most visited first",
          "[cache][disk]") {
  const DiskPolicy& policy = disk_policy_for(true);
  ReinsertBudget room(kRoom, 1);
  CHECK(policy.compares());
  for (const std::uint32_t visits : {1U, 2U, 3U, 7U})
    policy.count(object(visits, 400), at(15), room);
  policy.count(object(7), at(20), room);  // expired
  room.end_count();
  CHECK_FALSE(policy.move(object(1, 400), at(15), room));
  CHECK(policy.move(object(7, 400), at(15), room) == 3U);
  CHECK(policy.move(object(3, 400), at(15), room) == 1U);
  CHECK_FALSE(policy.move(object(2, 400), at(15), room));
  CHECK_FALSE(policy.move(object(7), at(20), room));
}

TEST_CASE("With probation as well what is being read moves, and takes its room first",
          "[cache][disk]") {
  const DiskPolicy& policy = disk_policy_for(true);
  ReinsertBudget room(kRoom, 1);
  room.end_count();
  DiskObject part = object(0, 950);
  part.part = true;
  CHECK_FALSE(policy.move(part, at(0), room));
  part.being_read = true;
  CHECK(policy.move(part, at(0), room) == 0U);
  CHECK_FALSE(policy.move(object(7), at(0), room));
}

TEST_CASE("The second hit on disk brings an object into memory", "[cache][disk]") {
  for (const bool probation : {false, true}) {
    CHECK_FALSE(disk_policy_for(probation).promotes(object(0).view));
    CHECK(disk_policy_for(probation).promotes(object(1).view));
  }
}

}  // namespace encore::cache::test
