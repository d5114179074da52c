#include "proxy/observe/stats.h"

#include <cmath>
#include <string>

#include "proxy/observe/snapshot.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

double seconds(Nanoseconds latency) { return static_cast<double>(latency.count()) / 1e9; }

TEST_CASE("each latency lies between the bounds of its bucket", "[observe][stats]") {
  for (std::int64_t value = 1; value < 200'000'000'000; value += 1 + value / 37) {
    const Nanoseconds latency(value);
    const std::size_t bucket = latency_bucket(latency);
    INFO(value);
    REQUIRE(bucket < kLatencyBuckets);
    REQUIRE(seconds(latency) <= latency_bucket_bound(bucket));
    if (bucket != 0) REQUIRE(seconds(latency) > latency_bucket_bound(bucket - 1));
  }
}

TEST_CASE("a bound belongs to its bucket and what is beyond to the next", "[observe][stats]") {
  for (std::size_t bucket = 0; bucket + 1 < kLatencyBuckets; ++bucket) {
    const Nanoseconds bound(std::llround(latency_bucket_bound(bucket) * 1e9));
    REQUIRE(latency_bucket(bound) == bucket);
    REQUIRE(latency_bucket(bound + Nanoseconds(1)) == bucket + 1);
    if (bucket != 0) {
      REQUIRE(latency_bucket_bound(bucket) / latency_bucket_bound(bucket - 1) <= 1.26);
    }
  }
}

TEST_CASE("no latency is out of the histogram", "[observe][stats]") {
  CHECK(latency_bucket(Nanoseconds(-5)) == 0);
  CHECK(latency_bucket(Nanoseconds(0)) == 0);
  CHECK(latency_bucket(Nanoseconds::max()) == kLatencyBuckets - 1);
  CHECK(std::isinf(latency_bucket_bound(kLatencyBuckets - 1)));
  LatencyHistogram histogram;
  histogram.record(Nanoseconds(-5));
  histogram.record(std::chrono::hours(1));
  CHECK(histogram.bucket(0) == 1);
  CHECK(histogram.bucket(kLatencyBuckets - 1) == 1);
  CHECK(histogram.sum_nanoseconds() == 3'600'000'000'000U);
}

TEST_CASE("a quantile is the bound of the bucket it lies in", "[observe][stats]") {
  LatencySnapshot snapshot;
  CHECK(snapshot.quantile(0.5) == 0);
  snapshot.buckets[3] = 50;
  snapshot.buckets[10] = 49;
  snapshot.buckets[20] = 1;
  snapshot.count = 100;
  CHECK(snapshot.quantile(0.5) == latency_bucket_bound(3));
  CHECK(snapshot.quantile(0.51) == latency_bucket_bound(10));
  CHECK(snapshot.quantile(0.99) == latency_bucket_bound(10));
  CHECK(snapshot.quantile(1.0) == latency_bucket_bound(20));
}

TEST_CASE("outcomes have distinct names that a token may be", "[observe][stats]") {
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    CHECK_FALSE(kOutcomeNames[i].empty());
    for (std::size_t j = 0; j < i; ++j) CHECK(kOutcomeNames[i] != kOutcomeNames[j]);
  }
}

}  // namespace
}  // namespace encore::server
