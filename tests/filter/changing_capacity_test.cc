// A rotating pair whose generations have a capacity that changes while they fill: its rotations,
// the keys that it remembers, and its false positives compared with theory.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "filter/rotating_bloom_filter.h"
#include "tests/catch.h"
#include "tests/filter/judge.h"

namespace encore::filter {
namespace {

using testing::Key;
using testing::kLayouts;
using testing::kSeed;
using testing::kSigmas;

constexpr MonotonicTime kNow{std::chrono::hours(1)};
constexpr std::uint32_t kProbeStream = 0xffffffffU;

RotatingBloomFilter make(Layout layout, std::uint64_t planned, std::uint64_t bits_per_key,
                         std::uint32_t shadow_one_in = 0) {
  auto filter =
      RotatingBloomFilter::create({.parameters = {.layout = layout,
                                                  .hash = HashFamily::kXxh3,
                                                  .bits = planned * bits_per_key,
                                                  .hashes = layout == Layout::kSplit ? 8U : 4U,
                                                  .capacity = planned,
                                                  .seed = kSeed},
                                   .identity_seed = kSeed,
                                   .shadow_one_in = shadow_one_in},
                                  kNow);
  REQUIRE(filter);
  return std::move(*filter);
}

Seen add(RotatingBloomFilter& filter, std::uint32_t key, std::uint64_t capacity) {
  return filter.test_and_set_within(identify(kSeed, Key(0, key).bytes()), capacity, kNow);
}

// A capacity that wanders between a quarter of what is planned and all of it.
class Wandering {
 public:
  Wandering(std::uint64_t planned, std::uint64_t seed) : planned_(planned), random_(seed) {}
  std::uint64_t next() {
    if (random_() % 700 == 0) {
      goal_ = std::pow(2.0, -2 * static_cast<double>(random_() % 1000) / 1000);
    }
    share_ += (goal_ - share_) / 300;
    return static_cast<std::uint64_t>(share_ * static_cast<double>(planned_));
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

 private:
  std::uint64_t planned_;
  std::mt19937_64 random_;
  double share_ = 0.5;
  double goal_ = 0.5;
};

// False positives among keys that were never inserted, with theory's p at each question.
struct Asked {
  std::uint64_t positives = 0;
  double expected = 0;
  double variance = 0;
  std::uint64_t count = 0;
  double deviation() const {
    return (static_cast<double>(positives) - expected) / std::sqrt(variance);
  }
};

// Inserts new keys, and one in five that was inserted lately, and asks for others all the while.
// `theory(filter)` is the p that is expected.
template <typename Theory>
Asked ask_while_it_fills(Layout layout, std::uint64_t seed, Theory theory) {
  constexpr std::uint64_t kPlanned = 4000;
  RotatingBloomFilter filter = make(layout, kPlanned, 5);
  Wandering capacity(kPlanned, seed);
  Asked asked;
  std::uint32_t keys = 0;
  for (std::uint32_t n = 0; n < 80'000; ++n) {
    const bool again = keys > 2000 && capacity.below(5) == 0;
    const std::uint32_t key =
        again ? keys - 1 - static_cast<std::uint32_t>(capacity.below(2000)) : keys++;
    add(filter, key, capacity.next());
    if (n % 100 == 0) {
      const double p = theory(filter);
      for (std::uint32_t i = 0; i < 400; ++i) {
        const auto probe = static_cast<std::uint32_t>(asked.count++);
        asked.positives += filter.test(identify(kSeed, Key(kProbeStream, probe).bytes())) ? 1U : 0U;
        asked.expected += p;
        asked.variance += p * (1 - p);
      }
    }
  }
  CHECK(filter.rotations() > 20);
  return asked;
}

}  // namespace

TEST_CASE("a generation rotates before the key that it has no more room for", "[filter]") {
  RotatingBloomFilter filter = make(Layout::kSplit, 1000, 64);
  for (std::uint32_t i = 0; i < 10; ++i) CHECK(add(filter, i, 10) == Seen::kNew);
  CHECK(filter.rotations() == 0);
  CHECK(add(filter, 3, 10) == Seen::kCurrent);  // takes no room
  CHECK(filter.rotations() == 0);
  // Room for more has come in between: it goes on filling.
  CHECK(add(filter, 10, 11) == Seen::kNew);
  CHECK(filter.rotations() == 0);
  CHECK(add(filter, 11, 11) == Seen::kNew);
  CHECK(filter.rotations() == 1);
  CHECK(filter.current_insertions() == 1);
  // Less than what is in it: the next key is the first of another one, and what was in the older
  // one is new to that.
  CHECK(add(filter, 12, 10) == Seen::kNew);
  CHECK(add(filter, 13, 1) == Seen::kNew);
  CHECK(filter.rotations() == 2);
  CHECK(add(filter, 12, 0) == Seen::kOlder);  // at least one
  CHECK(filter.rotations() == 3);
  CHECK(filter.find(identify(kSeed, Key(0, 12).bytes())) == Seen::kCurrent);
  CHECK(filter.find(identify(kSeed, Key(0, 13).bytes())) == Seen::kOlder);
  CHECK_FALSE(filter.test(identify(kSeed, Key(0, 11).bytes())));
}

TEST_CASE("no generation takes more keys than its bits were planned for", "[filter]") {
  RotatingBloomFilter filter = make(Layout::kClassic, 500, 64);
  for (std::uint32_t i = 0; i < 500; ++i) add(filter, i, UINT64_MAX);
  CHECK(filter.current_insertions() == 500);
  CHECK(filter.rotations() == 0);
  add(filter, 500, UINT64_MAX);
  CHECK(filter.current_insertions() == 1);
  CHECK(filter.rotations() == 1);
}

TEST_CASE("with a changing capacity the pair remembers what two exact sets do", "[filter]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    // So many bits that no answer is false.
    RotatingBloomFilter filter = make(layout, 800, 512);
    Wandering capacity(800, 7);
    std::set<std::uint32_t> newer;
    std::set<std::uint32_t> older;
    bool equal = true;
    for (int n = 0; n < 30'000 && equal; ++n) {
      const auto key = static_cast<std::uint32_t>(capacity.below(1 + capacity.below(5000)));
      const std::uint64_t full = std::max<std::uint64_t>(1, capacity.next());
      const Seen expected = newer.contains(key)   ? Seen::kCurrent
                            : older.contains(key) ? Seen::kOlder
                                                  : Seen::kNew;
      if (expected != Seen::kCurrent && newer.size() >= full) {
        older = std::move(newer);
        newer.clear();
      }
      newer.insert(key);
      equal = add(filter, key, full) == expected && filter.current_insertions() == newer.size();
    }
    CHECK(equal);
    CHECK(filter.rotations() > 30);
  }
}

TEST_CASE("with a changing capacity every layout meets theory while it fills", "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    const Asked asked = ask_while_it_fills(
        layout, 3, [](const RotatingBloomFilter& filter) { return filter.fpr_theory(); });
    CHECK(asked.expected > 300);
    CHECK(std::abs(asked.deviation()) < kSigmas);
  }
}

