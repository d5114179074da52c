// Objects that appear again with another size: what they are charged, and what leaves for it.
#include <algorithm>
#include <iterator>
#include <list>
#include <vector>

#include "sim/replay/lru_curve.h"
#include "sim/replay/replay_run.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {

namespace {

// Requests for 60 objects whose sizes differ from one to the next.
std::vector<ReplayRequest> changing_sizes(ObjectSize rule, std::uint32_t ttl_seconds) {
  ObjectTable table(rule);
  std::vector<ReplayRequest> requests;
  std::uint64_t random = 1;
  for (int i = 0; i < 20000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t draw = random >> 33U;
    const std::string key = std::to_string(std::min(draw % 60, draw / 60 % 60));
    requests.push_back(table.number({.key = filter::identify({}, key).hash,
                                     .time_ns = i * 1'000'000'000LL,
                                     .size_bytes = 1 + draw / 3600 % (i < 10000 ? 60 : 100),
                                     .ttl_seconds = ttl_seconds}));
  }
  return requests;
}

struct Step {
  bool hit;
  std::uint64_t used_bytes;
  std::uint64_t objects;
  friend bool operator==(const Step&, const Step&) = default;
};

// LRU or FIFO as on a blackboard, the newest first. With a TTL of 0 every hit is a validation.
std::vector<Step> naive(const std::vector<ReplayRequest>& requests, std::uint64_t capacity,
                        bool move_on_hit) {
  struct Entry {
    std::uint32_t object;
    std::uint64_t bytes;
  };
  std::list<Entry> order;
  std::uint64_t used = 0;
  const auto evict_for = [&](std::uint64_t bytes) {
    while (used + bytes > capacity) {
      used -= order.back().bytes;
      order.pop_back();
    }
  };
  const auto find = [&](std::uint32_t object) {
    return std::ranges::find(order, object, &Entry::object);
  };
  std::vector<Step> steps;
  for (const ReplayRequest& request : requests) {
    const std::uint64_t bytes = request.object_bytes;
    auto at = find(request.object);
    const bool resident = at != order.end();
    if (resident && move_on_hit) {
      order.splice(order.begin(), order, at);
    }
    if (resident && bytes > capacity) {
      used -= at->bytes;
      order.erase(at);
    } else if (resident) {
      // Once it has gone itself, nothing more has to go for it.
      const std::uint64_t grown = bytes > at->bytes ? bytes - at->bytes : 0;
      while (used + grown > capacity && find(request.object) != order.end()) {
        used -= order.back().bytes;
        order.pop_back();
      }
      at = find(request.object);
      if (at != order.end()) {
        used += bytes - at->bytes;
        at->bytes = bytes;
      }
    } else if (bytes <= capacity) {
      evict_for(bytes);
      order.push_front({request.object, bytes});
      used += bytes;
    }
    steps.push_back({resident && request.ttl_seconds != 0, used, order.size()});
  }
  return steps;
}

std::vector<Step> replayed(const std::vector<ReplayRequest>& requests, std::uint64_t capacity,
                           cache::EvictionPolicy eviction) {
  auto run =
      ReplayRun::create({.kernel = kernel(capacity, eviction, cache::AdmissionPolicy::kAlways),
                         .interval_requests = 1});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  std::vector<Step> steps;
  for (const ReplayInterval& interval : (*run)->intervals()) {
    steps.push_back({interval.counts.hits == 1, interval.used_bytes, interval.resident_objects});
  }
  return steps;
}

}  // namespace

TEST_CASE("What an object is charged follows its size, request by request", "[sim][replay]") {
  for (const ObjectSize rule : {ObjectSize::kLargest, ObjectSize::kLatest}) {
    for (const std::uint32_t ttl : {kNoTtl, 0U, 100U * 86400}) {
      const auto requests = changing_sizes(rule, ttl);
      // In the smallest some objects become too large.
      for (const std::uint64_t capacity : {70U, 500U, 1500U, 3000U}) {
        CAPTURE(static_cast<int>(rule), ttl, capacity);
        CHECK(replayed(requests, capacity, cache::EvictionPolicy::kLru) ==
              naive(requests, capacity, true));
        CHECK(replayed(requests, capacity, cache::EvictionPolicy::kFifo) ==
              naive(requests, capacity, false));
      }
    }
  }
}

