#include "filter/set_estimate.h"

#include <array>
#include <cmath>
#include <vector>

#include "filter/key_estimate.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kLayouts;
using testing::kSigmas;

FilterParameters estimate_parameters(Layout layout, Seed seed) {
  return {.layout = layout,
          .bits = 20'480,
          .hashes = layout == Layout::kSplit ? 8U : 7U,
          .capacity = 2000,
          .seed = seed};
}

BloomFilter filled(const FilterParameters& parameters, std::uint32_t first, std::uint32_t last) {
  auto filter = BloomFilter::create(parameters);
  REQUIRE(filter);
  for (std::uint32_t i = first; i < last; ++i) {
    filter->add(Key(0, i).bytes());
  }
  return std::move(*filter);
}

// Probes that are in neither.
double deviation_of(const BloomFilter& filter, double p) {
  return testing::false_positive_deviation(60'000, p,
                                           [&](std::string_view key) { return filter.test(key); });
}

}  // namespace

TEST_CASE("the number of keys comes back from the bits that are to be expected",
          "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const FilterShape shape = estimate_parameters(layout, {}).shape();
    for (const double keys : {1.0, 100.0, 2000.0, 8000.0}) {
      CHECK(keys_from_bits(shape, expected_set_bits(shape, keys)) == Approx(keys).epsilon(1e-3));
    }
    CHECK(keys_from_bits(shape, 0) == 0);
    CHECK(std::isinf(keys_from_bits(shape, 20'480)));
    CHECK(std::isfinite(keys_from_bits(shape, 20'479)));
  }
}

TEST_CASE("the standard error of an estimate is what it differs by, over 128 seeds",
          "[filter][theory]") {
  constexpr int kSeeds = 128;
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t keys : {200U, 2000U, 6000U}) {
      CAPTURE(to_string(layout), keys);
      double squares = 0;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const FilterParameters parameters = estimate_parameters(layout, {seed, seed});
        const BloomFilter filter = filled(parameters, 0, keys);
        const double off =
            keys_from_bits(parameters.shape(), static_cast<double>(filter.set_bits())) - keys;
        squares += off * off;
      }
      const double ratio =
          std::sqrt(squares / kSeeds) / keys_error(estimate_parameters(layout, {}).shape(), keys);
      // 4.5 sigma of a standard deviation that comes from so many.
      const double bound = 4.5 / std::sqrt(2.0 * kSeeds);
      CHECK(std::abs(ratio - 1) < bound);
    }
  }
}

TEST_CASE("keys of a union and of an intersection come from the bits, within what is possible",
          "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const FilterParameters parameters = estimate_parameters(layout, {});
    BloomFilter twice = filled(parameters, 0, 500);
    const std::uint64_t keys = twice.insertions();
    REQUIRE(twice.merge(filled(parameters, 0, 500)));
    CHECK(twice.insertions() == keys);
    REQUIRE(twice.intersect(filled(parameters, 0, 500)));
    CHECK(twice.insertions() == keys);
    BloomFilter apart = filled(parameters, 0, 500);
    REQUIRE(apart.intersect(filled(parameters, 1000, 1500)));
    CHECK(static_cast<double>(apart.insertions()) < 4.5 * keys_error(parameters.shape(), 1000));
    // All ones say nothing.
    CHECK(keys_in_common(parameters.shape(), {20'000, 20'000, parameters.bits}, 7, 9) == 7);
  }
}

TEST_CASE("the sizes of two sets, of their union and intersection, over 32 seeds",
          "[filter][theory][long]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t common : {0U, 300U, 1200U}) {
      CAPTURE(to_string(layout), common);
      std::array<std::vector<double>, 4> sizes;
      for (std::uint64_t seed = 0; seed < 32; ++seed) {
        const FilterParameters parameters = estimate_parameters(layout, {seed, ~seed});
        const BloomFilter a = filled(parameters, 0, 1500);
        const BloomFilter b = filled(parameters, 1500 - common, 2700);
        const auto sets = estimate(a, b);
        REQUIRE(sets);
        sizes[0].push_back(sets->first);
        sizes[1].push_back(sets->second);
        sizes[2].push_back(sets->either);
        sizes[3].push_back(sets->first + sets->second - sets->either);
        CHECK(sets->jaccard() == Approx(sets->both / sets->either));
      }
      CHECK(std::abs(testing::mean_deviation(sizes[0], 1500)) < kSigmas);
      CHECK(std::abs(testing::mean_deviation(sizes[1], 1200 + common)) < kSigmas);
      CHECK(std::abs(testing::mean_deviation(sizes[2], 2700)) < kSigmas);
      CHECK(std::abs(testing::mean_deviation(sizes[3], common)) < kSigmas);
    }
  }
}

