#include "proxy/publish/hourly_filters.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "filter/published/squid_digest.h"
#include "filter/theory.h"
#include "proxy/publish/changed_keys.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/publish/noon.h"

namespace encore::publish {
namespace {

using namespace std::chrono_literals;
using filter::testing::deviation;
using filter::testing::false_positive_deviation;
using filter::testing::Key;
using filter::testing::kSigmas;

constexpr std::uint32_t kCapacity = 1000;
constexpr double kFpr = 0.01;

HourlyFilters::Options options() {
  const auto sizing = filter::size_for(filter::Layout::kClassic, {kCapacity, kFpr});
  return {.keep = 48,
          .filter = {.layout = filter::Layout::kClassic,
                     .bits = sizing.bits,
                     .hashes = sizing.hashes,
                     .capacity = kCapacity,
                     .seed = {}}};
}

HourlyFilters started(WallTime now = kStart) {
  auto hours = HourlyFilters::create(options(), now);
  REQUIRE(hours);
  return std::move(*hours);
}

bool tests(const HourRecord& record, std::string_view key) {
  return record.filter && record.filter->test(key);
}

const HourRecord& known(HourlyFilters& hours, Hour hour, WallTime now) {
  const HourRecord* const record = hours.find(hour, now);
  REQUIRE(record != nullptr);
  return *record;
}

void add(HourlyFilters& hours, std::uint32_t stream, std::uint32_t count, WallTime now) {
  for (std::uint32_t i = 0; i < count; ++i) REQUIRE(hours.add(Key(stream, i).bytes(), now));
}

std::uint64_t positives(const HourRecord& record, std::uint32_t stream, std::uint32_t count) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) sum += tests(record, Key(stream, i).bytes()) ? 1U : 0U;
  return sum;
}

// With the checksum made right again, so that what lies behind it is reached.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  const std::uint64_t sum = filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, bytes).lo;
  std::array<char, 8> tail{};
  std::memcpy(tail.data(), &sum, tail.size());
  return bytes.append(tail.data(), tail.size());
}

}  // namespace

