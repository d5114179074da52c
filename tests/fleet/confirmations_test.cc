#include "proxy/fleet/confirmations.h"

#include "tests/catch.h"

namespace encore::fleet {
namespace {

using Names = std::vector<std::string>;

struct Confirming {
  Confirmations all;
  std::map<std::uint64_t, server::FleetPurge> done;

  void add(std::uint64_t number, Names present, Names away = {}) {
    all.add(number, {std::move(present), std::move(away)}, "self", at(10),
            [this, number](server::FleetPurge result) { done[number] = std::move(result); });
  }
  static MonotonicTime at(int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); }
};

TEST_CASE("a purge is confirmed when each present node is at its place", "[fleet]") {
  Confirming confirming;
  confirming.add(1, {"a", "b"});
  confirming.all.published(1, {5, 0}, Confirming::at(1));
  confirming.all.confirmed("a", {5, 0});
  confirming.all.confirmed("b", {4, 9});
  CHECK(confirming.done.empty());
  confirming.all.confirmed("stranger", {9, 0});
  CHECK(confirming.done.empty());
  confirming.all.confirmed("b", {6, 0});
  REQUIRE(confirming.done.contains(1));
  CHECK(confirming.done[1].is_published);
  CHECK(confirming.done[1].confirmed == Names{"a", "b", "self"});
  CHECK(confirming.done[1].unconfirmed.empty());
  CHECK(confirming.all.missed() == 0);
}

TEST_CASE("a node may confirm before the publisher knows the place", "[fleet]") {
  Confirming confirming;
  confirming.add(1, {"a"});
  confirming.all.confirmed("a", {5, 0});
  CHECK(confirming.done.empty());
  confirming.all.published(1, {5, 0}, Confirming::at(1));
  CHECK(confirming.done.contains(1));
  // But not with what it said of an engine before.
  confirming.all.forget_positions();
  confirming.add(2, {"a"});
  confirming.all.published(2, {4, 0}, Confirming::at(1));
  CHECK_FALSE(confirming.done.contains(2));
}

TEST_CASE("thousands of nodes that came and went leave space for others", "[fleet]") {
  Confirming confirming;
  for (std::size_t i = 0; i < 3 * Confirmations::kNodesMax; ++i) {
    confirming.all.confirmed("old" + std::to_string(i), {9, 0});
  }
  confirming.add(1, {"new"});
  confirming.all.published(1, {5, 0}, Confirming::at(1));
  confirming.all.confirmed("new", {5, 0});
  CHECK(confirming.done.contains(1));
}

TEST_CASE("nodes that are away or late are named", "[fleet]") {
  Confirming confirming;
  confirming.add(1, {"b", "a"}, {"gone"});
  confirming.all.published(1, {5, 0}, Confirming::at(1));
  confirming.all.confirmed("b", {5, 0});
  confirming.all.expire(Confirming::at(9));
  CHECK(confirming.done.empty());
  CHECK(confirming.all.next_end() == Confirming::at(10));
  confirming.all.expire(Confirming::at(10));
  REQUIRE(confirming.done.contains(1));
  CHECK(confirming.done[1].confirmed == Names{"b", "self"});
  CHECK(confirming.done[1].unconfirmed == Names{"a", "gone"});
  CHECK(confirming.all.missed() == 1);
  CHECK_FALSE(confirming.all.next_end());
  // Nobody is waited for who is away.
  confirming.add(2, {}, {"gone"});
  confirming.all.published(2, {6, 0}, Confirming::at(1));
  REQUIRE(confirming.done.contains(2));
  CHECK(confirming.done[2].unconfirmed == Names{"gone"});
}

TEST_CASE("a purge that is not published waits for that to be known", "[fleet]") {
  Confirming confirming;
  confirming.add(1, {"a"});
  confirming.add(2, {"a"});
  confirming.add(3, {"a"});
  confirming.all.expire(Confirming::at(100));
  CHECK(confirming.done.empty());
  confirming.all.unpublished(1, false);
  REQUIRE(confirming.done.contains(1));
  CHECK_FALSE(confirming.done[1].is_published);
  CHECK_FALSE(confirming.done[1].is_dropped);
  CHECK(confirming.done[1].unconfirmed == Names{"a"});
  confirming.all.published(2, {5, 0}, Confirming::at(1));
  confirming.all.drop_unpublished();
  CHECK_FALSE(confirming.done.contains(2));
  REQUIRE(confirming.done.contains(3));
  CHECK(confirming.done[3].is_dropped);
  CHECK(confirming.all.missed() == 2);
}

}  // namespace
}  // namespace encore::fleet
