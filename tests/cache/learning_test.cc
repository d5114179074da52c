// Properties that papers on learning policies report: the expert that they follow, the window.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "cache/cacheus.h"
#include "cache/hill_climber.h"
#include "cache/learning_rate.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

using Ids = std::vector<std::uint64_t>;

// Hits among the requests from `counted` on, and in each phase of so many requests.
std::vector<double> phase_hits(EvictionPolicy policy, std::uint64_t capacity, const Ids& ids,
                               std::size_t phase) {
  KernelOptions options = plain_options(capacity);
  options.eviction = policy;
  options.concurrent = false;
  const auto kernel = make_kernel(options);
  std::vector<double> hits(ids.size() / phase);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (kernel->lookup(key(ids[i]), at(0)).state != LookupState::kMiss) {
      hits[i / phase] += 1 / static_cast<double>(phase);
    } else {
      kernel->commit(key(ids[i]), {.charge_bytes = 1}, 0, at(0));
    }
  }
  return hits;
}

double all_hits(EvictionPolicy policy, std::uint64_t capacity, const Ids& ids) {
  return phase_hits(policy, capacity, ids, ids.size()).front();
}

// As figure 1 of LeCaR's paper: phases that suit LFU, popular objects among many that come once,
// and such that suit LRU, objects which are requested a few times and never again.
Ids phases(std::size_t phase) {
  std::mt19937_64 random(3);
  Ids ids;
  for (std::uint64_t number = 0; number < 6; ++number) {
    for (std::size_t i = 0; i < phase; ++i) {
      const std::uint64_t fresh = 1'000'000 * (number + 1) + i;
      if (number % 2 == 1) {
        ids.push_back(1'000'000 * (number + 1) + i / 4 -
                      std::min<std::uint64_t>(random() % 60, i / 4));
      } else {
        ids.push_back(random() % 2 == 0 ? random() % 80 : fresh);
      }
    }
  }
  return ids;
}

// Scans of objects that never come again, between requests for a set that the cache could hold.
Ids scans() {
  std::mt19937_64 random(4);
  Ids ids;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    const bool scan = i / 600 % 2 == 1;
    ids.push_back(scan ? 10'000 + i : random() % 180);
  }
  return ids;
}

// A new object, and one of the latest, by turns.
Ids recent(std::uint64_t latest) {
  std::mt19937_64 random(6);
  Ids ids;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    ids.push_back(i + latest);
    ids.push_back(i + latest - random() % latest);
  }
  return ids;
}

Ids loop(std::uint64_t objects) {
  Ids ids;
  for (std::uint64_t i = 0; i < 40'000; ++i) ids.push_back(i % objects);
  return ids;
}

}  // namespace

TEST_CASE("LeCaR follows the better of LRU and LFU, phase by phase", "[cache]") {
  constexpr std::size_t kPhase = 20'000;
  const Ids ids = phases(kPhase);
  const auto lru = phase_hits(EvictionPolicy::kLru, 100, ids, kPhase);
  const auto lfu = phase_hits(EvictionPolicy::kLfu, 100, ids, kPhase);
  const auto lecar = phase_hits(EvictionPolicy::kLecar, 100, ids, kPhase);
  for (std::size_t i = 1; i < lecar.size(); ++i) {
    INFO("phase " << i << ": LRU " << lru[i] << ", LFU " << lfu[i] << ", LeCaR " << lecar[i]);
    CHECK((i % 2 == 1 ? lru[i] > lfu[i] + 0.1 : lfu[i] > lru[i] + 0.1));
    CHECK(lecar[i] > 0.9 * std::max(lru[i], lfu[i]));
  }
}

TEST_CASE("CACHEUS resists scans and churn", "[cache]") {
  const Ids scanned = scans();
  const double lru = all_hits(EvictionPolicy::kLru, 200, scanned);
  const double cacheus = all_hits(EvictionPolicy::kCacheus, 200, scanned);
  INFO("scans: LRU " << lru << ", CACHEUS " << cacheus);
  CHECK(cacheus > lru + 0.05);
  CHECK(cacheus > 0.45);  // half of the requests are for what it can hold
  // If all are used equally often, LRU and LFU evict what comes next.
  const Ids churn = loop(300);
  CHECK(all_hits(EvictionPolicy::kLru, 200, churn) == 0);
  const double of_loop = all_hits(EvictionPolicy::kCacheus, 200, churn);
  INFO("loop: CACHEUS " << of_loop);
  CHECK(of_loop > 0.4);  // 0.67 is the cache's share
}

TEST_CASE("The window of adaptive W-TinyLFU widens where recency is all", "[cache]") {
  // As with corda, of which W-TinyLFU's window of a hundredth keeps little.
  const Ids latest = recent(150);
  const double fixed = all_hits(EvictionPolicy::kWTinyLfu, 500, latest);
  const double adaptive = all_hits(EvictionPolicy::kAdaptiveWTinyLfu, 500, latest);
  INFO("W-TinyLFU " << fixed << ", adaptive " << adaptive);
  CHECK(fixed < adaptive - 0.1);
  CHECK(adaptive > 0.3);  // 0.5 is for LRU
  // And it is narrow where frequency is all.
  const Ids churn = loop(700);
  const double of_loop = all_hits(EvictionPolicy::kAdaptiveWTinyLfu, 500, churn);
  INFO("loop: W-TinyLFU " << all_hits(EvictionPolicy::kWTinyLfu, 500, churn) << ", adaptive "
                          << of_loop);
  CHECK(of_loop > 0.9 * all_hits(EvictionPolicy::kWTinyLfu, 500, churn));
}

TEST_CASE("A hill climber goes on while hits rise, and turns where they fall", "[cache]") {
  HillClimber climber({.at = 0.2, .most = 0.31, .step = 0.1, .decay = 0.5, .restart = 0.5});
  CHECK(climber.next(0.1) == Approx(0.3));
  CHECK(climber.next(0.2) == Approx(0.31));  // no wider, and back from here
  CHECK(climber.next(0.3) == Approx(0.285));
  CHECK(climber.next(0.2) == Approx(0.2975));
  CHECK(climber.next(0.8) == Approx(0.30375));  // others now: the next step is the first one
  CHECK(climber.next(0.8) == Approx(0.31));
  CHECK(climber.next(0.7) == Approx(0.31));
  CHECK(climber.next(0.75) == Approx(0.285));
}

TEST_CASE("The learning rate of CACHEUS moves with its hits", "[cache]") {
  Draws draws;
  LearningRate rate;
  rate.begin(200);
  const double first = std::sqrt(2 * std::log(2.0) / 200);
  CHECK(rate.value() == Approx(first));
  rate.adapt(50, 100, draws);  // hits rose as the rate did
  const double risen = first + first * 0.083;
  CHECK(rate.value() == Approx(risen));
  rate.adapt(20, 100, draws);  // they fell as it rose
  CHECK(rate.value() == Approx(risen - risen * 0.007));
  // Nothing comes of ten periods: it begins anew.
  for (int i = 0; i < 20; ++i) rate.adapt(0, 100, draws);
  CHECK(rate.value() == Approx(first));
}

}  // namespace encore::cache::test
