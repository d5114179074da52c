#include "filter/scalable_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/filter/saved_bytes.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kLayouts;
using testing::kSeed;
using testing::kSigmas;

ScalableOptions options_of(Layout layout, std::uint64_t capacity, double fpr) {
  return {.layout = layout, .seed = kSeed, .capacity = capacity, .fpr = fpr};
}
ScalableOptions growable(Layout layout, std::uint64_t capacity, double fpr) {
  ScalableOptions options = options_of(layout, capacity, fpr);
  options.growth = options.tightening = 1;
  return options;
}

ScalableFilter make_scalable(const ScalableOptions& options) {
  auto filter = ScalableFilter::create(options);
  REQUIRE(filter);
  return std::move(*filter);
}

// Adds the next keys of a stream until N were new.
void fill(ScalableFilter& filter, std::uint32_t& next, std::uint64_t insertions) {
  while (filter.insertions() < insertions) {
    filter.add(Key(0, next++).bytes());
  }
}

double deviation_of(const ScalableFilter& filter, double p, std::uint32_t probes = 60'000) {
  return testing::false_positive_deviation(probes, p,
                                           [&](std::string_view key) { return filter.test(key); });
}

// Far below theory is a defect as well: the deviations from the bits' p, and from the formulas' by
// the spread over `seeds`.
struct Judged {
  double from_bits = 0;  // the largest one
  double from_formula = 0;
  double above_stated = 0;  // excess of the mean, in standard deviations of the mean
};
Judged judge(const ScalableOptions& options, double stated, std::uint64_t insertions,
             std::uint64_t seeds, std::uint32_t probes = 20'000) {
  Judged judged;
  std::vector<double> rates;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    ScalableOptions seeded = options;
    seeded.seed = {seed, ~seed};
    ScalableFilter filter = make_scalable(seeded);
    std::uint32_t next = 0;
    fill(filter, next, insertions);
    rates.push_back(filter.fpr_from_bits());
    const double deviation = deviation_of(filter, rates.back(), probes);
    judged.from_bits = std::max(judged.from_bits, std::abs(deviation));
  }
  judged.from_formula =
      testing::mean_deviation(rates, forecast(options, static_cast<double>(insertions)).fpr);
  judged.above_stated = testing::mean_deviation(rates, stated);
  return judged;
}

// The behaviour of a list of filters by the rule as it is written.
class ScalableModel {
 public:
  explicit ScalableModel(const ScalableOptions& options) : options_(options) { grow(); }
  void add(std::string_view key) {
    const Hash128 hash = hash_key(options_.hash, options_.seed, key);
    for (std::uint32_t i = 0; i < slices_.size(); ++i) {
      if (slices_[i].test(slice_hash(hash, i))) return;
    }
    const BloomFilter& last = slices_.back();
    if (last.insertions() == last.parameters().capacity) grow();
    const auto number = static_cast<std::uint32_t>(slices_.size() - 1);
    slices_.back().test_and_set(slice_hash(hash, number));
  }
  const std::vector<BloomFilter>& slices() const { return slices_; }

 private:
  void grow() {
    auto slice = BloomFilter::create(
        slice_parameters(options_, static_cast<std::uint32_t>(slices_.size())).value());
    REQUIRE(slice);
    slices_.push_back(std::move(*slice));
  }
  ScalableOptions options_;
  std::vector<BloomFilter> slices_;
};

}  // namespace

TEST_CASE("a scalable and a growable filter of every layout meet theory at every size",
          "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    for (const bool equal : {false, true}) {
      const ScalableOptions options =
          equal ? growable(layout, 2000, 0.01) : options_of(layout, 500, 0.05);
      ScalableFilter filter = make_scalable(options);
      std::uint32_t next = 0;
      for (const std::uint64_t insertions : {250U, 500U, 1000U, 4000U, 16'000U}) {
        CAPTURE(to_string(layout), equal, insertions);
        fill(filter, next, insertions);
        for (std::uint32_t i = 0; i < next; ++i) {
          REQUIRE(filter.test(Key(0, i).bytes()));
        }
        CHECK(std::abs(deviation_of(filter, filter.fpr_from_bits())) < kSigmas);
        const ScalableForecast expected = forecast(options, static_cast<double>(insertions));
        CHECK(filter.slices().size() == expected.slices);
        CHECK(static_cast<double>(filter.bits()) == expected.bits);
        CHECK(static_cast<double>(filter.capacity()) == expected.capacity);
        CHECK_FALSE(filter.overfull());
        if (!equal) {
          CHECK(filter.fpr_from_bits() < options.fpr);
          CHECK(expected.fpr_full < options.fpr);
        }
      }
    }
  }
}

