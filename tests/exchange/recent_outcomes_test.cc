#include "proxy/exchange/recent_outcomes.h"

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Seen = RecentOutcomes::Seen;

WallTime at(int second) { return WallTime(std::chrono::seconds(second)); }
// Returns a key of one set.
filter::Hash128 key(std::uint64_t i) { return {i, 5}; }

}  // namespace

TEST_CASE("What a key came to is known latest first, and in a row as one", "[exchange][recent]") {
  RecentOutcomes recent;
  CHECK(recent.of(key(1)).empty());
  const Seen first{.outcome = Outcome::kFirstRequest, .status = 200};
  const Seen refused{
      .outcome = Outcome::kUncacheable, .reason = http::StoreReason::kNoStore, .status = 200};
  recent.note(key(1), first, at(1));
  recent.note(key(1), refused, at(2));
  recent.note(key(2), first, at(3));
  recent.note(key(1), refused, at(4));
  const auto known = recent.of(key(1));
  REQUIRE(known.size() == 2);
  CHECK(known[0].seen == refused);
  CHECK(known[0].times == 2);
  CHECK(known[0].first == at(2));
  CHECK(known[0].last == at(4));
  CHECK(known[1].seen == first);
  CHECK(known[1].times == 1);
  recent.note(key(1), first, at(5));
  CHECK(recent.of(key(1)).size() == 3);
}

TEST_CASE("Of more than a set has room for, what was seen longest ago is forgotten",
          "[exchange][recent]") {
  RecentOutcomes recent;
  const Seen hit{.outcome = Outcome::kRevalidated, .status = 200};
  for (std::uint64_t i = 0; i < RecentOutcomes::kWays; ++i) recent.note(key(i), hit, at(1));
  recent.note(key(0), hit, at(2));  // seen again
  recent.note(key(100), hit, at(3));
  CHECK(recent.of(key(0)).size() == 1);
  CHECK(recent.of(key(1)).empty());
  CHECK(recent.of(key(2)).size() == 1);
  // One key with another result each time has no more than its set.
  for (int i = 0; i < 1000; ++i) {
    recent.note({7, 6}, {.outcome = Outcome::kHit, .status = static_cast<std::uint16_t>(i)}, at(i));
  }
  CHECK(recent.of({7, 6}).size() == RecentOutcomes::kWays);
  CHECK(recent.of(key(100)).size() == 1);
}

TEST_CASE("What is known of keys is what a plain list would know", "[exchange][recent]") {
  struct Line {
    filter::Hash128 key;
    RecentOutcomes::Outcomes outcomes;
  };
  RecentOutcomes recent;
  std::map<std::uint64_t, std::vector<Line>> sets;  // the latest note of each last
  std::mt19937_64 random(GENERATE(1U, 2U));
  for (int i = 0; i < 3000; ++i) {
    const filter::Hash128 key{random() % 9, random() % 2};
    Seen seen;
    seen.status = static_cast<std::uint16_t>(random() % 2);
    if (random() % 4 == 0) seen.was_overtaken = true;
    recent.note(key, seen, at(i));
    std::vector<Line>& set = sets[key.hi];
    const auto latest =
        std::find_if(set.rbegin(), set.rend(), [&](const Line& line) { return line.key == key; });
    Line line{.key = key, .outcomes = {.seen = seen, .first = at(i)}};
    if (latest != set.rend() && latest->outcomes.seen == seen) {
      line = *latest;
      set.erase(std::next(latest).base());
    } else if (set.size() == RecentOutcomes::kWays) {
      set.erase(set.begin());
    }
    ++line.outcomes.times;
    line.outcomes.last = at(i);
    set.push_back(line);
    const filter::Hash128 asked{random() % 9, key.hi};
    const auto known = recent.of(asked);
    std::vector<RecentOutcomes::Outcomes> expected;
    for (auto each = set.rbegin(); each != set.rend(); ++each) {
      if (each->key == asked) expected.push_back(each->outcomes);
    }
    REQUIRE(known.size() == expected.size());
    for (std::size_t j = 0; j < known.size(); ++j) {
      REQUIRE(known[j].seen == expected[j].seen);
      REQUIRE(known[j].times == expected[j].times);
      REQUIRE(known[j].first == expected[j].first);
      REQUIRE(known[j].last == expected[j].last);
    }
  }
}

TEST_CASE("Threads note and ask at once", "[exchange][recent][threads]") {
  RecentOutcomes recent;
  constexpr std::uint64_t kTimes = 20000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&recent] {
      for (std::uint64_t i = 0; i < kTimes; ++i) {
        recent.note(key(1), {.outcome = Outcome::kHit, .status = 200}, at(1));
        (void)recent.of(key(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(recent.of(key(1)).size() == 1);
  CHECK(recent.of(key(1))[0].times == 3 * kTimes);
}

}  // namespace encore::server
