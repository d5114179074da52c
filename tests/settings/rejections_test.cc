#include "proxy/settings/rejections.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr MonotonicTime kThen{hours(1000)};

net::Address client(std::string_view ip) { return net::Address::parse_ip(ip, 1).value(); }

}  // namespace

TEST_CASE("three refusals begin a pause, one or two do not", "[settings][intercept]") {
  Rejections rejections;
  const Rejections::Terms terms;
  CHECK_FALSE(rejections.note(client("10.0.0.1"), "a.example", kThen, terms));
  CHECK_FALSE(rejections.note(client("10.0.0.1"), "a.example", kThen + minutes(10), terms));
  CHECK_FALSE(rejections.is_paused(client("10.0.0.1"), "a.example", kThen + minutes(10)));
  // Neither another client nor another host has a part in it.
  CHECK_FALSE(rejections.note(client("10.0.0.2"), "a.example", kThen + minutes(10), terms));
  CHECK_FALSE(rejections.note(client("10.0.0.1"), "b.example", kThen + minutes(10), terms));
  const MonotonicTime third = kThen + minutes(20);
  CHECK(rejections.note(client("10.0.0.1"), "a.example", third, terms) == minutes(1));
  CHECK(rejections.is_paused(client("10.0.0.1"), "a.example", third));
  CHECK(rejections.is_paused(client("10.0.0.1"), "a.example", third + seconds(59)));
  CHECK_FALSE(rejections.is_paused(client("10.0.0.1"), "a.example", third + minutes(1)));
  CHECK_FALSE(rejections.is_paused(client("10.0.0.2"), "a.example", third));
  CHECK_FALSE(rejections.is_paused(client("10.0.0.1"), "b.example", third));
}

TEST_CASE("refusals that are too far apart are not added up", "[settings][intercept]") {
  Rejections rejections;
  MonotonicTime now = kThen;
  for (int i = 0; i < 10; ++i, now += minutes(61)) {
    CHECK_FALSE(rejections.note(client("10.0.0.1"), "a.example", now, {}));
  }
}

TEST_CASE("pauses double up to the longest, one refusal each", "[settings][intercept]") {
  Rejections rejections;
  const Rejections::Terms terms{.after = 1, .first = minutes(1), .longest = hours(1)};
  MonotonicTime now = kThen;
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 9; ++i) {
    const auto pause = rejections.note(client("10.0.0.1"), "a.example", now, terms);
    REQUIRE(pause);
    pauses.push_back(std::chrono::duration_cast<minutes>(*pause).count());
    // Connections that had begun before change nothing.
    CHECK_FALSE(rejections.note(client("10.0.0.1"), "a.example", now + seconds(1), terms));
    now += *pause;
  }
  CHECK(pauses == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60});
  // A client that accepts it for long enough starts anew.
  now += hours(1);
  CHECK(rejections.newest(10, now).empty());
  CHECK(rejections.note(client("10.0.0.1"), "a.example", now, terms) == minutes(1));
}

TEST_CASE("who has refused is shown, and can be cleared", "[settings][intercept]") {
  Rejections rejections;
  const Rejections::Terms terms{.after = 2};
  const auto refuse = [&](std::string_view ip, std::string_view host) {
    (void)rejections.note(client(ip), host, kThen, terms);
  };
  refuse("10.0.0.1", "a.example");
  refuse("10.0.0.1", "a.example");
  refuse("10.0.0.1", "b.example");
  refuse("2001:db8::1", "a.example");
  CHECK(rejections.paused(kThen) == 1);
  const auto shown = rejections.newest(2, kThen + seconds(20));
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].client == "2001:db8::1");
  CHECK(shown[0].left == Nanoseconds(0));
  CHECK(shown[1].host == "b.example");
  const auto all = rejections.newest(100, kThen + seconds(20));
  REQUIRE(all.size() == 3);
  CHECK(all[2].refusals == 2);
  CHECK(all[2].left == seconds(40));
  // By its network.
  CHECK(rejections.clear({.client = client("2001:db8::2"), .host = "b.example"}) == 0);
  CHECK(rejections.clear({.client = client("2001:db8::2")}) == 1);
  CHECK(rejections.clear({.host = "a.example"}) == 1);
  CHECK_FALSE(rejections.is_paused(client("10.0.0.1"), "a.example", kThen));
  refuse("10.0.0.1", "a.example");
  CHECK_FALSE(rejections.is_paused(client("10.0.0.1"), "a.example", kThen));
  CHECK(rejections.clear({}) == 2);
  CHECK(rejections.newest(100, kThen).empty());
}

TEST_CASE("a client has its share of the pairs, and the oldest leaves", "[settings][intercept]") {
  Rejections rejections(4, 2);
  const auto known = [&](std::string_view ip, const std::string& host) {
    for (const auto& pair : rejections.newest(100, kThen)) {
      if (pair.client == ip && pair.host == host) return true;
    }
    return false;
  };
  for (const char* host : {"a", "b", "c"}) {
    (void)rejections.note(client("10.0.0.1"), host, kThen, {});
  }
  CHECK(known("10.0.0.1", "a"));
  CHECK_FALSE(known("10.0.0.1", "c"));
  for (const char* ip : {"10.0.0.2", "10.0.0.3", "10.0.0.4"}) {
    (void)rejections.note(client(ip), "a", kThen, {});
  }
  CHECK_FALSE(known("10.0.0.1", "a"));
  CHECK(known("10.0.0.1", "b"));
  CHECK(known("10.0.0.4", "a"));
  (void)rejections.note(client("10.0.0.1"), "c", kThen, {});
  CHECK(known("10.0.0.1", "c"));
}

TEST_CASE("pairs that are no longer known take nobody's place", "[settings][intercept]") {
  const Rejections::Terms terms{.after = 2, .first = hours(1), .longest = hours(1)};
  SECTION("of a client's share") {
    Rejections rejections(8, 2);
    // One in a pause is known for longer than one behind it.
    for (int i = 0; i < 2; ++i) (void)rejections.note(client("10.0.0.1"), "a", kThen, terms);
    (void)rejections.note(client("10.0.0.1"), "b", kThen + seconds(1), terms);
    const MonotonicTime later = kThen + minutes(61);
    (void)rejections.note(client("10.0.0.1"), "c", later, terms);
    CHECK(rejections.note(client("10.0.0.1"), "c", later, terms) == hours(1));
    CHECK(rejections.is_paused(client("10.0.0.1"), "c", later));
  }
  SECTION("of all") {
    Rejections rejections(2, 2);
    for (int i = 0; i < 2; ++i) (void)rejections.note(client("10.0.0.1"), "a", kThen, terms);
    (void)rejections.note(client("10.0.0.2"), "b", kThen + seconds(1), terms);
    const MonotonicTime later = kThen + minutes(61);
    (void)rejections.note(client("10.0.0.3"), "c", later, terms);
    const auto known = rejections.newest(8, later);
    REQUIRE(known.size() == 2);
    CHECK(known[1].host == "a");
  }
}

}  // namespace encore::server
