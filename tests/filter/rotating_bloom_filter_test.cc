#include "filter/rotating_bloom_filter.h"

#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using namespace std::chrono_literals;
using testing::Key;
using testing::kLayouts;
using testing::kSeed;
using testing::kSigmas;

constexpr MonotonicTime kStart{1h};

FilterParameters ring_parameters(Layout layout, std::uint64_t capacity,
                                 HashFamily family = HashFamily::kXxh3) {
  return {.layout = layout,
          .hash = family,
          .bits = capacity * 10,
          .hashes = layout == Layout::kSplit ? 8U : 7U,
          .capacity = capacity,
          .seed = kSeed};
}

RotatingOptions options_of(const FilterParameters& parameters) {
  return {.parameters = parameters, .identity_seed = kSeed, .shadow_one_in = 1};
}

RotatingBloomFilter make(const RotatingOptions& options) {
  auto filter = RotatingBloomFilter::create(options, kStart);
  REQUIRE(filter);
  return std::move(*filter);
}

Seen ask(RotatingBloomFilter& filter, std::string_view bytes, MonotonicTime now = kStart) {
  return filter.test_and_set(identify(kSeed, bytes), now);
}

bool holds(const RotatingBloomFilter& filter, std::string_view bytes) {
  return filter.test(identify(kSeed, bytes));
}

}  // namespace

TEST_CASE("a key is new, then in the current generation, then in the older one, then refreshed",
          "[filter]") {
  RotatingBloomFilter filter = make(options_of(ring_parameters(Layout::kSplit, 1000)));
  CHECK(ask(filter, "a") == Seen::kNew);
  CHECK(ask(filter, "a") == Seen::kCurrent);
  filter.rotate(kStart);
  CHECK(filter.find(identify(kSeed, "a")) == Seen::kOlder);
  CHECK(ask(filter, "a") == Seen::kOlder);
  CHECK(ask(filter, "a") == Seen::kCurrent);
  CHECK(filter.statistics().generations[0].insertions == 1);
  CHECK(filter.statistics().refreshes == 1);
  filter.rotate(kStart);
  filter.rotate(kStart);
  CHECK_FALSE(holds(filter, "a"));
  CHECK(filter.statistics().rotations == 3);
  CHECK(filter.statistics().insertions == 2);
}

TEST_CASE("without refresh an older key stays where it is and is forgotten with it", "[filter]") {
  RotatingOptions options = options_of(ring_parameters(Layout::kSplit, 1000));
  options.refresh = false;
  RotatingBloomFilter filter = make(options);
  ask(filter, "a");
  filter.rotate(kStart);
  CHECK(ask(filter, "a") == Seen::kOlder);
  CHECK(ask(filter, "a") == Seen::kOlder);
  CHECK(filter.statistics().generations[0].insertions == 0);
  filter.rotate(kStart);
  CHECK(ask(filter, "a") == Seen::kNew);
}

TEST_CASE("a generation rotates at its capacity, not one insertion earlier or later", "[filter]") {
  RotatingBloomFilter filter = make(options_of(ring_parameters(Layout::kClassic, 500)));
  std::uint32_t key = 0;
  const auto insert_one = [&] {
    while (ask(filter, Key(0, key++).bytes()) != Seen::kNew) {
    }
  };
  for (int i = 0; i < 499; ++i) {
    insert_one();
  }
  CHECK(filter.statistics().rotations == 0);
  insert_one();
  CHECK(filter.statistics().rotations == 1);
  CHECK(filter.statistics().generations[0].insertions == 0);
  CHECK(filter.statistics().generations[1].insertions == 500);
}

TEST_CASE("a generation rotates by time, once however long ago that was", "[filter]") {
  RotatingOptions options = options_of(ring_parameters(Layout::kSplit, 1000));
  options.rotate_after = 10s;
  RotatingBloomFilter filter = make(options);
  ask(filter, "a", kStart + 9s);
  CHECK(filter.statistics().rotations == 0);
  CHECK(ask(filter, "a", kStart + 10s) == Seen::kOlder);
  CHECK(filter.statistics().rotations == 1);
  filter.rotate_if_due(kStart + 19s);
  CHECK(filter.statistics().rotations == 1);
  CHECK(ask(filter, "a", kStart + 1000s) == Seen::kOlder);
  CHECK(filter.statistics().rotations == 2);
  filter.set_rotate_after(0s);
  CHECK(ask(filter, "a", kStart + 9000s) == Seen::kCurrent);
}

