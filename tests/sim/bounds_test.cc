// The offline bounds against the optimum by exhaustive search, and against every policy.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/bounds.h"
#include "sim/replay/occupancy.h"
#include "sim/replay/offline_bounds.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

using Requests = std::vector<ReplayRequest>;

enum class Sizes : std::uint8_t { kEqual, kDiffering, kChanging };

struct Shape {
  std::size_t requests = 0;
  std::uint64_t objects = 0;
  std::uint64_t size_max = 9;
};

// Every other request is for one of the first few objects.
Requests random_requests(std::mt19937_64& random, const Shape& shape, Sizes sizes) {
  ObjectTable table(ObjectSize::kLatest);
  Requests requests;
  while (requests.size() < shape.requests) {
    const std::uint64_t among = random() % 2 == 0 ? shape.objects : (shape.objects + 3) / 4;
    const std::uint64_t id = random() % among;
    const std::uint64_t varying = sizes == Sizes::kChanging ? random() : id;
    const std::uint64_t size = sizes == Sizes::kEqual ? 1 : 1 + varying * 7919 % shape.size_max;
    requests.push_back(table.number(
        {.key = filter::identify({}, std::to_string(id)).hash, .time_ns = 0, .size_bytes = size}));
  }
  std::vector<std::uint64_t> next(table.objects(), kNeverAgain);
  for (std::size_t i = requests.size(); i-- != 0;) {
    requests[i].next = std::exchange(next[requests[i].object], i);
  }
  return requests;
}

std::uint64_t gives(const ReplayRequest& request, BoundGoal goal) {
  return goal == BoundGoal::kObjects ? 1 : request.size_bytes;
}

// The most hits (or bytes hit) from the request `first_counted` on, over everything that a cache
// can do: after each request it keeps any of what it held and of what was asked for that has room.
std::uint64_t optimum(const Requests& requests, BoundGoal goal, std::uint64_t capacity,
                      std::uint64_t first_counted) {
  std::map<std::uint32_t, std::uint64_t> best = {{0U, 0U}};  // by the set of resident objects
  std::map<std::uint32_t, std::uint64_t> charges;            // by object, now
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint32_t asked = 1U << requests[i].object;
    charges[requests[i].object] = charge_of(requests[i]);
    std::map<std::uint32_t, std::uint64_t> after;
    for (const auto& [held, value] : best) {
      const bool hit = (held & asked) != 0;
      const std::uint64_t with =
          value + (hit && i >= first_counted ? gives(requests[i], goal) : 0U);
      const std::uint32_t all = held | asked;
      for (std::uint32_t kept = all;; kept = (kept - 1) & all) {
        std::uint64_t bytes = 0;
        for (const auto& [object, charge] : charges) {
          bytes += (kept >> object & 1U) != 0 ? charge : 0;
        }
        if (bytes <= capacity) {
          std::uint64_t& known = after[kept];
          known = std::max(known, with);
        }
        if (kept == 0) {
          break;
        }
      }
    }
    best = std::move(after);
  }
  return std::ranges::max_element(best, {}, [](const auto& one) { return one.second; })->second;
}

struct Bounded {
  std::uint64_t most = 0;      // PFOO-L: as many hits, or bytes, at most
  std::uint64_t achieved = 0;  // PFOO-U
};

Bounded bounds_of(const Requests& requests, BoundGoal goal, const cache::KernelOptions& cache,
                  std::uint64_t first_counted = 0) {
  ReuseFinder finder(cache, first_counted);
  PfooLower lower(goal);
  std::vector<ReuseInterval> intervals;
  for (const ReplayRequest& request : requests) {
    if (const auto interval = finder.next(request)) {
      lower.add(*interval);
      intervals.push_back(*interval);
    }
  }
  Monitor monitor;
  return {.most = lower.most(cache.capacity_bytes, finder.moments()),
          .achieved = pfoo_upper(intervals, goal, cache.capacity_bytes, monitor)};
}

cache::KernelOptions belady(std::uint64_t bytes) {
  return kernel(bytes, cache::EvictionPolicy::kBelady, cache::AdmissionPolicy::kAlways);
}

ReplayCounts replay_from(const Requests& requests, const cache::KernelOptions& cache,
                         std::uint64_t first_counted) {
  auto run = ReplayRun::create(
      {.kernel = cache, .warmup_requests = first_counted, .first_counted = first_counted});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  return (*run)->counts();
}

}  // namespace

