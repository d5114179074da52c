#include "proxy/settings/token_buckets.h"

#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

MonotonicTime at_millisecond(std::int64_t after) {
  return MonotonicTime(std::chrono::hours(1)) + std::chrono::milliseconds(after);
}

}  // namespace

TEST_CASE("a bucket gives its burst at once and its rate in the long run", "[settings][buckets]") {
  TokenBuckets buckets({.rate = 10, .burst = 5});
  for (int i = 0; i < 5; ++i) CHECK(buckets.take("a", at_millisecond(0)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(0)) == std::chrono::milliseconds(100));
  CHECK(buckets.take("a", at_millisecond(40)) == std::chrono::milliseconds(60));
  // Others have their own, and who was refused has lost nothing.
  CHECK(buckets.take("b", at_millisecond(40)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(100)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(100)).count() != 0);
  int given = 0;
  for (int ms = 101; ms <= 10'100; ++ms)
    given += buckets.take("a", at_millisecond(ms)).count() == 0 ? 1 : 0;
  CHECK(given == 100);
  // A full bucket holds no more than its burst, however long it rests.
  given = 0;
  for (int i = 0; i < 20; ++i)
    given += buckets.take("a", at_millisecond(3'600'000)).count() == 0 ? 1 : 0;
  CHECK(given == 5);
}

TEST_CASE("a token that is given back can be taken again", "[settings][buckets]") {
  TokenBuckets buckets({.rate = 0.001, .burst = 2});
  CHECK(buckets.take("a", at_millisecond(0)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(0)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(0)).count() != 0);
  buckets.give_back("a", at_millisecond(1));
  buckets.give_back("nobody", at_millisecond(1));
  CHECK(buckets.take("a", at_millisecond(1)).count() == 0);
  CHECK(buckets.take("a", at_millisecond(1)).count() != 0);
}

TEST_CASE("whoever has used up his bucket is remembered, however many others come",
          "[settings][buckets]") {
  TokenBuckets buckets({.rate = 0.01, .burst = 3, .entries = 1024});
  for (int i = 0; i < 3; ++i) CHECK(buckets.take("greedy", at_millisecond(0)).count() == 0);
  for (int i = 0; i < 100'000; ++i) (void)buckets.take(std::to_string(i), at_millisecond(1));
  CHECK(buckets.take("greedy", at_millisecond(2)).count() != 0);
}

}  // namespace encore::server
