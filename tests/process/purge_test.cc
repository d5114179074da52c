#include "proxy/process/purge.h"

#include <memory>
#include <string>
#include <utility>

#include "config/config.h"
#include "proxy/exchange/cache_lookup.h"
#include "tests/catch.h"
#include "tests/process/filled_cache.h"

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

// A turn of a worker's loop has one time, and begins before what others do within it.
TEST_CASE("what became stale within a worker's turn is stale to it", "[server][purge]") {
  FilledCache cache(100);
  auto runtime = Runtime::create(config::Config{}, {}, "test");
  REQUIRE(runtime.has_value());
  auto made = net::Loop::create();
  REQUIRE(made.has_value());
  net::Loop& loop = **made;
  CacheLookup lookup(loop, cache.shared.kernel, cache.shared.latest_moment, *runtime);
  const PurgeOrder one{.urls = {"http://site.example/odd/15"}, .soft = true};
  const PurgeOrder many{.tags = {"t4"}, .soft = true};
  for (const auto& [order, object] : {std::pair{one, 15U}, std::pair{many, 14U}}) {
    const PurgeOrder& purged = order;
    const std::uint64_t n = object;
    loop.post([&] {
      const MonotonicTime begin = loop.now();
      while (monotonic_now() <= begin) {
      }
      CHECK(purge(cache.shared, (*runtime)->config, purged) != 0);
      const std::string key = FilledCache::key_text(n);
      const CacheView found =
          lookup.lookup(key, cache.key(key).hash, {}, {}, *net::Address::parse_ip("192.0.2.1", 1));
      REQUIRE(found.object);
      CHECK(found.fresh_until > begin);
      CHECK(found.fresh_until <= loop.now());
      CHECK(loop.now() <= monotonic_now());
    });
    loop.stop();
    loop.run();
  }
}

}  // namespace
}  // namespace encore::server