TEST_CASE("An hour is written as the resources name it", "[publish][hour]") {
  CHECK(to_path(Hour{0}) == "1970/01/01/00");
  CHECK(to_path(hour_of(WallTime(1'795'377'599s))) == "2026/11/22/19");
  CHECK(to_path(hour_of(WallTime(1'795'377'600s))) == "2026/11/22/20");
  CHECK(to_path(hour_of(WallTime(1'709'164'800s))) == "2024/02/29/00");
  CHECK(to_path(kLastHour) == "2261/12/31/23");
  for (std::int64_t number = 0; number < 600'000; number += 997) {
    CHECK(parse_hour(to_path(Hour{number})) == Hour{number});
  }
}

TEST_CASE("What is no hour of the calendar is refused", "[publish][hour]") {
  for (const char* text :
       {"", "2026/11/22", "2026/11/22/24", "2026/02/29/00", "2026/13/01/00", "2026/00/01/00",
        "2026/11/00/00", "2026/11/31/00", "1969/12/31/23", "2026-11-22-19", "2026/11/22/1",
        "2026/11/22/019", "+026/11/22/19", "2026/11/22/-1", "2026/11/22/19/", "2026/11/22/ 9"}) {
    INFO(text);
    CHECK_FALSE(parse_hour(text));
  }
}

TEST_CASE("An hour holds what happened in it, and nothing of the hour before", "[publish]") {
  HourlyFilters hours = started();
  add(hours, 1, kCapacity, kStart);
  add(hours, 2, kCapacity, kStart + 1h);
  const WallTime now = kStart + 2h;
  const HourRecord& first = known(hours, kNoon, now);
  const HourRecord& second = known(hours, after(kNoon), now);
  CHECK(positives(first, 1, kCapacity) == kCapacity);
  CHECK(positives(second, 2, kCapacity) == kCapacity);
  // It has as many of the other hour's keys as of any that it never received.
  const double p = filter::fpr(first.filter->info().parameters.shape(), kCapacity);
  CHECK(std::abs(deviation(positives(first, 2, kCapacity), kCapacity, p)) < kSigmas);
  CHECK(std::abs(deviation(positives(second, 1, kCapacity), kCapacity, p)) < kSigmas);
  CHECK(second.filter->plain()->insertions() <= kCapacity);
  CHECK(first.events == kCapacity);
  CHECK(second.events == kCapacity);
}

TEST_CASE("The last moment of an hour is its own, the first of the next is not", "[publish]") {
  HourlyFilters hours = started();
  const WallTime noon_ends = start_of(after(kNoon));
  CHECK(hours.add("last", noon_ends - 1ns));
  CHECK(hours.add("first", noon_ends));
  CHECK(tests(known(hours, kNoon, noon_ends), "last"));
  CHECK_FALSE(tests(known(hours, kNoon, noon_ends), "first"));
  CHECK_FALSE(tests(known(hours, after(kNoon), noon_ends), "last"));
  CHECK(tests(known(hours, after(kNoon), noon_ends), "first"));
}

TEST_CASE("Hours without events are known and empty, others are not known", "[publish]") {
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  const WallTime now = kStart + 3h;
  for (const int empty : {1, 2, 3}) {
    const HourRecord& record = known(hours, after(kNoon, empty), now);
    CHECK_FALSE(record.filter);
    CHECK(record.events == 0);
    CHECK(record.complete);
  }
  CHECK(hours.find(after(kNoon, 4), now) == nullptr);
  CHECK(hours.find(after(kNoon, -1), now) == nullptr);
  // It began before anybody watched.
  CHECK_FALSE(known(hours, kNoon, now).complete);
}

TEST_CASE("As many hours are kept as are wanted, and the current one", "[publish]") {
  HourlyFilters hours = started();
  for (int i = 0; i < 60; ++i) CHECK(hours.add("a", kStart + i * 1h));
  const WallTime now = kStart + 59h;
  CHECK(hours.hours().size() == 49);
  CHECK(hours.find(after(kNoon, 59 - 48), now) != nullptr);
  CHECK(hours.find(after(kNoon, 59 - 49), now) == nullptr);
  CHECK(hours.current(now) == after(kNoon, 59));
  // A leap over years takes no longer, and leaves no more.
  CHECK(hours.advance(kStart + 24h * 365 * 20));
  CHECK(hours.hours().size() == 49);
  CHECK_FALSE(hours.hours().begin()->second.filter);
}

TEST_CASE("A past hour never changes, whatever the clock does", "[publish]") {
  HourlyFilters hours = started();
  CHECK(hours.add("noon", kStart));
  const WallTime one = start_of(after(kNoon));
  CHECK(hours.advance(one));
  const HourRecord& noon = known(hours, kNoon, one);
  const std::string before = noon.filter->save();
  const std::uint64_t changes = noon.changes;
  // Set back into it, by as much as a clock is set right.
  CHECK(hours.add("late", one - 1s));
  CHECK(hours.add("later", one - 1h));
  CHECK(hours.current(one - 1h) == after(kNoon));
  CHECK(noon.filter->save() == before);
  CHECK(noon.changes == changes);
  CHECK(noon.events == 1);
  const HourRecord& latest = known(hours, after(kNoon), one);
  CHECK(tests(latest, "late"));
  CHECK(tests(latest, "later"));
  CHECK(latest.complete);
}

TEST_CASE("Hours that a clock set far back undoes are forgotten", "[publish]") {
  HourlyFilters hours = started();
  CHECK(hours.add("noon", kStart));
  CHECK(hours.add("wrong", kStart + 20h));
  CHECK(hours.add("right", kStart + 1h));
  CHECK(hours.current(kStart + 1h) == after(kNoon));
  CHECK(hours.find(after(kNoon, 20), kStart + 1h) == nullptr);
  const HourRecord& current = known(hours, after(kNoon), kStart + 1h);
  CHECK(tests(current, "right"));
  CHECK_FALSE(tests(current, "wrong"));
  CHECK_FALSE(current.complete);
  CHECK(tests(known(hours, kNoon, kStart + 1h), "noon"));
  // Before all that is known.
  CHECK(hours.advance(kStart - 100h));
  CHECK(hours.hours().size() == 1);
  CHECK(hours.add("again", kStart - 99h));
  CHECK(tests(known(hours, after(kNoon, -99), kStart - 99h), "again"));
}

TEST_CASE("The rate of an hour is what it is, also where it has seen too much", "[publish]") {
  constexpr std::uint32_t kProbes = 40'000;
  for (const std::uint32_t times : {1U, 2U, 4U}) {
    HourlyFilters hours = started();
    add(hours, 1, times * kCapacity, kStart);
    const HourRecord& record = known(hours, kNoon, kStart);
    const double stated = record.filter->info().fpr_now;
    INFO(times);
    CHECK(std::abs(false_positive_deviation(kProbes, stated, [&](std::string_view key) {
            return tests(record, key);
          })) < kSigmas);
    CHECK((stated > 2 * kFpr) == (times > 1));
  }
}

TEST_CASE("Hours survive a restart, those without anybody watching do not exist", "[publish]") {
  HourlyFilters hours = started();
  add(hours, 1, kCapacity, kStart);
  CHECK(hours.add("one", kStart + 1h));
  const std::string noon = known(hours, kNoon, kStart + 1h).filter->save();
  const WallTime later = kStart + 4h;
  auto again = HourlyFilters::restore(hours.save(), options(), later);
  REQUIRE(again);
  CHECK(known(*again, kNoon, later).filter->save() == noon);
  CHECK(known(*again, kNoon, later).events == kCapacity);
  CHECK(tests(known(*again, after(kNoon), later), "one"));
  CHECK_FALSE(known(*again, after(kNoon), later).complete);
  CHECK(again->find(after(kNoon, 2), later) == nullptr);
  CHECK(again->find(after(kNoon, 3), later) == nullptr);
  CHECK_FALSE(known(*again, after(kNoon, 4), later).complete);
  CHECK(again->save() == HourlyFilters::restore(again->save(), options(), later)->save());
  // In the same hour it is gone on with.
  auto same = HourlyFilters::restore(hours.save(), options(), kStart + 65min);
  REQUIRE(same);
  CHECK(same->add("more", kStart + 65min));
  CHECK(tests(known(*same, after(kNoon), kStart + 65min), "one"));
  CHECK(tests(known(*same, after(kNoon), kStart + 65min), "more"));
  // Hours older than the kept ones have gone.
  auto late = HourlyFilters::restore(hours.save(), options(), kStart + 49h);
  REQUIRE(late);
  CHECK(late->find(kNoon, kStart + 49h) == nullptr);
  CHECK(late->find(after(kNoon), kStart + 49h) != nullptr);
  // And what is more than is now asked for.
  auto few = options();
  few.keep = 1;
  CHECK(hours.add("two", kStart + 2h));
  auto fewer = HourlyFilters::restore(hours.save(), few, kStart + 2h);
  REQUIRE(fewer);
  CHECK(fewer->find(kNoon, kStart + 2h) == nullptr);
  CHECK(fewer->find(after(kNoon), kStart + 2h) != nullptr);
  // Saved by a clock that was wrong.
  auto early = HourlyFilters::restore(hours.save(), options(), kStart - 5h);
  REQUIRE(early);
  CHECK(early->hours().size() == 1);
}

TEST_CASE("An hour that has ended is saved as over, although nothing has happened since",
          "[publish]") {
  ChangedKeys changed(started());
  const WallTime one = start_of(after(kNoon));
  const WallTime two = start_of(after(kNoon, 2));
  CHECK(changed.advance(one));
  // The end of the second hour is noticed by who saves.
  auto again = HourlyFilters::restore(changed.save(two), options(), two + 1h);
  REQUIRE(again);
  CHECK(known(*again, after(kNoon), two + 1h).complete);
  CHECK_FALSE(known(*again, after(kNoon, 2), two + 1h).complete);
  CHECK(again->current(two + 1h) == after(kNoon, 3));
}

TEST_CASE("An hour has its keys as a digest too, and keeps it over a restart", "[publish]") {
  HourlyFilters hours = started();
  add(hours, 1, kCapacity, kStart);
  auto again = HourlyFilters::restore(hours.save(), options(), kStart);
  REQUIRE(again);
  for (HourlyFilters* each : {&hours, &*again}) {
    const HourRecord& noon = known(*each, kNoon, kStart);
    REQUIRE(noon.digest);
    CHECK(noon.digest->info().parameters.bits == 5 * kCapacity);
    CHECK(noon.digest->info().capacity == kCapacity);
    std::uint32_t lost = 0;
    for (std::uint32_t i = 0; i < kCapacity; ++i) {
      lost += noon.digest->test(Key(1, i).bytes()) ? 0U : 1U;
    }
    CHECK(lost == 0);
    constexpr std::uint32_t kProbes = 100'000;
    CHECK(std::abs(false_positive_deviation(
              kProbes, noon.digest->info().fpr_now,
              [&](std::string_view key) { return noon.digest->test(key); })) < kSigmas);
  }
  CHECK(known(*again, kNoon, kStart).digest->save() == known(hours, kNoon, kStart).digest->save());
}

// As version 1 had it: a number, whether it is complete, events, a filter.
std::string saved_without_digest(const HourRecord& record) {
  std::string bytes = "ENCHOURS";
  const auto put = [&](std::uint64_t value, std::size_t size) {
    std::array<char, 8> text{};
    std::memcpy(text.data(), &value, text.size());
    bytes.append(text.data(), size);
  };
  put(1, 4);
  put(1, 4);
  put(static_cast<std::uint64_t>(kNoon.number), 8);
  put(1, 1);
  put(record.events, 8);
  const std::string filter = record.filter->save();
  put(filter.size(), 8);
  bytes += filter;
  put(0, 8);
  return resealed(bytes);
}

TEST_CASE("An hour that was saved without a digest gets none of its second half", "[publish]") {
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  const std::string bytes = saved_without_digest(known(hours, kNoon, kStart));
  auto again = HourlyFilters::restore(bytes, options(), kStart);
  REQUIRE(again);
  CHECK(again->add("b", kStart));
  CHECK(tests(known(*again, kNoon, kStart), "a"));
  CHECK_FALSE(known(*again, kNoon, kStart).digest);
  auto later = HourlyFilters::restore(again->save(), options(), kStart);
  REQUIRE(later);
  CHECK_FALSE(known(*later, kNoon, kStart).digest);
  CHECK(later->add("c", kStart + 1h));
  CHECK(known(*later, after(kNoon), kStart + 1h).digest);
}

TEST_CASE("Of saved hours only plain filters and digests are taken", "[publish][hostile]") {
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  const std::string bytes = hours.save();
  const HourRecord& noon = known(hours, kNoon, kStart);
  const std::string filter = noon.filter->save();
  const std::string digest = noon.digest->save();
  const std::size_t filter_at = bytes.find(filter);
  REQUIRE(filter_at != std::string::npos);
  const std::size_t digest_at = bytes.find(digest, filter_at);
  REQUIRE(digest_at != std::string::npos);
  // With another in the place of what stands at `at`, and its length in front.
  const auto restores = [&](std::size_t at, std::size_t size, const std::string& other) {
    std::string text = bytes;
    text.replace(at, size, other);
    const std::uint64_t length = other.size();
    std::memcpy(text.data() + at - sizeof(length), &length, sizeof(length));
    return HourlyFilters::restore(resealed(text), options(), kStart).has_value();
  };
  auto counting = filter::AnyFilter::create(
      {.kind = filter::FilterKind::kCounting, .parameters = options().filter});
  REQUIRE(counting);
  CHECK(restores(filter_at, filter.size(), filter));
  CHECK(restores(digest_at, digest.size(), digest));
  CHECK(restores(digest_at, digest.size(), ""));
  CHECK_FALSE(restores(filter_at, filter.size(), counting->save()));
  CHECK_FALSE(restores(filter_at, filter.size(), ""));
  CHECK_FALSE(restores(digest_at, digest.size(), filter));
}

TEST_CASE("An hour keeps the parameters that it was made with", "[publish]") {
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  auto other = options();
  other.filter.bits *= 2;
  auto again = HourlyFilters::restore(hours.save(), other, kStart);
  REQUIRE(again);
  CHECK(again->add("b", kStart));
  CHECK(again->add("c", kStart + 1h));
  const WallTime now = kStart + 1h;
  CHECK(known(*again, kNoon, now).filter->info().parameters.bits == options().filter.bits);
  CHECK(known(*again, after(kNoon), now).filter->info().parameters.bits == other.filter.bits);
}

TEST_CASE("A filter that is published has no seed", "[publish]") {
  auto seeded = options();
  seeded.filter.seed = {1, 0};
  CHECK_FALSE(HourlyFilters::create(seeded, kStart));
  seeded.filter.seed = {0, 1};
  CHECK_FALSE(HourlyFilters::create(seeded, kStart));
  auto large = options();
  large.filter.capacity = filter::kSquidCapacityMax + 1;
  CHECK_FALSE(HourlyFilters::create(large, kStart));
  // Nor is one taken from a file.
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  std::string bytes = hours.save();
  auto plain = filter::BloomFilter::create(options().filter);
  auto parameters = options().filter;
  parameters.seed = {1, 0};
  auto keyed = filter::BloomFilter::create(parameters);
  REQUIRE(keyed);
  REQUIRE(plain);
  plain->test_and_set(filter::hash_key(parameters.hash, filter::Seed{}, "a"));
  keyed->test_and_set(filter::hash_key(parameters.hash, parameters.seed, "a"));
  const std::string inner = plain->save();
  const std::size_t at = bytes.find(inner);
  REQUIRE(at != std::string::npos);
  CHECK(HourlyFilters::restore(resealed(bytes), options(), kStart));
  bytes.replace(at, inner.size(), keyed->save());
  CHECK_FALSE(HourlyFilters::restore(resealed(bytes), options(), kStart));
}

TEST_CASE("Damaged and hostile hours are refused", "[publish][hostile]") {
  HourlyFilters hours = started();
  CHECK(hours.add("a", kStart));
  CHECK(hours.add("b", kStart + 1h));
  const std::string bytes = hours.save();
  const auto restores = [](std::string_view text) {
    return HourlyFilters::restore(text, options(), kStart + 1h).has_value();
  };
  REQUIRE(restores(bytes));
  std::size_t taken = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    taken += restores(bytes.substr(0, size)) ? 1U : 0U;
    if (size >= 8) taken += restores(resealed(bytes.substr(0, size))) ? 1U : 0U;
    std::string flipped = bytes;
    flipped[size] = static_cast<char>(flipped[size] ^ 1);
    taken += restores(flipped) ? 1U : 0U;
  }
  CHECK(taken == 0);
  CHECK_FALSE(restores(bytes + "x"));
  CHECK_FALSE(restores(resealed(bytes + "x")));
  constexpr std::size_t kCountAt = 12;
  constexpr std::size_t kFirstAt = 16;
  constexpr std::size_t kSizeAt = kFirstAt + 17;
  const HourRecord& first = known(hours, kNoon, kStart + 1h);
  const std::size_t digest_size_at = kSizeAt + 8 + first.filter->save().size();
  const std::size_t second_at = digest_size_at + 8 + first.digest->save().size();
  struct Forged {
    std::size_t at;
    std::size_t bytes;
    std::uint64_t value;
  };
  for (const Forged& forged : std::vector<Forged>{{8, 4, 0},
                                                  {8, 4, 1},
                                                  {8, 4, 3},
                                                  {kCountAt, 4, 0},
                                                  {kCountAt, 4, 1},
                                                  {kCountAt, 4, 3},
                                                  {kCountAt, 4, 0xffffffff},
                                                  {kFirstAt, 8, 490'001},
                                                  {kFirstAt, 8, 490'002},
                                                  {second_at, 8, 2'559'624},
                                                  {kFirstAt, 8, UINT64_MAX},
                                                  {kFirstAt, 8, std::uint64_t{1} << 62U},
                                                  {kFirstAt + 8, 1, 2},
                                                  {kSizeAt, 8, 0},
                                                  {kSizeAt, 8, std::uint64_t{1} << 63U},
                                                  {kSizeAt, 8, UINT64_MAX},
                                                  {digest_size_at, 8, 0},
                                                  {digest_size_at, 8, 1},
                                                  {digest_size_at, 8, UINT64_MAX}}) {
    std::string text = bytes;
    std::memcpy(text.data() + forged.at, &forged.value, forged.bytes);
    INFO(forged.at << " " << forged.value);
    CHECK_FALSE(restores(resealed(text)));
  }
}

}  // namespace encore::publish
