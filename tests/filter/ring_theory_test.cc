// The expectations of theory for generations together, from the counts of a ring. They are compared
// with the formula for known keys, with the cases that need no formula, and with a workload with
// keys that come again, measured and by the bits over twenty seeds. The product of independent
// generations is put before the same checks, and must fail them.
#include "filter/ring_theory.h"

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "filter/rotating_bloom_filter.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kSigmas;

struct RingCase {
  Layout layout;
  std::uint32_t hashes;
  std::uint64_t bits_per_key;
};

RotatingBloomFilter make_ring(const RingCase& c, std::uint64_t capacity, std::uint32_t generations,
                              bool refresh, Seed seed = {1, 2}) {
  return RotatingBloomFilter::create({.parameters = {.layout = c.layout,
                                                     .bits = capacity * c.bits_per_key,
                                                     .hashes = c.hashes,
                                                     .capacity = capacity,
                                                     .seed = seed},
                                      .generations = generations,
                                      .refresh = refresh,
                                      .identity_seed = seed,
                                      .shadow_one_in = 0},
                                     MonotonicTime{})
      .value();
}

Seen ask_key(RotatingBloomFilter& filter, std::uint32_t stream, std::uint32_t i) {
  const Key name(stream, i);
  return filter.test_and_set(identify(filter.options().identity_seed, name.bytes()), {});
}

constexpr std::uint32_t kRingSeeds = 20;

// Tests of keys that were never there: what came of them, and what was said before.
struct Sums {
  double tests = 0;
  double positives = 0;
  double bits = 0;
  double variance = 0;
  double theory = 0;
  double product = 0;
};

// Two in five requests are for one of 1500 popular keys, the others for a key of their own.
Sums run_requests(RotatingBloomFilter& filter, std::uint64_t seed) {
  constexpr std::uint32_t kPopular = 1500;
  constexpr std::uint32_t kEvents = 40'000;
  Sums sums;
  std::uint64_t random = seed;
  RotatingBloomFilter::BitsReading reading;
  double current = 0;
  std::uint64_t rotations = 0;
  std::uint32_t tests = 0;
  for (std::uint32_t event = 0; event < kEvents; ++event) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto draw = static_cast<std::uint32_t>(random >> 33U);
    if (draw % 5 < 2) {
      ask_key(filter, 2, draw / 5 % kPopular);
      continue;
    }
    const bool rotated = rotations != filter.rotations();
    rotations = filter.rotations();
    if (rotated || tests % 96 == 0) reading = filter.read_bits();
    if (rotated || tests % 8 == 0) current = filter.current_fpr_from_bits();
    ++tests;
    const double p = reading.older + (1 - reading.shared) * current;
    sums.bits += p;
    sums.variance += p * (1 - p);
    sums.theory += filter.follow_theory();
    sums.product += 1 - (1 - reading.older) * (1 - current);
    sums.positives += ask_key(filter, 1, event) != Seen::kNew ? 1 : 0;
  }
  sums.tests = tests;
  return sums;
}

}  // namespace

