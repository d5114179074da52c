#include "filter/counting_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "filter/key_estimate.h"
#include "filter/split_line.h"
#include "filter/theory.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"
#include "tests/filter/saved_bytes.h"

namespace encore::filter {
namespace {

using testing::ask_in_batch;
using testing::Key;
using testing::kLayouts;
using testing::kSeed;
using testing::kSigmas;

FilterParameters counting_parameters(Layout layout, std::uint64_t bits, Seed seed = kSeed) {
  return {.layout = layout,
          .bits = bits,
          .hashes = layout == Layout::kSplit ? 8U : 7U,
          .capacity = std::max<std::uint64_t>(1, bits / 10),
          .seed = seed};
}

CountingFilter make_counting(const FilterParameters& parameters) {
  auto filter = CountingFilter::create(parameters);
  REQUIRE(filter);
  return std::move(*filter);
}

CountingFilter counting_filter_of(const FilterParameters& parameters, std::uint32_t first,
                                  std::uint32_t last) {
  CountingFilter filter = make_counting(parameters);
  for (std::uint32_t i = first; i < last; ++i) {
    filter.add(Key(0, i).bytes());
  }
  return filter;
}

// The rule of a four-bit counter when it is raised and lowered.
struct Rule {
  std::uint64_t wraps_at = 0;  // 0: it does not
  bool lowers_full = false;
};
// A counting filter as one would write it first: a number for each position, changed by `rule`.
class CountingModel {
 public:
  explicit CountingModel(const FilterParameters& parameters, const Rule& rule = {})
      : parameters_(parameters), rule_(rule), counters_(parameters.bits) {}
  void add(std::string_view key) {
    each(key, [&](std::uint64_t& c) {
      c += c == kCounterMax && rule_.wraps_at == 0 ? 0 : 1;
      if (c == rule_.wraps_at) c = 0;
    });
  }
  bool remove(std::string_view key) {
    if (!test(key)) return false;
    each(key, [&](std::uint64_t& c) {
      c -= c == 0 || (c == kCounterMax && !rule_.lowers_full) ? 0 : 1;
    });
    return true;
  }
  bool test(std::string_view key) {
    bool all = true;
    each(key, [&](const std::uint64_t& c) { all = all && c != 0; });
    return all;
  }
  std::uint64_t counter(std::uint64_t i) const { return counters_[i]; }

 private:
  template <typename Visit>
  void each(std::string_view key, Visit visit) {
    const Hash128 hash = hash_key(parameters_.hash, parameters_.seed, key);
    KeyPositions(parameters_).for_each(hash, [&](std::uint64_t i) {
      visit(counters_[i]);
      return true;
    });
  }
  FilterParameters parameters_;
  Rule rule_;
  std::vector<std::uint64_t> counters_;
};

// Adds and removes keys of a few hundred at random. False where a key is missed that was added and
// not removed as often.
template <typename Filter>
bool misses_nothing(Filter& filter, std::uint32_t seed, std::uint32_t steps,
                    const auto& after_each) {
  std::mt19937 random(seed);
  std::map<std::uint32_t, std::uint32_t> held;
  std::uint64_t total = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const auto number = static_cast<std::uint32_t>(random() % 300);
    const Key key(0, number);
    std::uint32_t& count = held[number];
    // Rises and falls, so that counters fill up and empty again.
    const bool adds = random() % 100 < (step / 2000 % 2 == 0 ? 65 : 35);
    if (adds) {
      filter.add(key.bytes());
      ++count;
      ++total;
    } else if (count != 0) {
      if (!filter.remove(key.bytes())) return false;
      --count;
      --total;
    }
    if (count != 0 && !filter.test(key.bytes())) return false;
    after_each(step, key, total);
  }
  return std::ranges::all_of(held, [&](const auto& entry) {
    return entry.second == 0 || filter.test(Key(0, entry.first).bytes());
  });
}

}  // namespace

