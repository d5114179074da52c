// Caches that are simulated as their requests come, against replays of the same requests.
#include <algorithm>
#include <vector>

#include "cache/charge.h"
#include "cache/shadow_cache.h"
#include "sim/replay/replay_run.h"
#include "sim/replay/sample_estimate.h"
#include "sim/workload/request_generator.h"
#include "tests/catch.h"
#include "tests/sim/kernel.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kHeadBytes = 300;
constexpr std::uint64_t kObjectBytesMax = 40'000;

struct Trace {
  std::vector<ReplayRequest> requests;
  std::uint64_t bytes = 0;
};

// Sizes that change now and then, TTLs that are over while it lasts, an object that is too large.
Trace made_trace(std::uint64_t requests) {
  const auto sizes = parse_distribution("lognormal:2000:1.5:50000");
  REQUIRE(sizes);
  auto generator = make_generator(
      {.requests = requests, .objects = 4000, .alpha = 0.9, .mixture = {}, .size = *sizes});
  REQUIRE(generator);
  ObjectTable objects(ObjectSize::kLatest);
  Trace trace;
  GeneratedRequest made;
  while ((*generator)->next(made)) {
    const auto number = static_cast<std::int64_t>(trace.requests.size());
    constexpr std::uint32_t kShort = 50;
    trace.requests.push_back(
        objects.number({.key = filter::identify({}, std::to_string(made.id)).hash,
                        .time_ns = number * 1'000'000,
                        .size_bytes = made.size_bytes + (number % 97 == 0 ? 500U : 0U),
                        .ttl_seconds = made.id % 5 == 0 ? kShort : 100'000}));
    trace.bytes += trace.requests.back().size_bytes;
  }
  return trace;
}

cache::ShadowRequest shadow_of(const ReplayRequest& request) {
  return {.key = request.key,
          .sent_bytes = request.size_bytes,
          .object_bytes = request.object_bytes,
          .charge_bytes = cache::charge_for({.head = kHeadBytes, .body = request.object_bytes}),
          .now = MonotonicTime(Nanoseconds(request.time_ns)),
          .fresh_seconds = request.ttl_seconds};
}

cache::KernelOptions options_of(cache::AdmissionPolicy admission, cache::EvictionPolicy eviction) {
  cache::KernelOptions options = kernel(4'000'000, eviction, admission);
  options.entry_overhead_bytes = cache::kEntryOverheadBytes;
  options.max_object_bytes = kObjectBytesMax;
  options.admission.filter.capacity = 1500;
  options.admission.filter.bits = 30'000;
  options.admission.shadow_one_in = 0;
  return options;
}

struct Both {
  ReplayCounts replayed;
  std::unique_ptr<cache::ShadowCache> shadow;
};

Both run_both(const Trace& trace, const cache::KernelOptions& options, double rate) {
  const cache::SpatialSample sample({.rate = rate});
  auto shadow = cache::ShadowCache::create(options, sample, MonotonicTime{});
  auto run = ReplayRun::create(
      {.kernel = cache::scaled_kernel(options, rate),
       .charge = StoreCharge{.head_bytes = kHeadBytes, .reserved_bytes = kHeadBytes}});
  REQUIRE(shadow);
  REQUIRE(run);
  for (const ReplayRequest& request : trace.requests) {
    if (!sample.contains(request.key)) continue;
    (*run)->feed({&request, 1});
    (*shadow)->feed(shadow_of(request));
  }
  (*run)->finish();
  return {(*run)->counts(), std::move(*shadow)};
}

cache::ShadowCounts all_of(const Trace& trace) {
  return {.requests = trace.requests.size(), .bytes_requested = trace.bytes};
}

}  // namespace

TEST_CASE("A shadow comes to what a replay of the same sample comes to, whatever the policy",
          "[sim][shadow][long]") {
  const Trace trace = made_trace(30'000);
  const double rate = GENERATE(1.0, 0.25);
  for (std::size_t a = 0; a < cache::kAdmissionPolicyCount; ++a) {
    for (std::size_t e = 0; e < cache::kShadowEvictionNames.size(); ++e) {
      const auto admission = static_cast<cache::AdmissionPolicy>(a);
      const auto eviction = static_cast<cache::EvictionPolicy>(e);
      CAPTURE(rate, to_string(admission), to_string(eviction));
      const auto [replayed, shadow] = run_both(trace, options_of(admission, eviction), rate);
      const cache::ShadowCounts& counts = shadow->counts();
      CHECK(counts.requests == replayed.requests);
      CHECK(counts.hits == replayed.hits);
      CHECK(counts.validations == replayed.validations);
      CHECK(counts.bytes_requested == replayed.bytes_requested);
      CHECK(counts.bytes_hit == replayed.bytes_hit);
      CHECK(counts.objects_written == replayed.objects_written);
      CHECK(counts.bytes_written == replayed.bytes_written);
      if (admission != cache::AdmissionPolicy::kNever) CHECK(counts.hits > 0);
      const ReplayCounts estimated = estimated_counts(
          replayed,
          {.rate = rate, .requests = trace.requests.size(), .bytes_requested = trace.bytes});
      const cache::ShadowCounts told = shadow->estimate(all_of(trace));
      CHECK(told.hits == estimated.hits);
      CHECK(told.bytes_hit == estimated.bytes_hit);
      CHECK(told.bytes_written == estimated.bytes_written);
    }
  }
}

TEST_CASE("The bounds of a shadow hold the truth about as often as they say", "[sim][shadow]") {
  const Trace trace = made_trace(60'000);
  const auto options =
      options_of(cache::AdmissionPolicy::kSecondHit, cache::EvictionPolicy::kSieve);
  const auto [whole, unsampled] = run_both(trace, options, 1);
  const double truth = static_cast<double>(whole.hits) / static_cast<double>(whole.requests);
  const cache::ShadowShare exact = unsampled->object_hit_ratio(all_of(trace));
  CHECK(exact.value == truth);
  CHECK(exact.low == truth);
  CHECK(exact.high == truth);
  constexpr double kRate = 0.125;
  constexpr int kSamples = 40;
  int held = 0;
  double widest = 0;
  for (std::uint64_t seed = 1; seed <= kSamples; ++seed) {
    const cache::SpatialSample sample({.rate = kRate, .seed = seed});
    auto shadow = cache::ShadowCache::create(options, sample, MonotonicTime{});
    REQUIRE(shadow);
    for (const ReplayRequest& request : trace.requests) {
      if (sample.contains(request.key)) (*shadow)->feed(shadow_of(request));
    }
    const cache::ShadowShare share = (*shadow)->object_hit_ratio(all_of(trace));
    CHECK(share.low <= share.value);
    CHECK(share.value <= share.high);
    held += share.low <= truth && truth <= share.high ? 1 : 0;
    widest = std::max(widest, share.high - share.low);
  }
  // 95 % of them or more, for they are widened by what SHARDS-adj takes for granted: fewer than 33
  // of 40 at 95 % each would be one in three thousand.
  CHECK(held >= 33);
  CHECK(widest < 0.5);
}

TEST_CASE("What a request says of itself is held to what a kernel takes", "[sim][shadow]") {
  const auto options = options_of(cache::AdmissionPolicy::kAlways, cache::EvictionPolicy::kLru);
  auto shadow = cache::ShadowCache::create(options, cache::SpatialSample({}), MonotonicTime{});
  REQUIRE(shadow);
  const auto key = filter::identify({}, "a").hash;
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, kObjectBytesMax, kObjectBytesMax + 1, UINT64_MAX}) {
    (*shadow)->feed({.key = key,
                     .variant = UINT64_MAX,
                     .sent_bytes = 1,
                     .object_bytes = bytes,
                     .charge_bytes = bytes,
                     .rule = UINT64_MAX,
                     .fresh_seconds = UINT32_MAX});
  }
  // The first stores it, the second and third are hits; the third makes it larger than what may be
  // stored with its entry, so that it leaves, and the others never come in.
  CHECK((*shadow)->counts().requests == 5);
  CHECK((*shadow)->counts().hits == 2);
  CHECK((*shadow)->objects() == 0);
}

TEST_CASE("Variants of a key are objects of their own", "[sim][shadow]") {
  const auto options = options_of(cache::AdmissionPolicy::kAlways, cache::EvictionPolicy::kLru);
  auto shadow = cache::ShadowCache::create(options, cache::SpatialSample({}), MonotonicTime{});
  REQUIRE(shadow);
  const auto ask = [&](std::uint64_t variant) {
    const std::uint64_t before = (*shadow)->counts().hits;
    (*shadow)->feed({.key = filter::identify({}, "a").hash,
                     .variant = variant,
                     .object_bytes = 10,
                     .charge_bytes = 300,
                     .fresh_seconds = 10});
    return (*shadow)->counts().hits != before;
  };
  CHECK_FALSE(ask(1));
  CHECK_FALSE(ask(2));
  CHECK(ask(1));
  CHECK(ask(2));
  CHECK_FALSE(ask(0));
}

}  // namespace encore::sim