TEST_CASE("a growing filter's bits meet their expectation over 32 seeds",
          "[filter][theory][plain]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint64_t insertions : {300U, 1200U, 3100U}) {
      CAPTURE(to_string(layout), insertions);
      // High enough a rate that what an insertion is worth shows.
      for (const ScalableOptions& options :
           {options_of(layout, 400, 0.2), growable(layout, 400, 0.1)}) {
        const Judged judged = judge(options, 1, insertions, 32, 4000);
        CHECK(judged.from_bits < kSigmas);
        CHECK(std::abs(judged.from_formula) < kSigmas);
      }
    }
  }
}

TEST_CASE("planted defect: slices that do not tighten break the stated rate", "[filter][theory]") {
  const ScalableOptions good = options_of(Layout::kClassic, 100, 0.05);
  // The same first slice, and all others as loose as that.
  ScalableOptions loose = good;
  loose.fpr = slice_fpr(good, 0);
  loose.tightening = 1;
  constexpr std::uint64_t kInsertions = 100 * 1023;  // ten slices, full
  REQUIRE(forecast(good, kInsertions).slices == 10);
  REQUIRE(forecast(loose, kInsertions).slices == 10);
  const Judged tightening = judge(good, good.fpr, kInsertions, 5);
  const Judged not_tightening = judge(loose, good.fpr, kInsertions, 5);
  CHECK(tightening.above_stated < 0);
  CHECK(not_tightening.above_stated > kSigmas);
  // And told from what it should be, by the formula.
  CHECK(forecast(loose, kInsertions).fpr > good.fpr);
  CHECK(forecast(good, kInsertions).fpr < good.fpr);
}

TEST_CASE("planted defect: equal slices by one hash answer more often than their bits say",
          "[filter][theory]") {
  const ScalableOptions options = growable(Layout::kClassic, 400, 0.1);
  for (const bool same : {false, true}) {
    const auto slice_of = [&](const Hash128& hash, std::uint32_t i) {
      return slice_hash(hash, same ? 0 : i);
    };
    std::vector<double> deviations;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      std::vector<BloomFilter> slices;
      const auto there = [&](std::string_view key) {
        const Hash128 hash = hash_key(HashFamily::kXxh3, {seed, ~seed}, key);
        for (std::uint32_t i = 0; i < slices.size(); ++i) {
          if (slices[i].test(slice_of(hash, i))) return true;
        }
        return false;
      };
      std::uint32_t next = 0;
      for (std::uint32_t i = 0; i < 8; ++i) {
        auto slice = BloomFilter::create(slice_parameters(options, i).value());
        REQUIRE(slice);
        slices.push_back(std::move(*slice));
        while (slices.back().insertions() < options.capacity) {
          const Key key(0, next++);
          if (there(key.bytes())) continue;
          slices.back().test_and_set(
              slice_of(hash_key(HashFamily::kXxh3, {seed, ~seed}, key.bytes()), i));
        }
      }
      double misses = 1;
      for (const BloomFilter& slice : slices) {
        misses *= 1 - slice.fpr_from_bits();
      }
      deviations.push_back(testing::false_positive_deviation(20'000, 1 - misses, there));
    }
    CAPTURE(same);
    CHECK((std::ranges::max(deviations) > kSigmas) == same);
  }
}

TEST_CASE("planted defect: keys that go past the capacity of their slice", "[filter][theory]") {
  const ScalableOptions good = options_of(Layout::kClassic, 1000, 0.02);
  ScalableFilter filter = make_scalable(good);
  std::uint32_t next = 0;
  fill(filter, next, 3000);
  CHECK(std::abs(deviation_of(filter, forecast(good, 3000).fpr)) < kSigmas);
  // All of them in one slice.
  auto slice = BloomFilter::create(slice_parameters(good, 0).value());
  REQUIRE(slice);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    slice->add(Key(0, i).bytes());
  }
  CHECK(slice->fpr_from_bits() > good.fpr);
}

