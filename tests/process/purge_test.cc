#include "proxy/process/purge.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "config/config.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/http/reuse.h"
#include "tests/catch.h"
#include "tests/process/filled_cache.h"

namespace encore::server {
namespace {

constexpr std::uint64_t kStoredObjects = 20'000;

std::shared_ptr<const Runtime> made_runtime(const config::Config& config = {}) {
  auto runtime = Runtime::create(config, {}, "test");
  REQUIRE(runtime.has_value());
  return *std::move(runtime);
}

class Count final : public cache::Visitor {
 public:
  cache::Verdict visit(const cache::EntryView&) override {
    ++count;
    return cache::Verdict::kKeep;
  }
  std::uint64_t count = 0;
};

TEST_CASE("a purge looks at every object once, at few under one lock", "[server][purge]") {
  FilledCache cache(kStoredObjects);
  Count count;
  cache::Kernel::Cursor cursor;
  bool more = true;
  while (more) {
    const std::uint64_t before = count.count;
    more = cache.shared.kernel->for_each(cursor, kPurgeSliceSlots, count, MonotonicTime{});
    REQUIRE(count.count - before <= kPurgeSliceSlots);
  }
  CHECK(count.count == kStoredObjects);
}

TEST_CASE("a purge of many says how many, and leaves the others", "[server][purge]") {
  FilledCache cache(kStoredObjects);
  const auto runtime = made_runtime();
  CHECK(purge(cache.shared, *runtime, {.tags = {"t3", "none"}}).count == kStoredObjects / 10);
  CHECK_FALSE(cache.holds(13));
  CHECK(cache.holds(14));
  CHECK(purge(cache.shared, *runtime, {.prefixes = {"http://SITE.example:80/odd/"}, .soft = true})
            .count == kStoredObjects / 2 - kStoredObjects / 10);
  CHECK(purge(cache.shared, *runtime, {.urls = {"http://site.example/odd/15"}}).count == 1);
  CHECK(purge(cache.shared, *runtime, {.prefixes = {"http://site.example/even/"}}).count ==
        kStoredObjects / 2);
  CHECK(purge(cache.shared, *runtime, {.tags = {"all"}}).count == kStoredObjects * 4 / 10 - 1);
  CHECK(cache.shared.kernel->statistics().objects == 0);
  CHECK(cache.shared.store->stats().objects == 0);
}

TEST_CASE("what is purged is told of as changed", "[server][purge]") {
  FilledCache cache(kStoredObjects);
  publish::HourlyFilters::Options options;
  options.filter.layout = filter::Layout::kClassic;
  options.filter.bits = 1'000'000;
  options.filter.hashes = 14;
  options.filter.capacity = 50'000;
  auto hours = publish::HourlyFilters::create(options, wall_now());
  REQUIRE(hours.has_value());
  cache.shared.changed = std::make_unique<publish::ChangedKeys>(std::move(*hours));
  const auto told = [&](std::string_view url) {
    return cache.shared.changed->with([&](publish::HourlyFilters& all) {
      return std::ranges::any_of(all.hours(), [&](const auto& hour) {
        return hour.second.filter && hour.second.filter->test(url);
      });
    });
  };
  const auto runtime = made_runtime();
  CHECK(purge(cache.shared, *runtime, {.tags = {"t3"}}).count == kStoredObjects / 10);
  CHECK(told("http://site.example/odd/13"));
  CHECK(told("http://site.example/odd/19993"));
  CHECK_FALSE(told("http://site.example/odd/15"));
  CHECK(purge(cache.shared, *runtime, {.urls = {"http://SITE.example:80/odd/15"}, .soft = true})
            .count == 1);
  CHECK(told("http://site.example/odd/15"));
  // It may have been stored before, or with another.
  CHECK(purge(cache.shared, *runtime, {.urls = {"http://site.example/none"}}).count == 0);
  CHECK(told("http://site.example/none"));
  // By their keys, as a client's purge names them.
  CHECK_FALSE(told("http://site.example/odd/25"));
  CHECK(purge(cache.shared, *runtime, {.keys = {FilledCache::key_text(25)}}).count == 1);
  CHECK(told("http://site.example/odd/25"));
  CHECK(purge(cache.shared, *runtime, {.prefixes = {"http://site.example/even/"}}).count ==
        kStoredObjects / 2);
  CHECK(told("http://site.example/even/14"));
  CHECK_FALSE(told("http://site.example/odd/17"));
}

// Measures the processor time of a purge of URLs.
std::chrono::nanoseconds time_of(FilledCache& cache, const Runtime& runtime,
                                 const PurgeOrder& order) {
  const auto now = [] {
    timespec time{};
    REQUIRE(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto begin = now();
  (void)purge(cache.shared, runtime, order);
  return now() - begin;
}

// Rules that are made anew for each URL take a thousand times as long as none.
TEST_CASE("a purge of many URLs takes the rules as they are", "[server][purge]") {
  FilledCache cache(100);
  config::Config config;
  const auto none = made_runtime(config);
  for (int i = 0; i < 300; ++i) {
    config::Rule rule;
    rule.name = "rule-" + std::to_string(i);
    rule.path = {"/of/" + std::to_string(i) + "/*"};
    rule.key_query = config::KeyQueryText("none");
    config.rule.push_back(rule);
  }
  const auto many = made_runtime(config);
  PurgeOrder order;
  for (int i = 0; i < 500; ++i) {
    order.urls.push_back("http://site.example/page/" + std::to_string(i));
  }
  (void)time_of(cache, *none, order);
  const auto without = time_of(cache, *none, order);
  const auto with = time_of(cache, *many, order);
  CAPTURE(without.count(), with.count());
  CHECK(with < 100 * without);
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
      CHECK(purge(cache.shared, **runtime, purged).count != 0);
      const std::string key = FilledCache::key_text(n);
      CacheView found;
      lookup.lookup({.key = key,
                     .hash = cache.key(key).hash,
                     .fields = {},
                     .vary = {},
                     .client = *net::Address::parse_ip("192.0.2.1", 1)},
                    found);
      REQUIRE(found.object);
      CHECK(found.fresh_until > begin);
      CHECK(found.fresh_until <= loop.now());
      CHECK(loop.now() <= monotonic_now());
    });
    loop.stop();
    loop.run();
  }
}

TEST_CASE("unknown purges leave no window of staleness", "[server][purge]") {
  FilledCache cache(100);
  const auto runtime = made_runtime();
  const std::string text = FilledCache::key_text(7);
  const MonotonicTime now = monotonic_now();
  for (const bool validate : {false, true}) {
    CHECK(purge(cache.shared, *runtime, {.all = true, .soft = true, .validate = validate}).count ==
          100);
    const auto found = cache.shared.kernel->lookup(cache.key(text), now);
    REQUIRE(found.state == (validate ? cache::LookupState::kStale : cache::LookupState::kFresh));
    http::StoredMeta meta;
    meta.age_zero = now;
    meta.fresh_until = now + std::chrono::hours(1);
    meta.swr_seconds = meta.sie_seconds = UINT32_MAX;
    meta.flags = http::StoredMeta::kHasSie;
    http::mark_stale(meta, found.fresh_until);
    const MonotonicTime later = monotonic_now();
    http::RequestDirectives any;
    any.max_stale = http::kDeltaMax;
    CHECK((http::decide_reuse(meta, {}, later, {}).action == http::Reuse::kMustValidate) ==
          validate);
    CHECK((http::decide_reuse(meta, any, later, {}).action == http::Reuse::kMustValidate) ==
          validate);
    CHECK(http::may_serve_stale(meta, {}, later, http::OriginFailure::kUnreachable, {}) !=
          validate);
  }
}

TEST_CASE("prefixes that overlap purge what each of them names", "[server][purge]") {
  constexpr std::uint64_t kFew = 200;
  FilledCache cache(kFew);
  const auto runtime = made_runtime();
  const std::string site = "http://site.example/";
  CHECK(purge(cache.shared, *runtime,
              {.prefixes = {site + "even/12", site + "odd/9", site + "even/1", site + "even/0",
                            site + "zebra", "http://a/", site + "odd/99", site + "even/1"}})
            .count == [&] {
    std::uint64_t count = 0;
    for (std::uint64_t n = 0; n < kFew; ++n) {
      const std::string digits = std::to_string(n);
      count += (n % 2 == 0 && (digits[0] == '1' || digits[0] == '0')) ||
               (n % 2 == 1 && digits[0] == '9');
    }
    return count;
  }());
  CHECK_FALSE(cache.holds(12));
  CHECK(cache.holds(2));
  CHECK(cache.holds(1));
  CHECK_FALSE(cache.holds(99));
}

}  // namespace
}  // namespace encore::server
