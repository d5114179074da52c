#include "proxy/transfer/read_rate.h"

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at_second(int seconds) { return MonotonicTime(std::chrono::seconds(1000 + seconds)); }

constexpr MinimumReadRate kLeast = {.bytes_per_second = 1000, .window = std::chrono::seconds(10)};

}  // namespace

TEST_CASE("A client's pace is known from the second look at which it is behind", "[server]") {
  ReadRateMeter pace;
  pace.record_blocked(at_second(0), 50'000);
  CHECK_FALSE(pace.is_known());
  pace.record_blocked(at_second(1), 58'000);
  REQUIRE(pace.is_known());
  CHECK(pace.bytes_per_second() == 8000);
  // Older amounts count less and less.
  pace.record_blocked(at_second(2), 58'000);
  CHECK(pace.bytes_per_second() == 4000);
  pace.record_blocked(at_second(3), 58'000);
  CHECK(pace.bytes_per_second() == 2000);
  pace.record_unblocked();
  CHECK_FALSE(pace.is_known());
}

TEST_CASE("A client is below its least pace only after a whole window of being behind",
          "[server]") {
  ReadRateMeter pace;
  pace.record_blocked(at_second(0), 0);
  for (int second = 1; second < 10; ++second) {
    pace.record_blocked(at_second(second), static_cast<std::uint64_t>(second));
    REQUIRE_FALSE(pace.is_below(kLeast));
  }
  SECTION("it takes a byte a second") {
    pace.record_blocked(at_second(10), 10);
    CHECK_FALSE(pace.is_below({0, kLeast.window}));
    CHECK_FALSE(pace.is_below({1000, {}}));
    CHECK(pace.is_below(kLeast));
  }
  SECTION("it takes enough at the end") {
    pace.record_blocked(at_second(10), 10'000);
    CHECK_FALSE(pace.is_below(kLeast));
    // The next window begins anew.
    for (int second = 11; second < 20; ++second) {
      pace.record_blocked(at_second(second), 10'000);
      REQUIRE_FALSE(pace.is_below(kLeast));
    }
    pace.record_blocked(at_second(20), 10'000);
    CHECK(pace.is_below(kLeast));
  }
  SECTION("it has caught up in between") {
    pace.record_unblocked();
    pace.record_blocked(at_second(10), 10);
    pace.record_blocked(at_second(19), 10);
    CHECK_FALSE(pace.is_below(kLeast));
  }
}

}  // namespace encore::server