TEST_CASE("the rates of slices add up to less than what was stated, the sizes to what they need",
          "[filter][theory]") {
  for (const double tightening : {0.5, 0.8, 0.9}) {
    ScalableOptions options = options_of(Layout::kClassic, 1000, 0.01);
    options.tightening = tightening;
    double sum = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      sum += slice_fpr(options, i);
    }
    CHECK(sum == Approx(0.01 * (1 - std::pow(tightening, 20))));
    const FilterParameters third = slice_parameters(options, 2).value();
    CHECK(third.capacity == 4000);
    const double full = fpr(third.shape(), effective_insertions(third.shape(), 4000));
    CHECK(full <= slice_fpr(options, 2));
    CHECK(full > 0.99 * slice_fpr(options, 2));
  }
  // Almeida et al.: a filter that grows needs more than one that was made large enough.
  const ScalableOptions options = options_of(Layout::kClassic, 1000, 0.01);
  const ScalableForecast grown = forecast(options, 1'000'000);
  CHECK(grown.slices == 10);
  CHECK(grown.bits / 1e6 > 9.585);
  CHECK(grown.bits / grown.capacity < 2 * 9.585);
  CHECK(grown.reached);
  CHECK_FALSE(forecast(growable(Layout::kClassic, 1, 0.01), 2000).reached);
  CHECK_FALSE(forecast(options_of(Layout::kClassic, 1000, 0.01), 1e15).reached);
  const ScalableForecast list = forecast(growable(Layout::kClassic, 1000, 0.01), 10'000);
  CHECK(list.slices == 10);
  CHECK(list.fpr == Approx(1 - std::pow(0.99, 10)).epsilon(0.01));
  CHECK(forecast(options, 0).slices == 1);
}

TEST_CASE("a growing filter does what the rule says, in random histories", "[filter]") {
  for (const Layout layout : kLayouts) {
    for (const bool equal : {false, true}) {
      for (const std::uint32_t seed : {1U, 2U}) {
        CAPTURE(to_string(layout), equal, seed);
        const ScalableOptions options =
            equal ? growable(layout, 100, 0.1) : options_of(layout, 50, 0.3);
        ScalableFilter filter = make_scalable(options);
        ScalableModel model(options);
        std::mt19937 random(seed);
        std::set<std::uint32_t> added;
        for (int step = 0; step < 3000; ++step) {
          const auto number = static_cast<std::uint32_t>(random() % 1500);
          const Key key(0, number);
          const bool was_there = filter.test(key.bytes());
          REQUIRE((was_there || !added.contains(number)));
          if (random() % 3 != 0) {
            REQUIRE(filter.add(key.bytes()) == !was_there);
            model.add(key.bytes());
            added.insert(number);
            REQUIRE(filter.test(key.bytes()));
          }
        }
        REQUIRE(filter.slices().size() == model.slices().size());
        for (std::size_t i = 0; i < model.slices().size(); ++i) {
          CHECK(filter.slices()[i].save() == model.slices()[i].save());
        }
      }
    }
  }
}

