#include "proxy/exchange/authorization_cache.h"

#include "tests/catch.h"

namespace encore::server {

TEST_CASE("a yes holds for requests like this one, and for a while", "[exchange][rechecks]") {
  const filter::Seed seed{1, 2};
  AuthorizationCache rechecks(seed);
  const MonotonicTime now{std::chrono::seconds(100)};
  rechecks.allow(rechecks.name("http://h/a, Bearer a"), now);
  CHECK(rechecks.is_allowed(rechecks.name("http://h/a, Bearer a"), now));
  CHECK_FALSE(rechecks.is_allowed(rechecks.name("http://h/a, Bearer b"), now));
  CHECK_FALSE(rechecks.is_allowed(rechecks.name("http://h/a"), now));
  const MonotonicTime end = now + AuthorizationCache::kHolds;
  CHECK(rechecks.is_allowed(rechecks.name("http://h/a, Bearer a"), end - Nanoseconds(1)));
  CHECK_FALSE(rechecks.is_allowed(rechecks.name("http://h/a, Bearer a"), end));
}

TEST_CASE("of many yeses the oldest is forgotten", "[exchange][rechecks]") {
  const filter::Seed seed{1, 2};
  AuthorizationCache rechecks(seed);
  const MonotonicTime now{};
  const auto name = [](std::size_t n) { return filter::Hash128{n, 7}; };
  for (std::size_t n = 0; n < AuthorizationCache::kMax + 3; ++n) rechecks.allow(name(n), now);
  for (std::size_t n = 0; n < 3; ++n) CHECK_FALSE(rechecks.is_allowed(name(n), now));
  CHECK(rechecks.is_allowed(name(3), now));
  CHECK(rechecks.is_allowed(name(AuthorizationCache::kMax + 2), now));
}

}  // namespace encore::server