TEST_CASE("Belady misses exactly as little as the optimum of equal sizes", "[sim][bounds]") {
  std::mt19937_64 random(3);
  std::uint64_t checked = 0;
  for (int i = 0; i < 400; ++i) {
    const Requests requests =
        random_requests(random, {.requests = 16, .objects = 2 + random() % 6}, Sizes::kEqual);
    const std::uint64_t capacity = 1 + random() % 4;
    const std::uint64_t first_counted = i % 2 == 0 ? 0 : random() % 12;
    const std::uint64_t best = optimum(requests, BoundGoal::kObjects, capacity, first_counted);
    REQUIRE(replay_from(requests, belady(capacity), first_counted).hits == best);
    checked += best != 0 ? 1U : 0U;
  }
  CHECK(checked > 300);
}

TEST_CASE("The optimum lies between PFOO-L and PFOO-U", "[sim][bounds]") {
  std::mt19937_64 random(5);
  const auto sizes = GENERATE(Sizes::kEqual, Sizes::kDiffering, Sizes::kChanging);
  const auto goal = GENERATE(BoundGoal::kObjects, BoundGoal::kBytes);
  std::uint64_t between = 0;
  std::uint64_t achieved = 0;
  std::uint64_t best_of_all = 0;
  for (int i = 0; i < 150; ++i) {
    const Requests requests =
        random_requests(random, {.requests = 16, .objects = 2 + random() % 6}, sizes);
    const std::uint64_t capacity = 1 + random() % (sizes == Sizes::kEqual ? 4 : 20);
    const std::uint64_t first_counted = i % 2 == 0 ? 0 : random() % 12;
    const std::uint64_t best = optimum(requests, goal, capacity, first_counted);
    const Bounded bounds = bounds_of(requests, goal, belady(capacity), first_counted);
    REQUIRE(bounds.achieved <= best);
    REQUIRE(bounds.most >= best);
    between += bounds.most > bounds.achieved ? 1U : 0U;
    achieved += bounds.achieved;
    best_of_all += best;
  }
  // Neither is trivially right: they differ at times, and the schedule is not far off.
  CHECK(between > 10);
  CHECK(between < 150);
  CHECK(achieved * 10 > best_of_all * 9);
}

TEST_CASE("No eviction with any admission misses less than the bounds say", "[sim][bounds]") {
  std::mt19937_64 random(7);
  const auto sizes = GENERATE(Sizes::kEqual, Sizes::kDiffering, Sizes::kChanging);
  const std::uint64_t capacity = GENERATE(1U, 12U, 150U);
  const Requests requests =
      random_requests(random, {.requests = 6000, .objects = 400, .size_max = 40}, sizes);
  const Bounded objects = bounds_of(requests, BoundGoal::kObjects, belady(capacity));
  const Bounded bytes = bounds_of(requests, BoundGoal::kBytes, belady(capacity));
  CHECK(objects.achieved <= objects.most);
  CHECK(bytes.achieved <= bytes.most);
  const std::uint64_t min_hits = replay(requests, belady(capacity)).hits;
  for (std::size_t e = 0; e < cache::kEvictionPolicyCount; ++e) {
    for (std::size_t a = 0; a < cache::kAdmissionPolicyCount; ++a) {
      auto options = kernel(capacity, static_cast<cache::EvictionPolicy>(e),
                            static_cast<cache::AdmissionPolicy>(a));
      options.admission.size_threshold_bytes = 10;
      const ReplayCounts counts = replay(requests, options);
      INFO(to_string(options.eviction)
           << ", " << to_string(options.admission.policy) << ", " << capacity << " bytes");
      REQUIRE(counts.hits <= objects.most);
      REQUIRE(counts.bytes_hit <= bytes.most);
      if (sizes == Sizes::kEqual) {
        REQUIRE(counts.hits <= min_hits);
      }
    }
  }
}

