// Simulated caches against a plain list of what they hold, and their counts field by field.
#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <random>

#include "cache/shadow_cache.h"
#include "tests/cache/support.h"

namespace encore::cache {
namespace {

using test::at;

// The least recently used goes first.
struct NaiveShadow {
  struct Held {
    std::uint64_t id = 0;
    std::uint64_t variant = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const Held& each : held) sum += each.bytes;
    return sum;
  }
  // Whether it was there.
  bool request(const Held& wanted, std::uint64_t sent) {
    ++counts.requests;
    counts.bytes_requested += sent;
    const auto found = std::ranges::find_if(held, [&](const Held& each) {
      return each.id == wanted.id && each.variant == wanted.variant;
    });
    if (found != held.end()) {
      held.splice(held.begin(), held, found);
      ++counts.hits;
      counts.bytes_hit += sent;
      return true;
    }
    if (wanted.bytes > capacity) return false;
    while (used() + wanted.bytes > capacity) held.pop_back();
    held.push_front(wanted);
    ++counts.objects_written;
    counts.bytes_written += wanted.bytes;
    return false;
  }

  std::uint64_t capacity = 0;
  std::list<Held> held;
  ShadowCounts counts;
};

void check_same(const ShadowCounts& one, const ShadowCounts& other) {
  CHECK(one.requests == other.requests);
  CHECK(one.hits == other.hits);
  CHECK(one.validations == other.validations);
  CHECK(one.bytes_requested == other.bytes_requested);
  CHECK(one.bytes_hit == other.bytes_hit);
  CHECK(one.objects_written == other.objects_written);
  CHECK(one.bytes_written == other.bytes_written);
}

// As the numbers of ShadowCache are described.
ShadowShare expected_share(std::uint64_t all, std::uint64_t requested, std::uint64_t missed,
                           const std::array<std::uint64_t, SpatialSample::kParts>& parts,
                           double rate) {
  const auto whole = static_cast<double>(all);
  const double share = 1 - static_cast<double>(missed) / rate / whole;
  const double value = std::min(1.0, std::max(0.0, share));
  if (rate >= 1) return {value, value, value};
  double squares = 0;
  for (const std::uint64_t part : parts) {
    const double of_part = 1 - static_cast<double>(part) * 8 / rate / whole;
    squares += (of_part - share) * (of_part - share);
  }
  const double spread = 2.365 * std::sqrt(squares / 56 * (1 - rate));
  const double plain =
      requested == 0 ? value : 1 - static_cast<double>(missed) / static_cast<double>(requested);
  return {value, std::max(0.0, std::min(value, plain) - spread),
          std::min(1.0, std::max(value, plain) + spread)};
}

void check_near(const ShadowShare& one, const ShadowShare& other) {
  CHECK(one.value == Approx(other.value).margin(1e-9));
  CHECK(one.low == Approx(other.low).margin(1e-9));
  CHECK(one.high == Approx(other.high).margin(1e-9));
}

}  // namespace

