#include "cache/index.h"

#include <unordered_map>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

class Fixture {
 public:
  EntryRef add(std::uint64_t id) {
    const EntryRef ref = slab.allocate();
    slab.hot(ref).key = key_of(id);
    index.insert(key_of(id), ref);
    return ref;
  }
  void drop(std::uint64_t id, EntryRef ref) {
    index.erase(key_of(id));
    slab.release(ref);
  }
  static filter::Hash128 key_of(std::uint64_t id) { return {id, 0}; }  // weak on purpose

  EntrySlab slab;
  Index index{slab};
};

}  // namespace

TEST_CASE("The index finds what is in it and nothing else, through growth and shrinking",
          "[cache]") {
  Fixture fixture;
  std::unordered_map<std::uint64_t, EntryRef> model;
  std::mt19937_64 random(7);
  for (const std::size_t target : {100UL, 20'000UL, 30UL, 5'000UL, 0UL}) {
    while (model.size() != target) {
      const std::uint64_t id = random() % 60'000;
      const bool grow = model.size() < target;
      const auto found = model.find(id);
      if (grow && found == model.end()) {
        model.emplace(id, fixture.add(id));
      } else if (!grow && found != model.end()) {
        fixture.drop(id, found->second);
        model.erase(found);
      }
    }
    std::uint64_t wrong = 0;
    for (std::uint64_t id = 0; id < 60'000; ++id) {
      const auto found = model.find(id);
      const EntryRef expected = found == model.end() ? kNoEntry : found->second;
      wrong += fixture.index.find(Fixture::key_of(id)) != expected ? 1U : 0U;
    }
    CHECK(wrong == 0);
  }
  CHECK(fixture.slab.size() == 0);
}

TEST_CASE("The index takes about ten bytes an entry and gives memory back", "[cache]") {
  Fixture fixture;
  std::vector<EntryRef> refs;
  for (std::uint64_t id = 0; id < 200'000; ++id) {
    refs.push_back(fixture.add(id));
  }
  const double full = static_cast<double>(fixture.index.memory_bytes());
  CHECK(full / 200'000 < 12);
  CHECK(static_cast<double>(fixture.slab.memory_bytes()) / 200'000 < 33);  // hot halves only
  for (std::uint64_t id = 1000; id < 200'000; ++id) {
    fixture.drop(id, refs[id]);
  }
  CHECK(static_cast<double>(fixture.index.memory_bytes()) < full / 4);
  CHECK(fixture.slab.memory_bytes() < 2 * EntrySlab::kChunk * sizeof(HotEntry) + 4096);
  CHECK(fixture.index.find(Fixture::key_of(999)) == refs[999]);
}

TEST_CASE("An index that knows how many will come grows early, and to the same size", "[cache]") {
  constexpr std::uint64_t kEntries = 200'000;
  struct Filled {
    std::uint64_t quarter_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
  };
  const auto fill = [](std::uint64_t expected) {
    DiskSlab slab;
    DiskIndex index(slab);
    const auto key = [](std::uint64_t id) {
      return EntryKeys::mixed_key({id * 0x9e3779b97f4a7c15U, id});
    };
    Filled filled;
    for (std::uint64_t id = 0; id < kEntries; ++id) {
      // As a start does it: only after the first of them is it known.
      if (id == kEntries / 50) index.expect(expected);
      const EntryRef ref = slab.allocate();
      slab.at(ref).set_key(key(id));
      index.insert(key(id), ref);
      if (id == kEntries / 4) filled.quarter_bytes = index.memory_bytes();
    }
    filled.bytes = index.memory_bytes();
    for (std::uint64_t id = 0; id < kEntries; ++id) {
      filled.lost += index.find(key(id)) == kNoEntry ? 1U : 0U;
    }
    return filled;
  };
  const Filled usual = fill(0);
  const Filled known = fill(kEntries);
  const Filled too_many = fill(100 * kEntries);
  CHECK(usual.lost + known.lost + too_many.lost == 0);
  CHECK(known.quarter_bytes > 2 * usual.quarter_bytes);
  CHECK(static_cast<double>(known.bytes) < 1.1 * static_cast<double>(usual.bytes));
  CHECK(too_many.bytes < 6 * usual.bytes);
}

TEST_CASE("The slab reuses the lowest places first", "[cache]") {
  EntrySlab slab;
  std::vector<EntryRef> refs;
  for (std::uint32_t i = 0; i < 3 * EntrySlab::kChunk; ++i) {
    refs.push_back(slab.allocate());
    REQUIRE(refs.back() == i);
  }
  slab.release(2 * EntrySlab::kChunk);
  slab.release(5);
  CHECK(slab.allocate() == 5);
  CHECK(slab.allocate() == 2 * EntrySlab::kChunk);
  CHECK(slab.allocate() == 3 * EntrySlab::kChunk);
}

TEST_CASE("Cold halves that come late give older entries their defaults", "[cache]") {
  EntrySlab slab;
  const EntryRef first = slab.allocate();
  CHECK_FALSE(slab.has_cold());
  REQUIRE(slab.need_cold());
  CHECK(slab.cold(first).payload == 0);
  CHECK(slab.cold(first).fresh_until == MonotonicTime::max());
  CHECK(slab.cold(first).next_variant == kNoEntry);
}

}  // namespace encore::cache::test