TEST_CASE("a growing filter answers in batches as it does one by one", "[filter]") {
  for (const HashFamily family : {HashFamily::kXxh3, HashFamily::kMurmur3}) {
    ScalableOptions options = options_of(Layout::kClassic, 100, 0.3);
    options.hash = family;
    ScalableFilter filter = make_scalable(options);
    std::uint32_t next = 0;
    fill(filter, next, 2000);
    std::vector<Key> storage;
    std::vector<std::string_view> keys;
    for (std::uint32_t i = next / 2; i < next + 901; ++i) {
      storage.emplace_back(0, i);
    }
    for (const Key& key : storage) {
      keys.push_back(key.bytes());
    }
    const auto answers = std::make_unique<bool[]>(keys.size());
    filter.test(keys, {answers.get(), keys.size()});
    std::size_t positives = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      REQUIRE(answers[i] == filter.test(keys[i]));
      REQUIRE((i >= next - next / 2 || answers[i]));
      positives += answers[i] ? 1U : 0U;
    }
    CHECK(positives < keys.size());
  }
}

TEST_CASE("growing filters of one rule are united slice by slice, others refused", "[filter]") {
  const ScalableOptions options = options_of(Layout::kClassic, 100, 0.05);
  ScalableFilter a = make_scalable(options);
  ScalableFilter b = make_scalable(options);
  for (std::uint32_t i = 0; i < 250; ++i) a.add(Key(0, i).bytes());
  for (std::uint32_t i = 0; i < 2000; ++i) b.add(Key(1, i).bytes());
  REQUIRE(a.slices().size() == 2);
  REQUIRE(a.merge(b));
  CHECK(a.slices().size() == b.slices().size());
  for (std::uint32_t i = 0; i < 250; ++i) REQUIRE(a.test(Key(0, i).bytes()));
  for (std::uint32_t i = 0; i < 2000; ++i) REQUIRE(a.test(Key(1, i).bytes()));
  CHECK(std::abs(deviation_of(a, a.fpr_from_bits())) < kSigmas);
  CHECK(a.add("one more"));
  for (const int change : {0, 1, 2, 3, 4}) {
    CAPTURE(change);
    ScalableOptions other = options;
    other.seed.lo += change == 0 ? 1 : 0;
    other.growth += change == 1 ? 1 : 0;
    other.tightening += change == 2 ? 0.1 : 0;
    other.fpr /= change == 3 ? 2 : 1;
    other.capacity += change == 4 ? 1 : 0;
    const auto refused = a.merge(make_scalable(other));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("cannot be merged") != std::string::npos);
  }
}

TEST_CASE("planted defect: an AND slice by slice loses what both have, and is refused",
          "[filter]") {
  const ScalableOptions options = options_of(Layout::kClassic, 100, 0.05);
  ScalableFilter early = make_scalable(options);
  ScalableFilter late = make_scalable(options);
  early.add("a key");
  for (std::uint32_t i = 0; i < 200; ++i) late.add(Key(1, i).bytes());
  late.add("a key");
  CHECK(
      early.intersect(late).error().message.starts_with("filters that grow cannot be intersected"));
  auto first = early.slices()[0].copy();
  REQUIRE(first);
  REQUIRE(first->intersect(late.slices()[0]));
  CHECK(early.test("a key"));
  CHECK(late.test("a key"));
  CHECK_FALSE(first->test("a key"));
}

TEST_CASE("where no slice can be added the last one is overfull, and keys are not lost",
          "[filter]") {
  ScalableFilter filter = make_scalable(growable(Layout::kClassic, 1, 0.001));
  std::uint32_t next = 0;
  fill(filter, next, kSlicesMax);
  CHECK_FALSE(filter.overfull());
  CHECK(filter.slices().size() == kSlicesMax);
  while (!filter.overfull()) filter.add(Key(0, next++).bytes());
  CHECK(filter.slices().size() == kSlicesMax);
  for (std::uint32_t i = 0; i < next; ++i) {
    REQUIRE(filter.test(Key(0, i).bytes()));
  }
}