TEST_CASE("a counting filter of every layout meets theory at several fills, growing and shrinking",
          "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    CountingFilter filter = make_counting(counting_parameters(layout, 102'400));
    const auto check = [&](std::uint32_t first, std::uint32_t last) {
      CAPTURE(to_string(layout), first, last);
      for (std::uint32_t i = first; i < last; ++i) {
        REQUIRE(filter.test(Key(0, i).bytes()));
      }
      const double deviation =
          testing::false_positive_deviation(60'000, filter.fpr_from_bits().value(),
                                            [&](std::string_view key) { return filter.test(key); });
      CHECK(std::abs(deviation) < kSigmas);
      if (layout == Layout::kClassic) {
        const FilterShape shape = filter.parameters().shape();
        const double keys = last - first;
        CHECK(std::abs(static_cast<double>(filter.set_bits()) - expected_set_bits(shape, keys)) <
              kSigmas * std::sqrt(set_bits_variance(shape, keys)));
      }
    };
    std::uint32_t last = 0;
    for (const std::uint32_t keys : {5000U, 10'000U, 20'000U}) {
      for (; last < keys; ++last) {
        filter.add(Key(0, last).bytes());
      }
      check(0, last);
    }
    std::uint32_t first = 0;
    for (const std::uint32_t gone : {10'000U, 15'000U}) {
      for (; first < gone; ++first) {
        REQUIRE(filter.remove(Key(0, first).bytes()));
      }
      check(first, last);
    }
    CHECK(filter.overflows() == 0);
    CHECK(filter.keys() == 5000);
    for (; first < last; ++first) {
      filter.remove(Key(0, first).bytes());
    }
    CHECK(filter.set_bits() == 0);
  }
}