TEST_CASE("no key is forgotten within the guaranteed window, every layout and size of ring",
          "[filter]") {
  constexpr std::uint32_t kCapacity = 400;
  for (const Layout layout : kLayouts) {
    for (const std::uint32_t generations : {2U, 3U, 8U}) {
      CAPTURE(to_string(layout), generations);
      RotatingOptions options = options_of(ring_parameters(layout, kCapacity));
      options.generations = generations;
      RotatingBloomFilter filter = make(options);
      const std::uint32_t window = kCapacity * (generations - 1);
      bool remembered = true;
      bool forgotten = false;
      for (std::uint32_t i = 0; i < 6 * kCapacity * generations; ++i) {
        ask(filter, Key(0, i).bytes());
        if (i >= window && i % 7 == 0) {
          remembered = remembered && holds(filter, Key(0, i - window + 1).bytes());
        }
        if (i >= 3 * kCapacity * generations && i % 7 == 0) {
          forgotten =
              forgotten || !holds(filter, Key(0, i - 3 * kCapacity * generations + 1).bytes());
        }
      }
      CHECK(remembered);
      CHECK(forgotten);
      CHECK(filter.statistics().measured.false_negatives == 0);
    }
  }
}

TEST_CASE("across rotations every layout and hash meets theory, by the shadow on every key",
          "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    for (const HashFamily family : {HashFamily::kXxh3, HashFamily::kMurmur3, HashFamily::kSiphash,
                                    HashFamily::kMd5, HashFamily::kSha1, HashFamily::kSha512}) {
      CAPTURE(to_string(layout), to_string(family));
      const std::uint64_t capacity = 5000;
      RotatingBloomFilter filter = make(options_of(ring_parameters(layout, capacity, family)));
      constexpr std::uint32_t kKeys = 40'000;
      for (std::uint32_t i = 0; i < kKeys; ++i) {
        ask(filter, Key(0, i).bytes());
      }
      const RotatingStatistics statistics = filter.statistics();
      const MeasuredFpr& measured = statistics.measured;
      CHECK(statistics.rotations == 7);
      CHECK(measured.asked == kKeys);
      CHECK(measured.false_negatives == 0);
      // In addition to the binomial variance, that of the bits: sd(X)/X * k, about 1.8 % of p at
      // this size, in each of 8 generations; small against 1/sqrt(300 false positives).
      const double p = measured.expected / static_cast<double>(measured.asked);
      CHECK(std::abs(testing::deviation(measured.false_positives, measured.asked, p)) < kSigmas);
      CHECK(measured.interval().low < measured.rate());
      CHECK(measured.rate() < measured.interval().high);
      CHECK(statistics.fpr_bits == Approx(statistics.fpr_theory).epsilon(0.25));
    }
  }
}

