// Which objects of a segment move on, against a naive choice: all are sorted by visits.
#include "cache/reinsert_budget.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

struct Object {
  std::uint32_t shard = 0;
  std::uint32_t visits = 0;
  std::uint64_t bytes = 0;
};

// Shard after shard, those of one with the most visits first, as a kernel asks.
std::vector<Object> moved(std::vector<Object> objects, std::uint64_t room, std::uint32_t shards) {
  ReinsertBudget choice(room, shards);
  for (const Object& each : objects) choice.count(each.visits, each.bytes);
  choice.end_count();
  std::ranges::stable_sort(objects, [](const Object& a, const Object& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.visits > b.visits;
  });
  std::erase_if(objects, [&](const Object& each) {
    return !choice.take(each.visits, each.shard, each.bytes);
  });
  return objects;
}

std::uint64_t sum(const std::vector<Object>& objects) {
  std::uint64_t bytes = 0;
  for (const Object& each : objects) bytes += each.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("Whatever fits moves, from every shard", "[cache][disk]") {
  // Each is larger than a shard's part of the room.
  const std::vector<Object> objects = {{0, 2, 100}, {3, 7, 100}, {15, 2, 100}};
  CHECK(moved(objects, 300, 16).size() == 3);
}

TEST_CASE("The most visited move, whatever shards they belong to", "[cache][disk]") {
  std::vector<Object> objects;
  for (std::uint32_t shard = 0; shard < 16; ++shard) objects.push_back({shard, 2, 100});
  objects.push_back({15, 5, 100});
  objects.push_back({14, 3, 100});
  const std::vector<Object> chosen = moved(objects, 600, 16);
  CHECK(sum(chosen) == 600);
  CHECK(std::ranges::count_if(chosen, [](const Object& each) { return each.visits > 2; }) == 2);
  // The other four are not all of the first shards.
  CHECK(std::ranges::count_if(chosen, [](const Object& each) { return each.shard > 7; }) >= 3);
}

TEST_CASE("What is being read takes its room first", "[cache][disk]") {
  ReinsertBudget choice(300, 1);
  choice.count(4, 300);
  choice.end_count();
  choice.take_any(200);
  CHECK(choice.take(4, 0, 100));
  CHECK_FALSE(choice.take(4, 0, 100));
}

TEST_CASE("What was not counted has no more than the room", "[cache][disk]") {
  ReinsertBudget choice(300, 2);
  choice.end_count();
  CHECK(choice.take(2, 0, 200));
  CHECK_FALSE(choice.take(7, 1, 200));
  CHECK(choice.take(3, 1, 100));
  CHECK_FALSE(choice.take(3, 1, 1));
}

TEST_CASE("No object stays for one that is visited less, but for want of room for it",
          "[cache][disk]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t shards = 1U << random() % 7;
    const std::uint64_t room = 1 + random() % 3000;
    const std::uint64_t each_bytes = 1 + random() % 200;
    std::vector<Object> objects(random() % 60);
    for (Object& each : objects) {
      each = {.shard = static_cast<std::uint32_t>(random() % shards),
              .visits = static_cast<std::uint32_t>(2 + random() % 6),
              .bytes = each_bytes};
    }
    std::vector<Object> wanted = objects;
    std::ranges::stable_sort(wanted, std::ranges::greater{}, &Object::visits);
    wanted.resize(std::min<std::size_t>(wanted.size(), room / each_bytes));
    const std::vector<Object> chosen = moved(objects, room, shards);
    CAPTURE(round, shards, room, each_bytes);
    CHECK(sum(chosen) <= room);
    for (std::uint32_t visits = 2; visits <= ReinsertBudget::kVisitsMax; ++visits) {
      const auto count = [&](const std::vector<Object>& of) {
        return std::ranges::count(of, visits, &Object::visits);
      };
      const bool is_fewest = !wanted.empty() && wanted.back().visits == visits;
      // A shard with none of the fewest visits leaves its share to the shards behind it alone.
      CHECK((is_fewest ? count(chosen) <= count(wanted) : count(chosen) == count(wanted)));
    }
  }
}

}  // namespace encore::cache::test