TEST_CASE("a counting filter does what plain numbers do, in random histories", "[filter]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint64_t bits : {512U, 2048U}) {
      for (const std::uint32_t seed : {1U, 2U, 3U}) {
        CAPTURE(to_string(layout), bits, seed);
        CountingFilter filter = make_counting(counting_parameters(layout, bits));
        CountingModel model(filter.parameters());
        std::mt19937 random(seed);
        const auto follow = [&](std::uint32_t step, const Key&, std::uint64_t total) {
          REQUIRE(filter.keys() == total);
          if (step % 1000 != 0) return;
          std::uint64_t set = 0;
          for (std::uint64_t i = 0; i < filter.parameters().bits; ++i) {
            set += filter.counter(i) != 0 ? 1U : 0U;
          }
          REQUIRE(filter.set_bits() == set);
        };
        CHECK(misses_nothing(filter, seed, 20'000, follow));
        CHECK(misses_nothing(model, seed, 20'000, [](auto...) {}));
        bool same = true;
        for (std::uint64_t i = 0; i < filter.parameters().bits; ++i) {
          same = same && filter.counter(i) == model.counter(i);
        }
        CHECK(same);
        CHECK((filter.overflows() > 0 || bits != 512));
      }
    }
  }
}

TEST_CASE("planted defects: a counter that wraps, a full counter that is lowered, lose keys",
          "[filter]") {
  const auto misses_nothing_by = [](const Rule& rule) {
    CountingModel model(counting_parameters(Layout::kClassic, 512), rule);
    return misses_nothing(model, 1, 20'000, [](auto...) {});
  };
  CHECK(misses_nothing_by({}));
  CHECK_FALSE(misses_nothing_by({.wraps_at = 16}));
  CHECK_FALSE(misses_nothing_by({.lowers_full = true}));
}

TEST_CASE("a full counter stays full, and says how often it was to be raised", "[filter]") {
  CountingFilter filter = make_counting(
      {.layout = Layout::kClassic, .bits = 1, .hashes = 1, .capacity = 1, .seed = kSeed});
  for (std::uint32_t i = 0; i < 15; ++i) {
    CHECK(filter.add("a") == (i == 0));
    CHECK(filter.counter(0) == i + 1);
  }
  CHECK(filter.overflows() == 0);
  filter.add("a");
  CHECK(filter.overflows() == 1);
  CHECK(filter.counter(0) == 15);
  for (int i = 0; i < 20; ++i) {
    CHECK(filter.remove("a"));
  }
  CHECK(filter.counter(0) == 15);
  CHECK(filter.keys() == 0);
}

TEST_CASE("what is not there is not removed, and a counter is never lowered below zero",
          "[filter]") {
  CountingFilter filter = make_counting(counting_parameters(Layout::kClassic, 1000));
  CHECK_FALSE(filter.remove("a"));
  filter.add("a");
  CHECK_FALSE(filter.remove("b"));
  CHECK(filter.test("a"));
  CHECK(filter.remove("a"));
  CHECK_FALSE(filter.remove("a"));
  CHECK(filter.keys() == 0);
  CHECK(filter.set_bits() == 0);
}

TEST_CASE("the counters hold what theory expects of them, and overflow as often, over 32 seeds",
          "[filter][theory]") {
  constexpr std::array<std::uint32_t, 4> kReached{1, 4, 9, 15};
  for (const Layout layout : kLayouts) {
    // Up to eight keys a position on average: some two in a hundred counters overflow.
    for (const std::uint32_t keys : {300U, 2400U, 4800U}) {
      CAPTURE(to_string(layout), keys);
      std::array<std::vector<double>, kReached.size()> reached;
      std::vector<double> overflows;
      FilterShape shape;
      for (std::uint64_t seed = 0; seed < 32; ++seed) {
        const CountingFilter filter =
            counting_filter_of(counting_parameters(layout, 4096, {seed, ~seed}), 0, keys);
        shape = filter.parameters().shape();
        for (std::size_t j = 0; j < kReached.size(); ++j) {
          double count = 0;
          for (std::uint64_t i = 0; i < shape.bits; ++i) {
            count += filter.counter(i) >= kReached[j] ? 1 : 0;
          }
          reached[j].push_back(count);
        }
        overflows.push_back(static_cast<double>(filter.overflows()));
      }
      for (std::size_t j = 0; j < kReached.size(); ++j) {
        CAPTURE(kReached[j]);
        const double expected =
            static_cast<double>(shape.bits) * counter_reaches(shape, keys, kReached[j]);
        if (expected * 32 < 10) {
          continue;  // too few to tell anything by
        }
        CHECK(std::abs(testing::mean_deviation(reached[j], expected)) < kSigmas);
      }
      const double expected = expected_overflows(shape, keys);
      if (keys == 4800) {
        CHECK(std::abs(testing::mean_deviation(overflows, expected)) < kSigmas);
      } else if (keys == 300) {
        CHECK(expected * 32 < 1e-3);
        CHECK(std::ranges::all_of(overflows, [](double count) { return count == 0; }));
      }
    }
  }
}

TEST_CASE("the bound of Fan et al. on overflow, and what lies below it", "[filter][theory]") {
  // k n / m = ln 2.
  const FilterShape shape{Layout::kClassic, 10'000'000, 7};
  const double keys = static_cast<double>(shape.bits) * std::log(2.0) / shape.hashes;
  CHECK(overflow_bound(shape, keys) / static_cast<double>(shape.bits) ==
        Approx(1.37e-15).epsilon(0.004));
  const double reaches = counter_reaches(shape, keys, 16);
  CHECK(reaches < 1.37e-15);
  // Poisson: e^-ln2 (ln 2)^16 / 16! and the little that follows.
  CHECK(reaches ==
        Approx(0.5 * std::pow(std::log(2.0), 16) / std::tgamma(17) * 1.0426).epsilon(0.002));
  CHECK(counter_reaches(shape, keys, 1) == Approx(0.5).epsilon(1e-5));
  CHECK(counter_reaches(shape, 0, 1) == 0);
  CHECK(counter_reaches(shape, 1e12, 16) == Approx(1));
  // By Stirling and by factorials: one throw more or less near the change.
  const auto near = [](double keys_near) {
    return counter_reaches({Layout::kClassic, 500'000, 1}, keys_near, 9);
  };
  CHECK(near(1e6) == Approx(near(1e6 - 1)).epsilon(1e-5));
  CHECK(expected_overflows({Layout::kClassic, 1, 1}, 20) == Approx(5));
  CHECK(expected_overflows(shape, keys) ==
        Approx(reaches * static_cast<double>(shape.bits)).epsilon(0.05));
}

TEST_CASE("the bits of a counting filter are those of a plain one with the same keys", "[filter]") {
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t bits : {70U, 4999U}) {
      CAPTURE(to_string(layout), bits);
      const CountingFilter counting =
          counting_filter_of(counting_parameters(layout, bits), 0, bits / 10);
      auto plain = BloomFilter::create(counting.parameters());
      REQUIRE(plain);
      for (std::uint32_t i = 0; i < bits / 10; ++i) {
        plain->add(Key(0, i).bytes());
      }
      auto converted = counting.plain();
      REQUIRE(converted);
      CHECK(converted->set_bits() == plain->set_bits());
      CHECK(converted->fpr_from_bits() == plain->fpr_from_bits());
      REQUIRE(converted->merge(*plain));
      CHECK(converted->set_bits() == plain->set_bits());
      CHECK(counting.fill() == plain->fill());
    }
  }
}

TEST_CASE("counting filters are added up, or what both hold is left, and keys can be removed",
          "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const FilterParameters parameters = counting_parameters(layout, 10'240);
    CountingFilter sum = counting_filter_of(parameters, 0, 800);
    CountingFilter common = counting_filter_of(parameters, 0, 800);
    const CountingFilter other = counting_filter_of(parameters, 500, 1200);
    REQUIRE(sum.merge(other));
    REQUIRE(common.intersect(other));
    // Estimated from the bits, within 4.5 standard errors.
    const double error = 4.5 * keys_error(parameters.shape(), 1200);
    CHECK(std::abs(static_cast<double>(sum.keys()) - 1200) < error);
    CHECK(std::abs(static_cast<double>(common.keys()) - 300) < error);
    const CountingFilter once = counting_filter_of(parameters, 0, 1200);
    CHECK(sum.set_bits() == once.set_bits());
    for (std::uint32_t i = 500; i < 800; ++i) {
      REQUIRE(common.test(Key(0, i).bytes()));
    }
    // Each way to a key's end: out of the common ones no other common one is lost.
    for (std::uint32_t i = 500; i < 700; ++i) {
      REQUIRE(common.remove(Key(0, i).bytes()));
    }
    for (std::uint32_t i = 700; i < 800; ++i) {
      REQUIRE(common.test(Key(0, i).bytes()));
    }
    for (std::uint32_t i = 0; i < 1200; ++i) {
      REQUIRE(sum.remove(Key(0, i).bytes()));
    }
    for (std::uint32_t i = 500; i < 800; ++i) {
      REQUIRE(sum.remove(Key(0, i).bytes()));
    }
    CHECK(sum.set_bits() == 0);
  }
  const FilterParameters small{
      .layout = Layout::kClassic, .bits = 1, .hashes = 1, .capacity = 1, .seed = {}};
  CountingFilter a = counting_filter_of(small, 0, 9);
  REQUIRE(a.merge(counting_filter_of(small, 0, 10)));
  CHECK(a.counter(0) == 15);
  CHECK(a.overflows() == 4);
  FilterParameters unlike = small;
  unlike.seed = {1, 1};
  CHECK(a.merge(make_counting(unlike)).error().message.starts_with("filters with different seeds"));
  CHECK(a.intersect(make_counting(unlike))
            .error()
            .message.starts_with("filters with different seeds"));
}

TEST_CASE("by bytes, by hash, by list and in batches a counting filter answers alike", "[filter]") {
  struct Make {
    HashFamily family;
    std::uint64_t bits;
  };
  for (const auto& [family, bits] :
       {Make{HashFamily::kXxh3, 20'000}, Make{HashFamily::kXxh3, 4 * kInCacheBytes},
        Make{HashFamily::kChained, 20'000}}) {
    CAPTURE(to_string(family), bits);
    FilterParameters parameters = counting_parameters(Layout::kClassic, bits);
    parameters.hash = family;
    CountingFilter filter = counting_filter_of(parameters, 0, 2000);
    CHECK(ask_in_batch(filter, 1500, 2817, 2000).wrong == 0);
    for (std::uint32_t i = 0; i < 2000; ++i) {
      if (family == HashFamily::kXxh3) {
        const Hash128 hash = hash_key(family, kSeed, Key(0, i).bytes());
        REQUIRE(filter.test(hash));
        REQUIRE(filter.remove(hash));
      } else {
        REQUIRE(filter.remove(Key(0, i).bytes()));
      }
    }
    CHECK(filter.set_bits() == 0);
    if (family == HashFamily::kXxh3) {
      const Hash128 hash = hash_key(family, kSeed, "a");
      CHECK(filter.add(hash));
      CHECK(filter.test("a"));
    }
  }
}

TEST_CASE("a saved counting filter comes back, and hostile bytes are refused", "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    CountingFilter filter = counting_filter_of(counting_parameters(layout, 500), 0, 1000);
    REQUIRE(filter.overflows() > 0);
    for (std::uint32_t i = 0; i < 950; ++i) {
      filter.remove(Key(0, i).bytes());
    }
    const std::string bytes = filter.save();
    const auto loaded = CountingFilter::load(bytes);
    REQUIRE(loaded);
    CHECK(loaded->save() == bytes);
    CHECK(loaded->keys() == filter.keys());
    CHECK(loaded->overflows() == filter.overflows());
    CHECK(loaded->set_bits() == filter.set_bits());
    CHECK_FALSE(BloomFilter::load(bytes));
    CHECK_FALSE(CountingFilter::load(loaded->plain()->save()));
  }
  const CountingFilter small =
      counting_filter_of(counting_parameters(Layout::kClassic, 250), 0, 20);
  const std::string good = small.save();
  testing::refuses_hostile_bytes(
      good, [](const std::string& bytes) { return CountingFilter::load(bytes); });
  // Counter 250 of 256 that there is room for.
  std::string beyond = good;
  beyond[testing::kLinesAt + 125] = 1;
  CHECK(CountingFilter::load(testing::resealed(beyond)).error().message ==
        "saved filter refused: counters beyond the end of the filter");
  const auto miscounted = testing::with_number(good, testing::kSetBitsAt, small.set_bits() + 1);
  CHECK(CountingFilter::load(testing::resealed(miscounted)).error().message.find("stated") !=
        std::string::npos);
}

}  // namespace encore::filter
