#include "proxy/settings/server_health.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::seconds;
using Others = ServerHealth::Others;
using ProbeFailover = ServerHealth::ProbeFailover;

MonotonicTime at_second(int s) { return MonotonicTime(seconds(s)); }

constexpr EjectionPolicy kPolicy = {.after = 1, .rest = seconds(10), .rest_max = seconds(60)};

TEST_CASE("the time a server rests doubles up to its maximum, and a tenth more at most",
          "[server][health]") {
  const int expected[] = {10, 20, 40, 60, 60, 60};
  for (std::uint32_t times = 0; times < 6; ++times) {
    CHECK(back_off(kPolicy, times, 0) == seconds(expected[times]));
    for (std::uint64_t random = 1; random < 1000; ++random) {
      const Nanoseconds rest = back_off(kPolicy, times, random * 0x9e3779b97f4a7c15U);
      CHECK(rest >= seconds(expected[times]));
      CHECK(rest * 10 <= seconds(expected[times]) * 11);
    }
  }
  // A maximum below the first time is none.
  CHECK(back_off({.after = 1, .rest = seconds(10), .rest_max = seconds(1)}, 5, 0) == seconds(10));
}

TEST_CASE("a server is set aside after so many failures in a row", "[server][health]") {
  EjectionPolicy policy = kPolicy;
  policy.after = 3;
  ServerHealth health;
  CHECK_FALSE(health.fail(at_second(1), policy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.fail(at_second(1), policy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.succeed(at_second(1)));
  CHECK_FALSE(health.fail(at_second(1), policy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.fail(at_second(1), policy, 0, Others::kAreInTurn));
  CHECK(health.is_in_turn());
  CHECK(health.fail(at_second(1), policy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.is_in_turn());
  CHECK(health.succeed(at_second(2)));
  CHECK(health.is_in_turn());
}

TEST_CASE("the last one in turn stays", "[server][health]") {
  ServerHealth health;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(health.fail(at_second(1), kPolicy, 0, Others::kNone));
  CHECK(health.is_in_turn());
  // As soon as there is another the next failure counts.
  CHECK(health.fail(at_second(1), kPolicy, 0, Others::kAreInTurn));
}

TEST_CASE("each attempt that fails doubles the rest, what was under way before does not",
          "[server][health]") {
  ServerHealth health;
  CHECK(health.fail(at_second(100), kPolicy, 0, Others::kAreInTurn));
  for (int i = 0; i < 5; ++i)
    CHECK_FALSE(health.fail(at_second(101), kPolicy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.is_due(at_second(109), ProbeFailover::kCanGoOn));
  REQUIRE(health.is_due(at_second(110), ProbeFailover::kCanGoOn));
  health.begin_probe(at_second(110));
  CHECK_FALSE(health.is_due(at_second(111), ProbeFailover::kCanGoOn));
  CHECK_FALSE(health.fail(at_second(112), kPolicy, 0, Others::kAreInTurn));
  CHECK(health.until() == at_second(132));
  health.begin_probe(at_second(132));
  CHECK_FALSE(health.fail(at_second(132), kPolicy, 0, Others::kAreInTurn));
  CHECK(health.until() == at_second(172));
  // An answer makes all good.
  CHECK(health.succeed(at_second(180)));
  CHECK(health.fail(at_second(200), kPolicy, 0, Others::kAreInTurn));
  CHECK(health.until() == at_second(210));
}

TEST_CASE("who cannot go on to another server tries one only when nobody else does",
          "[server][health]") {
  ServerHealth health;
  CHECK(health.fail(at_second(100), kPolicy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.is_due(at_second(110), ProbeFailover::kCannot));
  CHECK(health.is_due(at_second(120), ProbeFailover::kCannot));
}

TEST_CASE("what is down is neither in turn nor tried until it is up", "[server][health]") {
  ServerHealth health;
  CHECK(health.set_down(true, at_second(1)));
  CHECK_FALSE(health.set_down(true, at_second(1)));
  CHECK_FALSE(health.is_in_turn());
  CHECK(health.fail(at_second(1), kPolicy, 0, Others::kAreInTurn));
  CHECK_FALSE(health.is_due(at_second(100), ProbeFailover::kCanGoOn));
  CHECK(health.set_down(false, at_second(200)));
  CHECK(health.is_in_turn());
}

TEST_CASE("what comes back has a share that grows", "[server][health]") {
  ServerHealth health;
  CHECK(health.share(at_second(1), seconds(100)) == 100);  // it was never away
  (void)health.set_down(true, at_second(1));
  (void)health.set_down(false, at_second(1000));
  CHECK(health.share(at_second(1000), seconds(100)) == 10);
  CHECK(health.share(at_second(1050), seconds(100)) == 50);
  CHECK(health.share(at_second(1100), seconds(100)) == 100);
  CHECK(health.share(at_second(1000), Nanoseconds(0)) == 100);
  // One worker may be a little behind the other that has found it up.
  CHECK(health.share(at_second(999), seconds(100)) == 10);
  CHECK(health.share(at_second(999), Nanoseconds(0)) == 100);
}

}  // namespace
}  // namespace encore::server