TEST_CASE("the pair's rate follows the fill of the current generation", "[filter][theory][plain]") {
  const FilterParameters parameters = ring_parameters(Layout::kSplit, 20'000);
  RotatingOptions options = options_of(parameters);
  options.shadow_one_in = 0;
  RotatingBloomFilter filter = make(options);
  const Ring ring{.shape = filter.options().parameters.shape(),
                  .capacity = 20'000,
                  .counting = Counting::kEffective};
  std::uint32_t key = 0;
  for (const double fill : {0.0, 0.25, 0.5, 1.0}) {
    while (filter.statistics().rotations == 0 ||
           static_cast<double>(filter.statistics(1).generations[0].insertions) < 19'999 * fill) {
      ask(filter, Key(0, key++).bytes());
    }
    const RotatingStatistics statistics = filter.statistics(UINT64_MAX);
    const auto insertions = static_cast<double>(statistics.generations[0].insertions);
    CHECK(statistics.fpr_theory == Approx(ring_fpr(ring, insertions)).epsilon(0.002));
    CHECK(statistics.fpr_bits == Approx(statistics.fpr_theory).epsilon(0.1));
    const auto test = [&](std::string_view bytes) { return holds(filter, bytes); };
    CHECK(std::abs(testing::false_positive_deviation(100'000, statistics.fpr_bits, test)) <
          kSigmas);
  }
}

TEST_CASE("planted defect: bits taken from either generation fail the check that the pair passes",
          "[filter][theory]") {
  const FilterParameters parameters = ring_parameters(Layout::kClassic, 10'000);
  const auto lines = LineMemory::create(2 * GenerationBits::lines_for(parameters));
  REQUIRE(lines);
  GenerationBits a(parameters, lines->words(), 2);
  GenerationBits b(parameters, lines->words() + kLineWords, 2);
  const auto indices_of = [&](std::string_view bytes) {
    std::array<std::uint64_t, 7> indices{};
    Hash128 hash = identify(kSeed, bytes).hash;
    for (std::uint64_t& index : indices) {
      index = hash.lo % parameters.bits;
      hash.lo += hash.hi | 1U;
    }
    return indices;
  };
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    a.insert_indices(indices_of(Key(0, i).bytes()));
    b.insert_indices(indices_of(Key(1, i).bytes()));
  }
  const std::array<const GenerationBits*, 2> both{&a, &b};
  const double p = fpr_from_bits(both);
  const double right = testing::false_positive_deviation(50'000, p, [&](std::string_view bytes) {
    return a.test_indices(indices_of(bytes)) || b.test_indices(indices_of(bytes));
  });
  const double defect = testing::false_positive_deviation(50'000, p, [&](std::string_view bytes) {
    return std::ranges::all_of(indices_of(bytes),
                               [&](std::uint64_t i) { return a.bit(i) || b.bit(i); });
  });
  CHECK(std::abs(right) < kSigmas);
  CHECK(std::abs(defect) > 10 * kSigmas);
}

TEST_CASE("a ring rotates without a pause: an emptied generation is zeroed in steps", "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const FilterParameters parameters = checked(ring_parameters(layout, 2000)).value();
    const auto memory = LineMemory::create(GenerationBits::lines_for(parameters));
    REQUIRE(memory);
    GenerationBits bits(parameters, memory->words(), 1);
    const auto hash_of = [](std::uint32_t i) { return identify(kSeed, Key(0, i).bytes()).hash; };
    for (std::uint32_t i = 0; i < 2000; ++i) {
      bits.insert(hash_of(i));
    }
    bits.clear();
    CHECK(bits.dirty());
    CHECK(bits.set_bits() == 0);
    const GenerationBits* const alone = &bits;
    CHECK(fpr_from_bits({&alone, 1}) == 0);
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < 2000; ++i) {
      found += bits.test(hash_of(i)) ? 1U : 0U;
    }
    CHECK(found == 0);
    // Half-way through the sweep, a second clear included, what is inserted stays and counts.
    bits.sweep(bits.lines() / 2);
    bits.clear();
    bits.sweep(bits.lines() / 3);
    for (std::uint32_t i = 3000; i < 3100; ++i) {
      bits.insert(hash_of(i));
    }
    const std::uint64_t set = bits.set_bits();
    while (bits.sweep(3)) {
    }
    std::uint64_t counted = 0;
    for (std::uint64_t i = 0; i < parameters.bits; ++i) {
      counted += bits.bit(i) ? 1U : 0U;
    }
    CHECK(counted == set);
    for (std::uint32_t i = 3000; i < 3100; ++i) {
      CHECK(bits.test(hash_of(i)));
    }
  }
}

TEST_CASE("a batch decides as single calls do, rotations and the shadow's sample included",
          "[filter]") {
  for (const Layout layout : kLayouts) {
    for (const auto& [generations, shadow_one_in, refresh] :
         {std::tuple(2U, 1U, true), std::tuple(2U, 0U, true), std::tuple(2U, 16U, true),
          std::tuple(2U, 16U, false), std::tuple(4U, 16U, true)}) {
      CAPTURE(to_string(layout), generations, shadow_one_in, refresh);
      RotatingOptions options = options_of(ring_parameters(layout, 300));
      options.generations = generations;
      options.shadow_one_in = shadow_one_in;
      options.refresh = refresh;
      RotatingBloomFilter one = make(options);
      RotatingBloomFilter batched = make(options);
      std::deque<Key> names;
      std::vector<HashedKey> keys;
      for (std::uint32_t i = 0; i < 4000; ++i) {
        names.emplace_back(0, i * i % 1999);
        keys.push_back(identify(kSeed, names.back().bytes()));
      }
      std::vector<Seen> seen(keys.size());
      batched.test_and_set(keys, kStart, seen);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        REQUIRE(one.test_and_set(keys[i], kStart) == seen[i]);
      }
      const auto there = std::make_unique<bool[]>(keys.size());
      batched.test(keys, {there.get(), keys.size()});
      for (std::size_t i = 0; i < keys.size(); ++i) {
        REQUIRE(there[i] == one.test(keys[i]));
      }
      const RotatingStatistics expected = one.statistics();
      const RotatingStatistics statistics = batched.statistics();
      CHECK(statistics.rotations == expected.rotations);
      CHECK(statistics.insertions == expected.insertions);
      CHECK(statistics.refreshes == expected.refreshes);
      CHECK(statistics.measured.asked == expected.measured.asked);
      CHECK(statistics.generations[0].set_bits == expected.generations[0].set_bits);
    }
  }
}