TEST_CASE("Objects above the largest that may be stored are not in the bounds", "[sim][bounds]") {
  std::mt19937_64 random(9);
  const Requests requests =
      random_requests(random, {.requests = 500, .objects = 20}, Sizes::kDiffering);
  cache::KernelOptions cache = belady(1000);
  cache.max_object_bytes = 4;
  cache.entry_overhead_bytes = 1;
  std::vector<bool> seen(20);
  std::uint64_t possible = 0;
  for (const ReplayRequest& request : requests) {
    possible += seen[request.object] && request.size_bytes <= 3 ? 1U : 0U;
    seen[request.object] = true;
  }
  const Bounded bounds = bounds_of(requests, BoundGoal::kObjects, cache);
  CHECK(bounds.most == possible);
  CHECK(bounds.achieved == possible);
  CHECK(replay(requests, cache).hits == possible);
}

TEST_CASE("Occupancy says what an array of sums does", "[sim][bounds]") {
  std::mt19937_64 random(11);
  const std::size_t moments = GENERATE(1U, 63U, 64U, 65U, 5000U);
  Occupancy occupancy(moments);
  std::vector<std::uint64_t> sums(moments);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t from = random() % moments;
    const std::size_t to = from + 1 + random() % (moments - from);
    const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = sums.begin() + static_cast<std::ptrdiff_t>(to);
    const std::uint64_t largest = *std::max_element(begin, end);
    REQUIRE(occupancy.is_below({from, to}, largest));
    REQUIRE((largest == 0 || !occupancy.is_below({from, to}, largest - 1)));
    const std::uint64_t bytes = random() % 1000;
    occupancy.add({from, to}, bytes);
    std::for_each(begin, end, [&](std::uint64_t& sum) { sum += bytes; });
  }
}

TEST_CASE("replay --bounds shows what it was asked for, and refuses what it is not",
          "[sim][bounds]") {
  const Directory directory;
  const std::string trace = directory.at("trace.csv");
  REQUIRE(
      run("generate zipf --requests 5000 --objects 500 --size pareto:10:1.5:1000 --no-timing -o " +
          trace)
          .exit_code == 0);
  const std::string replay = "replay " + trace +
                             " --cache-size 1%,10% --eviction belady --admission "
                             "always --no-timing ";
  const Ran both = run(replay + "--bounds");
  CHECK(both.exit_code == 0);
  CHECK(both.out.find("PFOO-L    PFOO-U") != std::string::npos);
  CHECK(both.out.find("PFOO-L: no policy has a lower miss ratio") != std::string::npos);
  const Ran lower = run(replay + "--bounds=pfoo-l");
  CHECK(lower.out.find("PFOO-L") != std::string::npos);
  CHECK(lower.out.find("PFOO-U") == std::string::npos);
  CHECK(run(replay).out.find("PFOO") == std::string::npos);
  check_refused(run(replay + "--bounds=pfoo-x"),
                "--bounds \"pfoo-x\", accepted: all, pfoo-l, pfoo-u");
  check_refused(run(replay + "--bounds --sample 0.5"), "--bounds cannot be combined with a sample");
}

TEST_CASE("Bounds that an interrupt ended are not shown", "[sim][bounds]") {
  std::mt19937_64 random(13);
  const Requests requests =
      random_requests(random, {.requests = 20000, .objects = 400}, Sizes::kDiffering);
  auto spool = RequestSpool::create();
  REQUIRE(spool);
  LoadedTrace trace{.objects = ObjectTable(),
                    .requests = std::move(*spool),
                    .sample = cache::SpatialSample({}),
                    .marks = {}};
  for (const ReplayRequest& request : requests) {
    trace.objects.number({.key = request.key, .time_ns = 0, .size_bytes = request.size_bytes});
  }
  REQUIRE(trace.requests.append(requests));
  const std::vector<PlannedRun> plan = {{.options = {.kernel = belady(100)}}};
  Monitor monitor;
  const auto whole = run_bounds(trace, plan, {.lower = true, .upper = true}, 0, monitor);
  REQUIRE(whole);
  REQUIRE(whole->size() == 2);
  CHECK(monitor.done == monitor.total);
  CHECK((*whole)[0].lower.has_value());
  CHECK((*whole)[0].upper.has_value());
  monitor.stop = true;
  const auto stopped = run_bounds(trace, plan, {.lower = true, .upper = true}, 0, monitor);
  REQUIRE(stopped);
  CHECK(monitor.done < monitor.total / 2);
  for (const Bounds& one : *stopped) {
    CHECK_FALSE(one.lower.has_value());
    CHECK_FALSE(one.upper.has_value());
  }
}

}  // namespace encore::sim
