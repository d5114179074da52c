#include "proxy/transfer/stall_detector.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A round trip that nobody may ask the kernel for.
Nanoseconds not_asked() {
  FAIL("the round trip is asked for though nothing stands still");
  return {};
}

TEST_CASE("who takes nothing from one look to the third stands still", "[transfer]") {
  StallDetector client;
  MonotonicTime now(std::chrono::hours(1));
  const auto nearby = [] { return Nanoseconds(milliseconds(1)); };
  CHECK_FALSE(client.look(now, 7, not_asked));
  CHECK_FALSE(client.look(now += StallDetector::kLookInterval, 7, not_asked));
  CHECK(client.look(now += StallDetector::kLookInterval, 7, nearby));
  // Those that wait for it do so for the time of the looks.
  CHECK(2 * StallDetector::kLookInterval < milliseconds(100));
  CHECK(StallDetector::kLimit <= 2 * StallDetector::kLookInterval);
}

TEST_CASE("who takes one byte between two looks does not stand still", "[transfer]") {
  StallDetector client;
  MonotonicTime now(std::chrono::hours(1));
  for (std::uint64_t taken = 0; taken < 100; ++taken) {
    CHECK_FALSE(client.look(now += StallDetector::kLookInterval, taken, not_asked));
    CHECK_FALSE(client.look(now += milliseconds(1), taken, not_asked));
  }
}

TEST_CASE("who takes a burst a round trip stands still after three of them", "[transfer]") {
  const auto trip = GENERATE(Nanoseconds(milliseconds(91)), Nanoseconds(milliseconds(300)));
  const auto round_trip = [&] { return trip; };
  StallDetector client;
  MonotonicTime now(std::chrono::hours(1));
  std::uint64_t taken = 0;
  for (int burst = 0; burst < 10; ++burst) {
    taken += 14'600;
    for (const MonotonicTime next = now + trip; now < next; now += StallDetector::kLookInterval) {
      CHECK_FALSE(client.look(now, taken, round_trip));
    }
  }
  taken += 1;
  CHECK_FALSE(client.look(now, taken, round_trip));
  CHECK_FALSE(client.look(now + 3 * trip - Nanoseconds(1), taken, round_trip));
  CHECK(client.look(now + 3 * trip, taken, round_trip));
}

TEST_CASE("who feigns a long round trip gains two seconds and no more", "[transfer]") {
  CHECK(StallDetector::limit({}) == StallDetector::kLimit);
  CHECK(StallDetector::limit(milliseconds(26)) == StallDetector::kLimit);
  CHECK(StallDetector::limit(milliseconds(27)) == milliseconds(81));
  CHECK(StallDetector::limit(milliseconds(666)) == milliseconds(1998));
  CHECK(StallDetector::limit(milliseconds(667)) == seconds(2));
  CHECK(StallDetector::limit(Nanoseconds::max()) == seconds(2));
  StallDetector client;
  const MonotonicTime now(std::chrono::hours(1));
  const auto feigned = [] { return Nanoseconds(std::chrono::minutes(1)); };
  CHECK_FALSE(client.look(now, 7, feigned));
  CHECK_FALSE(client.look(now + seconds(2) - Nanoseconds(1), 7, feigned));
  CHECK(client.look(now + seconds(2), 7, feigned));
}

TEST_CASE("who was seen to move may stand still for longer, once it is alone with its loss",
          "[transfer]") {
  const auto nearby = [] { return Nanoseconds(milliseconds(1)); };
  MonotonicTime now(std::chrono::hours(1));
  StallDetector never;
  CHECK_FALSE(never.look(now, 7, not_asked));
  CHECK(never.look(now + StallDetector::kLimit, 7, nearby));
  CHECK_FALSE(never.may_move_on(now + StallDetector::kLimit));
  StallDetector mover;
  CHECK_FALSE(mover.look(now, 7, not_asked));
  CHECK_FALSE(mover.look(now, 8, not_asked));
  CHECK(mover.look(now + StallDetector::kLimit, 8, nearby));
  CHECK(mover.may_move_on(now + StallDetector::kLimit));
  CHECK(mover.may_move_on(now + StallDetector::kMoverLimit - Nanoseconds(1)));
  CHECK_FALSE(mover.may_move_on(now + StallDetector::kMoverLimit));
}

}  // namespace
}  // namespace encore::server