TEST_CASE("refreshed keys lower the pair's rate as the formula says", "[filter][theory]") {
  // nA keys, then nB of which r are of the nA: o = 1 - e^(-k nA/m) - e^(-k nB/m) + e^(-k (nA + nB -
  // r)/m), p = a^k + b^k - o^k.
  constexpr double kA = 20'000;
  constexpr std::uint32_t kRefreshed = 9000;
  constexpr std::uint32_t kFresh = 6000;
  for (const std::uint32_t hashes : {1U, 2U, 4U, 7U}) {
    const double k = hashes;
    CAPTURE(k);
    RotatingBloomFilter filter = make_ring({Layout::kClassic, hashes, 8}, 25'000, 2, true);
    for (std::uint32_t i = 0; i < 20'000; ++i) ask_key(filter, 0, i);
    filter.rotate({});
    for (std::uint32_t i = 0; i < kRefreshed; ++i) ask_key(filter, 0, i);
    for (std::uint32_t i = 0; i < kFresh; ++i) ask_key(filter, 1, i);
    const double m = 200'000;
    const double b_keys = kRefreshed + kFresh;
    const double a = -std::expm1(-k * kA / m);
    const double b = -std::expm1(-k * b_keys / m);
    const double o = a + b - 1 + std::exp(-k * (kA + b_keys - kRefreshed) / m);
    const double expected = std::pow(a, k) + std::pow(b, k) - std::pow(o, k);
    CHECK(filter.fpr_theory() == Approx(expected).epsilon(0.005));
    CHECK(filter.fpr_theory() == Approx(filter.fpr_from_bits()).epsilon(0.02));
    const double product = 1 - (1 - std::pow(a, k)) * (1 - std::pow(b, k));
    CHECK(product > 1.015 * expected);
  }
}

TEST_CASE("generations with the same keys answer as one of them, in every layout",
          "[filter][theory]") {
  for (const RingCase& c : {RingCase{Layout::kClassic, 2, 6}, RingCase{Layout::kPartitioned, 2, 6},
                            RingCase{Layout::kBlocked, 1, 6}, RingCase{Layout::kBlocked, 5, 6},
                            RingCase{Layout::kSplit, 8, 8}}) {
    for (const std::uint32_t generations : {2U, 3U}) {
      CAPTURE(to_string(c.layout), c.hashes, generations);
      RotatingBloomFilter filter = make_ring(c, 30'000, generations, true);
      for (std::uint32_t g = 0; g < generations; ++g) {
        if (g != 0) filter.rotate({});
        for (std::uint32_t i = 0; i < 20'000; ++i) ask_key(filter, 0, i);
      }
      const FilterShape shape = filter.options().parameters.shape();
      CHECK(filter.fpr_theory() == Approx(fpr(shape, 20'000)).epsilon(0.01));
      CHECK(filter.fpr_from_bits() == Approx(fpr(shape, 20'000)).epsilon(0.03));
    }
  }
}

TEST_CASE("with one hash theory is what the bits hold, whatever was asked for",
          "[filter][theory]") {
  for (const std::uint32_t generations : {2U, 3U, 8U}) {
    for (const bool refresh : {true, false}) {
      CAPTURE(generations, refresh);
      RotatingBloomFilter filter = make_ring({Layout::kClassic, 1, 8}, 4000, generations, refresh);
      std::uint64_t random = 7;
      for (std::uint32_t event = 0; event < 60'000; ++event) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        ask_key(filter, 0,
                static_cast<std::uint32_t>(random >> 33U) % (event % 3 == 0 ? 500 : 90'000));
        if (event % 7919 == 0 && event > 0) {
          CHECK(filter.fpr_theory() == Approx(filter.fpr_from_bits()).epsilon(1e-3));
        }
      }
      CHECK(filter.rotations() > 2);
    }
  }
}

TEST_CASE("a ring of more than eight generations is no better than theory says",
          "[filter][theory]") {
  RotatingBloomFilter filter = make_ring({Layout::kClassic, 2, 6}, 1000, 12, true);
  std::uint64_t random = 7;
  for (std::uint32_t event = 0; event < 60'000; ++event) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    ask_key(filter, event % 2,
            static_cast<std::uint32_t>(random >> 33U) % (event % 2 == 0 ? 300 : 99'999));
  }
  std::uint64_t positives = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    positives += filter.test(identify({1, 2}, Key(9, i).bytes())) ? 1U : 0U;
  }
  CHECK(testing::deviation(positives, 100'000, filter.fpr_from_bits()) < kSigmas);
  CHECK(filter.fpr_theory() == Approx(filter.fpr_from_bits()).epsilon(0.05));
}

TEST_CASE(
    "pair and ring meet theory and their bits over twenty seeds, k = 1 and 2, with and without "
    "refresh",
    "[filter][theory][plain]") {
  constexpr std::uint64_t kCapacity = 5120;
  for (const RingCase& c : {RingCase{Layout::kClassic, 1, 3}, RingCase{Layout::kClassic, 2, 3},
                            RingCase{Layout::kPartitioned, 1, 3},
                            RingCase{Layout::kPartitioned, 2, 3}, RingCase{Layout::kBlocked, 1, 3},
                            RingCase{Layout::kBlocked, 2, 3}, RingCase{Layout::kSplit, 8, 8}}) {
    for (const auto& [generations, refresh] : {std::tuple(2U, true), std::tuple(2U, false),
                                               std::tuple(4U, true), std::tuple(4U, false)}) {
      CAPTURE(to_string(c.layout), c.hashes, generations, refresh);
      Sums all;
      std::vector<double> from_theory;
      for (std::uint32_t seed = 1; seed <= kRingSeeds; ++seed) {
        RotatingBloomFilter filter = make_ring(c, kCapacity, generations, refresh, {seed, 5});
        const Sums sums = run_requests(filter, seed);
        all.tests += sums.tests;
        all.positives += sums.positives;
        all.bits += sums.bits;
        all.variance += sums.variance;
        all.product += sums.product;
        all.theory += sums.theory;
        from_theory.push_back(sums.positives - sums.theory);
      }
      const double sigma = std::sqrt(all.variance);
      const double by_bits = (all.positives - all.bits) / sigma;
      const double by_theory = testing::mean_deviation(from_theory, 0);
      const double by_product = (all.positives - all.product) / sigma;
      CAPTURE(all.positives / all.tests, all.bits / all.tests, all.theory / all.tests,
              all.product / all.tests, by_bits, by_theory, by_product);
      CHECK(std::abs(by_bits) < kSigmas);
      CHECK(std::abs(by_theory) < kSigmas);
      // Planted: the older generations, as they are, independent of the current one. Keys that are
      // refreshed make it too high, keys that avoid what is set too low.
      if (c.layout != Layout::kSplit) {
        CHECK((refresh ? -by_product : by_product) > kSigmas);
      }
    }
  }
}

}  // namespace encore::filter