TEST_CASE("What grows and goes first takes nothing with it", "[sim][replay]") {
  const Directory directory;
  const std::string trace = directory.write("t.csv", "1,a,1\n2,b,9\n3,a,5\n4,b,9\n");
  const Ran ran =
      run("replay --json --no-timing --cache-size 10 --eviction fifo --admission always " + trace);
  CHECK(ran.out.find("\"hits\": 2,") != std::string::npos);
  CHECK(ran.out.find("\"evictions\": 1,") != std::string::npos);
}

TEST_CASE("No order of eviction holds more than its capacity where sizes change", "[sim][replay]") {
  const auto requests = changing_sizes(ObjectSize::kLatest, kNoTtl);
  for (const std::string_view name : cache::kEvictionNames) {
    const auto policy = cache::parse_eviction(name);
    REQUIRE(policy);
    CAPTURE(name);
    for (const Step& step : replayed(requests, 500, *policy)) {
      REQUIRE(step.used_bytes <= 500);
    }
  }
}

TEST_CASE("GDSF sees the size that an object has now", "[sim][replay]") {
  // b and c are small; a was, and has been asked for more often, but has become large.
  ObjectTable table;
  std::vector<ReplayRequest> requests;
  const auto ask = [&](const std::string& key, std::uint64_t bytes) {
    requests.push_back(table.number({.key = filter::identify({}, key).hash, .size_bytes = bytes}));
  };
  ask("a", 10);
  ask("b", 10);
  ask("c", 10);
  ask("a", 900);
  ask("d", 100);  // a goes for it
  ask("b", 10);
  ask("c", 10);
  ask("a", 900);
  const auto steps = replayed(requests, 1000, cache::EvictionPolicy::kGdsf);
  std::vector<bool> hits;
  std::ranges::transform(steps, std::back_inserter(hits), &Step::hit);
  CHECK(hits == std::vector<bool>{false, false, false, true, false, true, true, false});
}

TEST_CASE("The curve of LRU is exact where objects grow", "[sim][sample]") {
  const auto requests = changing_sizes(ObjectSize::kLargest, kNoTtl);
  const std::vector<std::uint64_t> sizes = {100, 200, 500, 1000, 2000, 4000};
  LruCurve curve({.cache_bytes = sizes});
  curve.end_warmup();
  curve.feed(requests);
  const std::vector<ReplayCounts> counts = curve.counts();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const ReplayCounts full = replay(
        requests, kernel(sizes[i], cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways));
    CAPTURE(sizes[i]);
    CHECK(counts[i].hits == full.hits);
    CHECK(counts[i].bytes_hit == full.bytes_hit);
  }
}

TEST_CASE("Streamed or held, changing sizes give the same figures, by either rule",
          "[sim][replay]") {
  const Directory directory;
  std::string csv = "time,key,size\n";
  const auto requests = changing_sizes(ObjectSize::kLargest, kNoTtl);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    csv += std::to_string(i) + "," + std::to_string(requests[i].object) + "," +
           std::to_string(requests[i].size_bytes) + "\n";
  }
  const std::string lru = "replay " + directory.write("t.csv", csv) +
                          " --cache-size 500 --overhead 0 --admission always --no-timing" +
                          " --eviction lru --object-size ";
  for (const std::string rule : {"largest", "latest"}) {
    const Ran streamed = run(lru + rule);
    REQUIRE(streamed.exit_code == 0);
    CHECK(streamed.out == run(lru + rule + " --hold").out);
  }
  CHECK(run(lru + "largest").out != run(lru + "latest").out);
  check_refused(run(lru + "smallest"), "accepted: largest, latest");
}

}  // namespace encore::sim