TEST_CASE("new parameters forget nothing: the current generation becomes the older one",
          "[filter]") {
  RotatingBloomFilter filter = make(options_of(ring_parameters(Layout::kSplit, 2000)));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ask(filter, Key(0, i).bytes());
  }
  FilterParameters next = ring_parameters(Layout::kClassic, 3000, HashFamily::kSiphash);
  next.seed = {11, 12};
  REQUIRE(filter.reconfigure(next, kStart));
  CHECK(filter.options().parameters == next);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    REQUIRE(holds(filter, Key(0, i).bytes()));
  }
  for (std::uint32_t i = 5000; i < 5500; ++i) {
    ask(filter, Key(0, i).bytes());
  }
  CHECK(filter.statistics().generations[0].parameters == next);
  CHECK(filter.statistics().generations[1].parameters.layout == Layout::kSplit);
  // The same once more changes nothing, and a bad one changes nothing either.
  REQUIRE(filter.reconfigure(next, kStart));
  FilterParameters bad = next;
  bad.hashes = 0;
  CHECK_FALSE(filter.reconfigure(bad, kStart));
  CHECK(filter.statistics().generations[0].insertions >= 495);
  filter.rotate(kStart);
  for (std::uint32_t i = 5000; i < 5500; ++i) {
    REQUIRE(holds(filter, Key(0, i).bytes()));
  }
  CHECK_FALSE(holds(filter, Key(0, 1).bytes()));
  filter.rotate(kStart);
  filter.rotate(kStart);
  CHECK(filter.statistics().generations[1].parameters == next);
  CHECK(filter.statistics().measured.false_negatives == 0);
}

TEST_CASE("the shadow keeps quiet while it does not know every generation", "[filter]") {
  RotatingBloomFilter filter = make(options_of(ring_parameters(Layout::kSplit, 1000)));
  ask(filter, "old");
  auto loaded = RotatingBloomFilter::load(filter.save(kStart), {.shadow_one_in = 1}, kStart);
  REQUIRE(loaded);
  RotatingBloomFilter& restored = *loaded;
  CHECK(ask(restored, "old") == Seen::kCurrent);
  CHECK(ask(restored, "new") == Seen::kNew);
  CHECK(restored.statistics().measured.asked == 0);
  restored.rotate(kStart);
  CHECK(ask(restored, "newer") == Seen::kNew);
  CHECK(restored.statistics().measured.asked == 0);
  restored.rotate(kStart);
  CHECK(ask(restored, "newest") == Seen::kNew);
  CHECK(restored.statistics().measured.asked == 1);
  CHECK(restored.statistics().measured.false_positives == 0);
}

TEST_CASE("a shadow's memory is bounded whatever it is told", "[filter]") {
  auto shadow = Shadow::create({.one_in = 1, .generations = 2, .capacity = 1000});
  REQUIRE(shadow);
  const std::uint64_t memory = shadow->memory_bytes();
  CHECK(memory == 2 * 2048 * sizeof(Hash128));
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    shadow->told(identify(kSeed, Key(0, i).bytes()).hash, {});
  }
  CHECK(shadow->memory_bytes() == memory);
  CHECK(shadow->measured().asked < 2000);
  shadow->rotate();
  shadow->rotate();
  shadow->told({}, {});
  shadow->told({}, {.seen = true});
  CHECK(shadow->measured().false_negatives == 0);
  CHECK_FALSE(Shadow::create({.one_in = 3, .generations = 2, .capacity = 1}));
}

TEST_CASE("options outside their limits are refused", "[filter]") {
  RotatingOptions options = options_of(ring_parameters(Layout::kSplit, 1000));
  const auto refused = [&](auto change) {
    RotatingOptions changed = options;
    change(changed);
    return !RotatingBloomFilter::create(changed, kStart);
  };
  CHECK(refused([](auto& o) { o.generations = 1; }));
  CHECK_FALSE(refused([](auto& o) { o.generations = kGenerationsMax; }));
  CHECK(refused([](auto& o) { o.generations = kGenerationsMax + 1; }));
  CHECK(refused([](auto& o) { o.rotate_after = -1ns; }));
  CHECK(refused([](auto& o) { o.parameters.bits = 0; }));
  CHECK(refused([](auto& o) {
    o.parameters.layout = Layout::kClassic;
    o.parameters.hash = HashFamily::kChained;
  }));
  CHECK(refused([](auto& o) { o.shadow_one_in = 5; }));
  CHECK_FALSE(refused([](auto& o) { o.shadow_one_in = 0; }));
}

}  // namespace encore::filter