TEST_CASE("A shadow cache counts as a plain list of what it holds, and estimates by its rate",
          "[cache][shadow]") {
  const double rate = GENERATE(1.0, 0.5, 0.25);
  CAPTURE(rate);
  KernelOptions options = test::plain_options(20'000);
  options.eviction = EvictionPolicy::kLru;
  const SpatialSample sample({.rate = rate});
  auto made = ShadowCache::create(options, sample, at(0));
  REQUIRE(made.has_value());
  ShadowCache& shadow = **made;
  NaiveShadow naive{
      .capacity = static_cast<std::uint64_t>(20'000 * rate), .held = {}, .counts = {}};
  std::array<std::uint64_t, SpatialSample::kParts> missed{};
  std::array<std::uint64_t, SpatialSample::kParts> bytes_missed{};
  ShadowCounts all;
  std::mt19937_64 random(3);
  for (int step = 0; step < 4000; ++step) {
    // Small numbers come often.
    const std::uint64_t id = std::min(random() % 200, random() % 200);
    const std::uint64_t variant = id % 5 == 0 ? random() % 3 : 0;
    const std::uint64_t bytes = id == 7 ? 30'000 : 100 + id * 7 % 900;
    const std::uint64_t sent = bytes / 2;
    ++all.requests;
    all.bytes_requested += sent;
    const filter::Hash128 hash = test::key(id).hash;
    if (!sample.contains(hash)) continue;
    shadow.feed({.key = hash,
                 .variant = variant,
                 .sent_bytes = sent,
                 .object_bytes = bytes,
                 .charge_bytes = bytes,
                 // Parts of several workers come in no strict order.
                 .now = at(step - static_cast<int>(random() % 3)),
                 .fresh_seconds = 1'000'000});
    if (!naive.request({id, variant, bytes}, sent)) {
      ++missed[sample.part_of(hash)];
      bytes_missed[sample.part_of(hash)] += sent;
    }
    if (step % 97 != 0) continue;
    check_same(shadow.counts(), naive.counts);
    REQUIRE(shadow.objects() == naive.held.size());
    const auto whole = [&](std::uint64_t of_sample) {
      return static_cast<std::uint64_t>(std::llround(static_cast<double>(of_sample) / rate));
    };
    const ShadowCounts& counts = naive.counts;
    const ShadowCounts estimate = shadow.estimate(all);
    const std::uint64_t requests_missed = whole(counts.requests - counts.hits);
    const std::uint64_t all_missed = whole(counts.bytes_requested - counts.bytes_hit);
    check_same(estimate,
               {.requests = all.requests,
                .hits = all.requests - std::min(all.requests, requests_missed),
                .validations = 0,
                .bytes_requested = all.bytes_requested,
                .bytes_hit = all.bytes_requested - std::min(all.bytes_requested, all_missed),
                .objects_written = whole(counts.objects_written),
                .bytes_written = whole(counts.bytes_written)});
    check_near(
        shadow.object_hit_ratio(all),
        expected_share(all.requests, counts.requests, counts.requests - counts.hits, missed, rate));
    check_near(shadow.byte_hit_ratio(all),
               expected_share(all.bytes_requested, counts.bytes_requested,
                              counts.bytes_requested - counts.bytes_hit, bytes_missed, rate));
  }
  CHECK(naive.counts.hits > 100);
  CHECK(naive.counts.objects_written > naive.held.size());
  const ShadowShare nothing = shadow.object_hit_ratio({});
  CHECK(nothing.value == 0);
  CHECK(nothing.high == 0);
}

TEST_CASE("What a rule or its size keeps out of the whole is in no shadow of it either",
          "[cache][shadow]") {
  KernelOptions options = test::plain_options(20'000);
  options.max_object_bytes = 1000;
  auto made = ShadowCache::create(options, SpatialSample({}), at(0));
  REQUIRE(made.has_value());
  const auto written = [&](std::uint64_t id, std::uint64_t bytes, std::uint64_t rule) {
    const std::uint64_t before = (*made)->counts().objects_written;
    (*made)->feed({.key = test::key(id).hash,
                   .object_bytes = bytes,
                   .charge_bytes = 500,
                   .rule = rule,
                   .now = at(1),
                   .fresh_seconds = 10});
    return (*made)->counts().objects_written == before + 1;
  };
  CHECK(written(1, 1000, 0));
  CHECK_FALSE(written(2, 1001, 0));
  CHECK(written(3, 0, 0));
  const AdmissionRule small{.kind = AdmissionRule::Kind::kSizeThreshold, .parameter = 600};
  CHECK(written(4, 600, small.encoded()));
  CHECK_FALSE(written(5, 601, small.encoded()));
}

TEST_CASE("Counts of shadow caches are subtracted and added each by itself", "[cache][shadow]") {
  const ShadowCounts before{.requests = 1,
                            .hits = 2,
                            .validations = 3,
                            .bytes_requested = 4,
                            .bytes_hit = 5,
                            .objects_written = 6,
                            .bytes_written = 7};
  const ShadowCounts after{.requests = 11,
                           .hits = 102,
                           .validations = 1'003,
                           .bytes_requested = 10'004,
                           .bytes_hit = 100'005,
                           .objects_written = 1'000'006,
                           .bytes_written = 10'000'007};
  ShadowCounts counts = after - before;
  CHECK(counts.requests == 10);
  CHECK(counts.hits == 100);
  CHECK(counts.validations == 1'000);
  CHECK(counts.bytes_requested == 10'000);
  CHECK(counts.bytes_hit == 100'000);
  CHECK(counts.objects_written == 1'000'000);
  CHECK(counts.bytes_written == 10'000'000);
  counts += before;
  CHECK(counts.requests == after.requests);
  CHECK(counts.hits == after.hits);
  CHECK(counts.validations == after.validations);
  CHECK(counts.bytes_requested == after.bytes_requested);
  CHECK(counts.bytes_hit == after.bytes_hit);
  CHECK(counts.objects_written == after.objects_written);
  CHECK(counts.bytes_written == after.bytes_written);
}

}  // namespace encore::cache