TEST_CASE("with a changing capacity the shadow measures what theory expects", "[filter][theory]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    constexpr std::uint64_t kPlanned = 5000;
    RotatingBloomFilter filter = make(layout, kPlanned, 8, 1);
    Wandering capacity(kPlanned, 5);
    for (std::uint32_t n = 0; n < 150'000; ++n) add(filter, n, capacity.next());
    const MeasuredFpr measured = filter.statistics().measured;
    CHECK(measured.asked == 150'000);
    CHECK(measured.false_negatives == 0);
    const double p = measured.expected / static_cast<double>(measured.asked);
    CHECK(std::abs(testing::deviation(measured.false_positives, measured.asked, p)) < kSigmas);
  }
}

TEST_CASE("planted defect: theory of full generations, or of the newer one, fails the same check",
          "[filter][theory][long]") {
  for (const Layout layout : kLayouts) {
    CAPTURE(to_string(layout));
    // As if each generation were filled up to what was planned.
    const Asked full = ask_while_it_fills(layout, 3, [](const RotatingBloomFilter& filter) {
      const FilterParameters& parameters = filter.options().parameters;
      return ring_fpr({.shape = parameters.shape(),
                       .capacity = static_cast<double>(parameters.capacity),
                       .counting = Counting::kEffective},
                      static_cast<double>(filter.current_insertions()));
    });
    CHECK(std::abs(full.deviation()) > kSigmas);
    // As if nothing were left in the older one.
    const Asked newer = ask_while_it_fills(layout, 3, [](const RotatingBloomFilter& filter) {
      return filter.current_fpr_from_bits(UINT64_MAX);
    });
    CHECK(std::abs(newer.deviation()) > kSigmas);
  }
}

}  // namespace encore::filter