TEST_CASE("growth outside its limits is refused", "[filter]") {
  const auto refusal = [](auto change) {
    ScalableOptions options = options_of(Layout::kClassic, 100, 0.05);
    change(options);
    const auto fine = ScalableFilter::create(options);
    return fine ? std::string("none") : fine.error().message;
  };
  CHECK(refusal([](auto&) {}) == "none");
  CHECK(refusal([](auto& o) { o.growth = o.tightening = 1; }) == "none");
  CHECK(refusal([](auto& o) { o.growth = kGrowthMax; }) == "none");
  CHECK(refusal([](auto& o) { o.capacity = 0; }).starts_with("a first slice for 0 keys"));
  CHECK(refusal([](auto& o) { o.fpr = 0; }).starts_with("a false-positive rate of 0, "));
  CHECK(refusal([](auto& o) { o.fpr = 1; }).starts_with("a false-positive rate of 1, "));
  CHECK(refusal([](auto& o) { o.growth = 0.99; }).starts_with("slices that grow by 0.99, "));
  CHECK(refusal([](auto& o) { o.growth = 16.5; }).starts_with("slices that grow by 16.5, "));
  CHECK(refusal([](auto& o) { o.tightening = 0; }).starts_with("rates that tighten by 0, "));
  CHECK(refusal([](auto& o) { o.tightening = 1.1; }).starts_with("rates that tighten by 1.1, "));
  CHECK(refusal([](auto& o) { o.fpr = std::nan(""); }).starts_with("a false-positive rate of "));
  CHECK(refusal([](auto& o) { o.growth = std::nan(""); }).starts_with("slices that grow by "));
  CHECK(refusal([](auto& o) { o.tightening = std::nan(""); }).starts_with("rates that tighten by"));
  CHECK(refusal([](auto& o) { o.capacity = UINT64_MAX; }).starts_with("no slice of up to"));
  CHECK(refusal([](auto& o) {
          o.hash = HashFamily::kSha1Fields20;
        }).starts_with("a filter that grows by the hash sha1-fields20"));
}

TEST_CASE("a saved growing filter comes back and grows on, and hostile bytes are refused",
          "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    ScalableFilter filter = make_scalable(options_of(layout, 100, 0.05));
    std::uint32_t next = 0;
    fill(filter, next, 950);
    auto loaded = ScalableFilter::load(filter.save());
    REQUIRE(loaded);
    CHECK(loaded->options() == filter.options());
    CHECK(loaded->save() == filter.save());
    for (; next < 3000; ++next) {
      CHECK(loaded->add(Key(0, next).bytes()) == filter.add(Key(0, next).bytes()));
    }
    CHECK(loaded->save() == filter.save());
    CHECK_FALSE(BloomFilter::load(filter.save()));
  }
  ScalableFilter small = make_scalable(options_of(Layout::kClassic, 10, 0.1));
  std::uint32_t next = 0;
  fill(small, next, 25);
  const std::string good = small.save();
  const auto load = [](const std::string& bytes) { return ScalableFilter::load(bytes); };
  testing::refuses_hostile_bytes(good, load);
  const auto refused = [&](std::size_t at, std::uint64_t value) {
    const auto loaded = load(testing::resealed(testing::with_number(good, at, value)));
    return !loaded && loaded.error().message.starts_with("saved filter refused: ");
  };
  // The four numbers behind the lines: capacity, rate, growth, tightening.
  const std::size_t growth_at = good.size() - 8 - 32;
  CHECK(refused(growth_at, 0));
  for (const std::size_t i : {1U, 2U, 3U}) {
    for (const double value :
         {0.0, -1.0, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
      CAPTURE(i, value);
      CHECK(refused(growth_at + 8 * i, std::bit_cast<std::uint64_t>(value)));
    }
  }
  // A slice that would be full immediately, and be followed by one of the stated size.
  constexpr std::size_t kCapacityAt = 72 + 16;
  CHECK(refused(kCapacityAt, 1));
  CHECK(refused(kCapacityAt + 56, 1));
  CHECK(refused(growth_at, std::uint64_t{1} << 40U));
  // Slices of two seeds; no slice; more than there may be.
  CHECK(refused(72 + 56 + 24, 1));
  constexpr std::size_t kCountAt = 16;
  for (const std::uint32_t count : {0U, 1U, 3U, 1025U, 0xffffffffU}) {
    std::string bytes = good;
    std::memcpy(bytes.data() + kCountAt, &count, sizeof count);
    CAPTURE(count);
    CHECK_FALSE(load(testing::resealed(bytes)));
  }
}

}  // namespace encore::filter
