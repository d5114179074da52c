#include "proxy/server/purge.h"

#include "config/config.h"
#include "tests/catch.h"
#include "tests/server/filled_cache.h"

namespace encore::server {
namespace {

constexpr std::uint64_t kObjects = 20'000;

class Count final : public cache::Visitor {
 public:
  cache::Verdict visit(const cache::EntryView&) override {
    ++count;
    return cache::Verdict::kKeep;
  }
  std::uint64_t count = 0;
};

TEST_CASE("a purge looks at every object once, at few under one lock", "[server][purge]") {
  FilledCache cache(kObjects);
  Count count;
  cache::Kernel::Cursor cursor;
  bool more = true;
  while (more) {
    const std::uint64_t before = count.count;
    more = cache.shared.kernel->for_each(cursor, kPurgeSliceSlots, count, MonotonicTime{});
    REQUIRE(count.count - before <= kPurgeSliceSlots);
  }
  CHECK(count.count == kObjects);
}

TEST_CASE("a purge of many says how many, and leaves the others", "[server][purge]") {
  FilledCache cache(kObjects);
  const config::Config config;
  CHECK(purge(cache.shared, config, {.tags = {"t3", "none"}}) == kObjects / 10);
  CHECK_FALSE(cache.holds(13));
  CHECK(cache.holds(14));
  CHECK(purge(cache.shared, config, {.prefixes = {"http://SITE.example:80/odd/"}, .soft = true}) ==
        kObjects / 2 - kObjects / 10);
  CHECK(purge(cache.shared, config, {.urls = {"http://site.example/odd/15"}}) == 1);
  CHECK(purge(cache.shared, config, {.prefixes = {"http://site.example/even/"}}) == kObjects / 2);
  CHECK(purge(cache.shared, config, {.tags = {"all"}}) == kObjects * 4 / 10 - 1);
  CHECK(cache.shared.kernel->statistics().objects == 0);
  CHECK(cache.shared.store->stats().objects == 0);
}

}  // namespace
}  // namespace encore::server