TEST_CASE("the OR and the AND of two filters answer as their bits say, at several fills",
          "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t keys : {700U, 1400U, 2800U}) {
      CAPTURE(to_string(layout), keys);
      const FilterParameters parameters = estimate_parameters(layout, {keys, 1});
      const BloomFilter a = filled(parameters, 0, keys);
      const BloomFilter b = filled(parameters, keys / 2, keys + keys / 2);
      const auto sets = estimate(a, b);
      REQUIRE(sets);
      BloomFilter either = filled(parameters, 0, keys);
      REQUIRE(either.merge(b));
      CHECK(either.fpr_from_bits() == sets->fpr_or);
      CHECK(std::abs(deviation_of(either, sets->fpr_or)) < kSigmas);
      BloomFilter both = filled(parameters, 0, keys);
      REQUIRE(both.intersect(b));
      CHECK(both.fpr_from_bits() == sets->fpr_and);
      CHECK(std::abs(deviation_of(both, sets->fpr_and)) < kSigmas);
      CHECK(sets->fpr_and <= std::min(a.fpr_from_bits(), b.fpr_from_bits()));
      for (std::uint32_t i = 0; i < keys + keys / 2; ++i) {
        REQUIRE(either.test(Key(0, i).bytes()));
        REQUIRE((i < keys / 2 || i >= keys || both.test(Key(0, i).bytes())));
        // Nothing is in the AND that is not in each.
        REQUIRE((!both.test(Key(0, i).bytes()) ||
                 (a.test(Key(0, i).bytes()) && b.test(Key(0, i).bytes()))));
      }
    }
  }
}

TEST_CASE("two filters that are half full make one that is three quarters full",
          "[filter][theory]") {
  FilterParameters parameters = estimate_parameters(Layout::kClassic, {1, 2});
  parameters.bits = 200'000;
  const auto half = static_cast<std::uint32_t>(half_full_capacity(parameters.shape()));
  BloomFilter a = filled(parameters, 0, half);
  const BloomFilter b = filled(parameters, half, 2 * half);
  CHECK(a.fill() == Approx(0.5).epsilon(0.01));
  CHECK(a.fpr_from_bits() == Approx(std::pow(0.5, 7)).epsilon(0.05));
  REQUIRE(a.merge(b));
  CHECK(a.fill() == Approx(0.75).epsilon(0.01));
  CHECK(a.fpr_from_bits() == Approx(std::pow(0.75, 7)).epsilon(0.05));
}

TEST_CASE("planted defect: a union of unlike seeds loses keys and is refused", "[filter][theory]") {
  const FilterParameters parameters = estimate_parameters(Layout::kClassic, {1, 2});
  FilterParameters other = parameters;
  other.seed = {3, 4};
  BloomFilter a = filled(parameters, 0, 1000);
  const BloomFilter b = filled(other, 1000, 2000);
  CHECK(a.merge(b).error().message.starts_with("filters with different seeds cannot be merged: "));
  CHECK(a.intersect(b).error().message.starts_with(
      "filters with different seeds cannot be intersected: "));
  CHECK_FALSE(estimate(a, b));
  // The result without the check: the bits of b under the seed of a.
  BloomFilter forced = filled(parameters, 0, 1000);
  std::uint32_t kept = 0;
  for (const std::uint32_t i : {0U, 1U}) {
    BloomFilter& filter = i == 0 ? a : forced;
    if (i == 1) {
      for (std::uint64_t bit = 0; bit < b.parameters().bits; ++bit) {
        if (b.bit(bit)) filter.test_and_set_indices(std::array{bit});
      }
    } else {
      REQUIRE(filter.merge(filled(parameters, 1000, 2000)));
    }
    kept = 0;
    for (std::uint32_t key = 1000; key < 2000; ++key) {
      kept += filter.test(Key(0, key).bytes()) ? 1U : 0U;
    }
    CHECK((kept == 1000) == (i == 0));
  }
}

TEST_CASE("an intersection is saved and loads", "[filter]") {
  const FilterParameters parameters = estimate_parameters(Layout::kClassic, {1, 2});
  BloomFilter a = filled(parameters, 0, 1500);
  REQUIRE(a.intersect(filled(parameters, 1400, 3000)));
  const auto loaded = BloomFilter::load(a.save());
  REQUIRE(loaded);
  CHECK(loaded->set_bits() == a.set_bits());
  REQUIRE(a.intersect(filled(parameters, 0, 0)));
  CHECK(a.set_bits() == 0);
  CHECK(BloomFilter::load(a.save()));
}

}  // namespace encore::filter
