// The effect of a scan of unique URLs on a ring: it pushes out remembered keys, no sooner and no
// later than the capacity says, and cannot raise the rate of false positives above the worst of a
// cycle. Put before the same checks: a filter that does not rotate, a ring without refresh.
#include <cmath>
#include <cstdint>
#include <vector>

#include "filter/bloom_filter.h"
#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kSigmas;
using testing::mean;

constexpr std::uint64_t kScannedCapacity = 2048;
constexpr std::uint32_t kScanner = 1;
constexpr std::uint32_t kOthers = 2;
constexpr std::uint32_t kScanProbes = 100'000;

FilterParameters parameters(std::uint64_t secret) {
  return {.layout = Layout::kSplit,
          .bits = kScannedCapacity * 16,
          .hashes = kSplitHashes,
          .capacity = kScannedCapacity,
          .seed = {secret, ~secret}};
}

struct Scanned {
  Scanned(std::uint64_t secret, std::uint32_t generations, bool refresh)
      : filter(RotatingBloomFilter::create({.parameters = parameters(secret),
                                            .generations = generations,
                                            .refresh = refresh,
                                            .identity_seed = parameters(secret).seed,
                                            .shadow_one_in = 0},
                                           {})
                   .value()) {}
  Seen ask(std::uint32_t stream, std::uint32_t i) {
    const Key name(stream, i);
    return filter.test_and_set(identify(filter.options().identity_seed, name.bytes()), {});
  }
  bool knows(std::uint32_t stream, std::uint32_t i) const {
    const Key name(stream, i);
    return filter.test(identify(filter.options().identity_seed, name.bytes()));
  }
  std::uint64_t insertions() const {
    return filter.rotations() * kScannedCapacity + filter.current_insertions();
  }
  void scan(std::uint64_t more) {
    const std::uint64_t end = insertions() + more;
    while (insertions() < end) ask(kScanner, next++);
  }
  RotatingBloomFilter filter;
  std::uint32_t next = 0;
};

Ring ring_of(std::uint32_t generations) {
  return {.shape = parameters(0).shape(),
          .capacity = kScannedCapacity,
          .generations = generations,
          .counting = Counting::kEffective};
}

// The share of keys that are new again after a scan, over starts all over a cycle.
std::vector<double> forgotten(std::uint32_t generations, std::uint64_t scanned) {
  constexpr std::uint32_t kStarts = 16;
  constexpr std::uint32_t kKeys = 8;
  std::vector<double> shares;
  for (std::uint32_t start = 0; start < kStarts; ++start) {
    Scanned memory(start, generations, true);
    memory.scan(generations * kScannedCapacity +
                (2 * start + 1) * kScannedCapacity / (2 * kStarts));
    for (std::uint32_t i = 0; i < kKeys; ++i) memory.ask(kOthers, i);
    memory.scan(scanned - kKeys);
    double gone = 0;
    for (std::uint32_t i = 0; i < kKeys; ++i) gone += memory.knows(kOthers, i) ? 0 : 1;
    shares.push_back(gone / kKeys);
  }
  return shares;
}

// How often one of a few popular keys is new again, each asked for once in `every` insertions of a
// scan of twenty generations.
std::uint32_t popular_lost(bool refresh, std::uint64_t every) {
  constexpr std::uint32_t kPopular = 32;
  Scanned memory(3, 2, refresh);
  for (std::uint32_t i = 0; i < kPopular; ++i) memory.ask(kOthers, i);
  std::uint32_t lost = 0;
  while (memory.insertions() < 20 * kScannedCapacity) {
    memory.scan(every - kPopular);
    for (std::uint32_t i = 0; i < kPopular; ++i) {
      lost += memory.ask(kOthers, i) == Seen::kNew ? 1U : 0U;
    }
  }
  return lost;
}

template <typename Knows>
double rate(Knows knows) {
  constexpr std::uint32_t kVictims = 9;
  std::uint32_t passed = 0;
  for (std::uint32_t i = 0; i < kScanProbes; ++i) passed += knows(kVictims, i) ? 1U : 0U;
  return static_cast<double>(passed) / kScanProbes;
}

}  // namespace

TEST_CASE("a scan pushes out what is remembered as the capacity says, no sooner",
          "[filter][theory][adversary]") {
  for (const std::uint32_t generations : {2U, 4U}) {
    const Ring ring = ring_of(generations);
    const std::uint64_t window = (generations - 1) * kScannedCapacity;
    // Up to the guaranteed window nothing is forgotten, whatever the URLs are.
    CHECK(mean(forgotten(generations, window / 2)) == 0);
    CHECK(mean(forgotten(generations, window)) == 0);
    for (const double quarter : {1.0, 2.0, 3.0, 4.0}) {
      const double distance = static_cast<double>(window) + quarter / 4 * kScannedCapacity;
      const std::vector<double> shares =
          forgotten(generations, static_cast<std::uint64_t>(distance));
      const double theory = forgotten_share(ring, distance);
      CAPTURE(generations, quarter, theory, mean(shares));
      // The keys of a start are not one insertion; false positives still count as remembered.
      CHECK(mean(shares) == Approx(theory).margin(1.0 / 64));
    }
  }
}

TEST_CASE("what comes again within the window survives any scan", "[filter][theory][adversary]") {
  CHECK(popular_lost(true, kScannedCapacity) == 0);
  // Without refresh it does not; nor does what comes too late.
  CHECK(popular_lost(false, kScannedCapacity) > 100);
  CHECK(popular_lost(true, 2 * kScannedCapacity + kScannedCapacity / 2) > 100);
}

TEST_CASE("a scan of any length leaves the rate below the worst of a cycle",
          "[filter][theory][adversary]") {
  const double worst = ring_cycle(ring_of(2)).high;
  std::vector<double> rotating;
  std::vector<double> standing;
  for (std::uint64_t secret = 0; secret < 10; ++secret) {
    Scanned memory(secret, 2, true);
    memory.scan(10 * kScannedCapacity - 1);
    rotating.push_back(rate([&](std::uint32_t s, std::uint32_t i) { return memory.knows(s, i); }));
    // Planted defect: it takes what comes for ever.
    BloomFilter filter = BloomFilter::create(parameters(secret)).value();
    for (std::uint32_t i = 0; i < 10 * kScannedCapacity; ++i) filter.add(Key(kScanner, i).bytes());
    standing.push_back(
        rate([&](std::uint32_t s, std::uint32_t i) { return filter.test(Key(s, i).bytes()); }));
  }
  CAPTURE(worst, mean(rotating), mean(standing));
  CHECK(testing::mean_deviation(rotating, worst) < kSigmas);
  CHECK(testing::mean_deviation(standing, worst) > 10 * kSigmas);
}

}  // namespace encore::filter
