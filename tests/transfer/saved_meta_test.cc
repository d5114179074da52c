#include "proxy/transfer/saved_meta.h"

#include <random>
#include <tuple>

#include "tests/catch.h"

namespace encore::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr SavedParts kParts{.key_bytes = 300, .head_bytes = 1000};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string saved_text(const ObjectMeta& meta, const Clocks& clocks) {
  const SavedMeta saved = save_meta(meta, clocks);
  return {saved.begin(), saved.end()};
}

// Any record that fits kParts, with moments up to a year around the clocks.
ObjectMeta random_meta(std::mt19937_64& random, const Clocks& clocks) {
  const auto below = [&](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  ObjectMeta meta;
  http::StoredMeta& http = meta.http;
  http.age_zero = clocks.monotonic - seconds(below(30'000'000)) - Nanoseconds(below(1'000'000'000));
  http.fresh_until =
      below(8) == 0 ? MonotonicTime::max() : http.age_zero + seconds(below(60'000'000));
  http.last_modified =
      below(3) == 0 ? http::kNoDate : static_cast<http::UnixSeconds>(random() >> 30U);
  http.date = below(3) == 0 ? http::kNoDate : static_cast<http::UnixSeconds>(random() >> 30U);
  http.lifetime_seconds = static_cast<std::uint32_t>(random());
  http.swr_seconds = static_cast<std::uint32_t>(random());
  http.sie_seconds = static_cast<std::uint32_t>(random());
  http.head_bytes = 100 + below(800);
  http.etag_offset = below(50);
  http.etag_bytes = static_cast<std::uint16_t>(below(50));
  http.status = static_cast<std::uint16_t>(200 + below(300));
  http.flags = static_cast<std::uint16_t>(below(32768));
  meta.variant = random();
  meta.primary_bytes = below(200);
  meta.names_bytes = below(100);
  meta.plain = static_cast<std::uint16_t>(below(2));
  meta.type_offset = static_cast<std::uint16_t>(below(60));
  meta.type_bytes = static_cast<std::uint16_t>(below(40));
  meta.tag_bytes = below(100);
  return meta;
}

bool same(const ObjectMeta& a, const ObjectMeta& b) {
  const auto fields = [](const ObjectMeta& m) {
    const http::StoredMeta& h = m.http;
    return std::tie(h.age_zero, h.fresh_until, h.last_modified, h.date, h.lifetime_seconds,
                    h.swr_seconds, h.sie_seconds, h.head_bytes, h.etag_offset, h.etag_bytes,
                    h.status, h.flags, m.variant, m.primary_bytes, m.names_bytes, m.plain,
                    m.type_offset, m.type_bytes, m.tag_bytes);
  };
  return fields(a) == fields(b);
}

TEST_CASE("where a type stands behind 64 KiB of a head is saved", "[server]") {
  const Clocks clocks{MonotonicTime(hours(5)), WallTime(hours(400'000))};
  ObjectMeta meta;
  meta.http.head_bytes = 300'000;
  meta.type_bytes = 20;
  for (const std::uint32_t offset : {0U, 65'535U, 65'536U, 70'000U, 299'980U}) {
    meta.type_offset = offset;
    const auto saved = save_meta(meta, clocks);
    const auto loaded = load_meta(std::as_bytes(std::span(saved)), {.head_bytes = 300'000}, clocks);
    REQUIRE(loaded);
    CHECK(loaded->type_offset == offset);
    CHECK_FALSE(load_meta(std::as_bytes(std::span(saved)), {.head_bytes = 299'999}, clocks));
  }
}

TEST_CASE("a record comes back as it was, whatever the clock of the next boot says", "[server]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2'000; ++round) {
    const Clocks before{MonotonicTime(hours(random() % 20'000)), WallTime(hours(400'000))};
    const ObjectMeta meta = random_meta(random, before);
    const std::string saved = saved_text(meta, before);
    // As the machine was off, and its monotonic clock began anew.
    const Nanoseconds off = seconds(random() % 1'000'000);
    const Clocks after{MonotonicTime(seconds(random() % 1'000)), before.wall + off};
    auto loaded = load_meta(bytes_of(saved), kParts, after);
    REQUIRE(loaded);
    const Nanoseconds moved = (after.monotonic - before.monotonic) - off;
    ObjectMeta expected = meta;
    expected.http.age_zero += moved;
    if (meta.http.fresh_until != MonotonicTime::max()) expected.http.fresh_until += moved;
    CHECK(same(*loaded, expected));
    // Its age goes on while the machine is off.
    CHECK(after.monotonic - loaded->http.age_zero == before.monotonic - meta.http.age_zero + off);
  }
}

TEST_CASE("a record of the first version gives nobody what its origin did not allow", "[server]") {
  using http::StoredMeta;
  const Clocks clocks{MonotonicTime(hours(10)), WallTime(hours(400'000))};
  const auto loaded = [&](unsigned flags, char version) {
    ObjectMeta meta;
    meta.http.age_zero = clocks.monotonic;
    meta.http.fresh_until = clocks.monotonic + hours(1);
    meta.http.swr_seconds = meta.http.sie_seconds = 3600;
    meta.http.flags = static_cast<std::uint16_t>(flags);
    std::string saved = saved_text(meta, clocks);
    saved[0] = version;
    auto result = load_meta(bytes_of(saved), kParts, clocks);
    REQUIRE(result);
    return result->http;
  };
  CHECK(loaded(StoredMeta::kNeverFresh, 1).swr_seconds == 0);
  CHECK(loaded(StoredMeta::kNeverFresh, 1).sie_seconds == 0);
  CHECK(loaded(StoredMeta::kNeverFresh, 2).swr_seconds == 3600);
  CHECK(loaded(StoredMeta::kNeverFresh, 2).sie_seconds == 3600);
  CHECK(loaded(0, 1).swr_seconds == 3600);
  CHECK(http::is_fresh(loaded(0, 1), clocks.monotonic));
  CHECK_FALSE(http::is_fresh(loaded(StoredMeta::kHeuristic, 1), clocks.monotonic));
  CHECK(loaded(StoredMeta::kHeuristic, 1).is(StoredMeta::kInvalidated));
  CHECK(http::is_fresh(loaded(StoredMeta::kHeuristic, 2), clocks.monotonic));
}

TEST_CASE("a record of a time that has not come yet is validated", "[server]") {
  const Clocks before{MonotonicTime(hours(10)), WallTime(hours(400'000))};
  ObjectMeta meta;
  meta.http.age_zero = before.monotonic - seconds(60);
  meta.http.fresh_until = before.monotonic + hours(1);
  meta.http.swr_seconds = 3600;
  const std::string saved = saved_text(meta, before);
  const auto at = [&](Nanoseconds wall_moved) {
    return *load_meta(bytes_of(saved), kParts, {before.monotonic, before.wall + wall_moved});
  };
  CHECK(http::is_fresh(at(seconds(0)).http, before.monotonic));
  CHECK(http::is_fresh(at(-seconds(60)).http, before.monotonic));
  const ObjectMeta early = at(-seconds(61));
  CHECK_FALSE(http::is_fresh(early.http, before.monotonic));
  CHECK(http::is_stale(early.http, before.monotonic));
  CHECK(early.http.is(http::StoredMeta::kInvalidated));
  CHECK(http::current_age(early.http, before.monotonic) == 0);
  // Clocks at the ends of their range: the moments stay within it.
  const Clocks last{MonotonicTime::min(), WallTime::max()};
  CHECK(load_meta(bytes_of(saved), kParts, last)->http.age_zero == MonotonicTime::min());
}

TEST_CASE("what a process has saved itself it reads as it was, whatever the wall clock says",
          "[server]") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 2'000; ++round) {
    const Clocks before{MonotonicTime(hours(10'000 + random() % 10'000)), WallTime(hours(400'000)),
                        1 + random() % 3};
    const ObjectMeta meta = random_meta(random, before);
    const std::string saved = saved_text(meta, before);
    // Some time later, and the clock was set by up to a year.
    const Nanoseconds later = seconds(random() % 1'000);
    const Nanoseconds set = seconds(random() % 60'000'000) - seconds(30'000'000);
    Clocks now{before.monotonic + later, before.wall + later + set, before.run};
    auto loaded = load_meta(bytes_of(saved), kParts, now);
    REQUIRE(loaded);
    CHECK(same(*loaded, meta));
    // Another one has nothing but the wall clock.
    now.run = random() % 2 == 0 ? 0 : before.run + 1;
    loaded = load_meta(bytes_of(saved), kParts, now);
    REQUIRE(loaded);
    CHECK(same(*loaded, meta) == (set == Nanoseconds(0)));
  }
  // Saved by no run, read by no run: the wall clock.
  const Clocks nobody{MonotonicTime(hours(10)), WallTime(hours(400'000))};
  ObjectMeta meta;
  meta.http.age_zero = nobody.monotonic - hours(2);
  const Clocks later{nobody.monotonic, nobody.wall + hours(1)};
  CHECK(load_meta(bytes_of(saved_text(meta, nobody)), kParts, later)->http.age_zero ==
        meta.http.age_zero - hours(1));
}

TEST_CASE("a record that does not fit what it lies beside is refused", "[server]") {
  const Clocks clocks{MonotonicTime(hours(10)), WallTime(hours(400'000))};
  std::mt19937_64 random(2);
  const ObjectMeta good = random_meta(random, clocks);
  const auto loads = [&](const ObjectMeta& meta) {
    return load_meta(bytes_of(saved_text(meta, clocks)), kParts, clocks).has_value();
  };
  REQUIRE(loads(good));
  const auto with = [&](auto change) {
    ObjectMeta meta = good;
    change(meta);
    return loads(meta);
  };
  CHECK_FALSE(with([](ObjectMeta& m) { m.primary_bytes = 301; }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.names_bytes = 301 - m.primary_bytes; }));
  CHECK(with([](ObjectMeta& m) { m.names_bytes = 300 - m.primary_bytes; }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.primary_bytes = UINT32_MAX; }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.tag_bytes = 1001 - m.http.head_bytes; }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.http.head_bytes = UINT32_MAX; }));
  CHECK_FALSE(with([](ObjectMeta& m) {
    m.http.etag_offset = m.http.head_bytes;
    m.http.etag_bytes = 1;
  }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.type_offset = UINT16_MAX; }));
  CHECK_FALSE(with([](ObjectMeta& m) { m.http.flags |= 32768; }));
  const std::string saved = saved_text(good, clocks);
  for (std::size_t size = 0; size < saved.size(); ++size) {
    CHECK_FALSE(load_meta(bytes_of(saved).first(size), kParts, clocks));
  }
  CHECK_FALSE(load_meta(bytes_of(saved + "x"), kParts, clocks));
  // For any bytes, views cut by accepted values lie within key and head.
  std::string changed = saved;
  for (int round = 0; round < 20'000; ++round) {
    changed = saved;
    for (std::uint64_t n = 1 + random() % 4; n != 0; --n) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const auto loaded = load_meta(bytes_of(changed), kParts, clocks);
    if (!loaded) continue;
    const std::string head(kParts.head_bytes, 'h');
    const HeadParts parts{.meta = *loaded, .head = head};
    CHECK(parts.stored_head().size() + parts.trailers().size() + parts.tags().size() ==
          head.size());
    CHECK(parts.content_type().size() == loaded->type_bytes);
    CHECK(loaded->http.age_zero <= clocks.monotonic);
  }
}

}  // namespace
}  // namespace encore::server
