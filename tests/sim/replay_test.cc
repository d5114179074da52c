// The replay against naive models, and what it says of real traces.
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/replay/replay_run.h"
#include "sim/workload/request_generator.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {

namespace {

void link_next(std::vector<ReplayRequest>& requests, std::size_t objects) {
  std::vector<std::uint64_t> next(objects, kNeverAgain);
  for (std::size_t i = requests.size(); i != 0; --i) {
    ReplayRequest& request = requests[i - 1];
    request.next = std::exchange(next[request.object], i - 1);
  }
}

std::vector<ReplayRequest> zipf_requests(std::uint64_t count, std::uint64_t objects) {
  auto generator =
      make_generator({.requests = count, .objects = objects, .alpha = 0.8, .mixture = {}});
  REQUIRE(generator);
  ObjectTable table;
  std::vector<ReplayRequest> requests;
  GeneratedRequest made;
  while ((*generator)->next(made)) {
    const std::string key = std::to_string(made.id);
    requests.push_back(table.number(
        {.key = filter::identify({}, key).hash, .time_ns = made.time_ns, .size_bytes = 1}));
  }
  link_next(requests, table.objects());
  return requests;
}

// A cache as one would write it on a blackboard: newest first. `move_on_hit`: LRU, else FIFO.
std::uint64_t naive_hits(const std::vector<ReplayRequest>& requests, std::size_t capacity,
                         bool move_on_hit) {
  std::list<std::uint32_t> order;
  std::uint64_t hits = 0;
  for (const ReplayRequest& request : requests) {
    const auto at = std::find(order.begin(), order.end(), request.object);
    if (at != order.end()) {
      ++hits;
      if (move_on_hit) {
        order.splice(order.begin(), order, at);
      }
      continue;
    }
    if (order.size() == capacity) {
      order.pop_back();
    }
    order.push_front(request.object);
  }
  return hits;
}

// Second-hit on two exact sets that rotate, with refresh, before a naive LRU.
std::uint64_t naive_second_hit(const std::vector<ReplayRequest>& requests, std::size_t capacity,
                               std::size_t generation) {
  std::list<std::uint32_t> order;
  std::set<std::uint32_t> current;
  std::set<std::uint32_t> older;
  std::uint64_t hits = 0;
  for (const ReplayRequest& request : requests) {
    const auto at = std::find(order.begin(), order.end(), request.object);
    if (at != order.end()) {
      ++hits;
      order.splice(order.begin(), order, at);
      continue;
    }
    const bool known = current.contains(request.object) || older.contains(request.object);
    if (current.insert(request.object).second && current.size() == generation) {
      older = std::move(current);
      current.clear();
    }
    if (known) {
      if (order.size() == capacity) {
        order.pop_back();
      }
      order.push_front(request.object);
    }
  }
  return hits;
}

struct Resident {
  std::uint32_t object;
  std::uint64_t rank;  // lowest goes first
  std::uint64_t since;
};

// A cache that gives every resident a rank at each use, and evicts the lowest, the one that got it
// first among equals. `rank` receives the request and the rank before (0: it is new). With bypass a
// newcomer that would rank lowest, or 0, is not admitted.
enum class Bypass : std::uint8_t { kNo, kYes };
template <typename Rank>
std::uint64_t naive_ranked(const std::vector<ReplayRequest>& requests, std::size_t capacity,
                           Bypass bypass, Rank rank) {
  std::vector<Resident> residents;
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto at = std::ranges::find(residents, requests[i].object, &Resident::object);
    if (at != residents.end()) {
      ++hits;
      at->rank = rank(requests[i], at->rank);
      at->since = i;
      continue;
    }
    const std::uint64_t own = rank(requests[i], 0);
    if (bypass == Bypass::kYes && own == 0) {
      continue;
    }
    if (residents.size() == capacity) {
      const auto lowest = std::ranges::min_element(residents, [](const auto& a, const auto& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.since < b.since;
      });
      if (bypass == Bypass::kYes && own <= lowest->rank) {
        continue;
      }
      residents.erase(lowest);
    }
    residents.push_back({requests[i].object, own, i});
  }
  return hits;
}

// Two lists, newest first; the protected one holds four fifths.
std::uint64_t naive_slru(const std::vector<ReplayRequest>& requests, std::size_t capacity) {
  std::deque<std::uint32_t> probation;
  std::deque<std::uint32_t> safe;
  std::uint64_t hits = 0;
  for (const ReplayRequest& request : requests) {
    const auto in_safe = std::ranges::find(safe, request.object);
    const auto on_probation = std::ranges::find(probation, request.object);
    if (in_safe == safe.end() && on_probation == probation.end()) {
      if (probation.size() + safe.size() == capacity) {
        (probation.empty() ? safe : probation).pop_back();
      }
      probation.push_front(request.object);
      continue;
    }
    ++hits;
    if (in_safe != safe.end()) {
      safe.erase(in_safe);
    } else {
      probation.erase(on_probation);
    }
    safe.push_front(request.object);
    if (safe.size() * 5 > (safe.size() + probation.size()) * 4) {
      probation.push_front(safe.back());
      safe.pop_back();
    }
  }
  return hits;
}

}  // namespace

TEST_CASE("LFU, SLRU and Belady hit as naive models do", "[sim][replay]") {
  const auto requests = zipf_requests(10000, 1000);
  for (const std::size_t capacity : {1U, 10U, 100U}) {
    const auto hits = [&](cache::EvictionPolicy policy) {
      return replay(requests, kernel(capacity, policy, cache::AdmissionPolicy::kAlways)).hits;
    };
    CHECK(hits(cache::EvictionPolicy::kLfu) ==
          naive_ranked(requests, capacity, Bypass::kNo,
                       [](const ReplayRequest&, std::uint64_t rank) { return rank + 1; }));
    // Distances count down from the far end; what is never used again is all alike.
    CHECK(hits(cache::EvictionPolicy::kBelady) ==
          naive_ranked(requests, capacity, Bypass::kYes,
                       [](const ReplayRequest& request, std::uint64_t) {
                         return UINT64_MAX - request.next;
                       }));
    CHECK(hits(cache::EvictionPolicy::kSlru) == naive_slru(requests, capacity));
  }
}

TEST_CASE("No eviction policy beats Belady, and all keep the cache full", "[sim][replay]") {
  const auto requests = zipf_requests(30000, 3000);
  const auto best =
      replay(requests, kernel(300, cache::EvictionPolicy::kBelady, cache::AdmissionPolicy::kAlways))
          .hits;
  const auto worst =
      replay(requests, kernel(300, cache::EvictionPolicy::kFifo, cache::AdmissionPolicy::kAlways))
          .hits;
  for (std::size_t i = 0; i < cache::kEvictionPolicyCount; ++i) {
    const auto policy = static_cast<cache::EvictionPolicy>(i);
    INFO(to_string(policy));
    auto run = ReplayRun::create({.kernel = kernel(300, policy, cache::AdmissionPolicy::kAlways)});
    REQUIRE(run);
    (*run)->feed(requests);
    (*run)->finish();
    CHECK((*run)->counts().hits <= best);
    if (policy == cache::EvictionPolicy::kRandom) {
      // Gelenbe (1973): with independent requests it hits as often as FIFO.
      CHECK(static_cast<double>((*run)->counts().hits) ==
            Approx(static_cast<double>(worst)).epsilon(0.02));
    } else {
      CHECK((*run)->counts().hits >= worst);
    }
    CHECK((*run)->kernel().objects == 300);
    // Belady alone does not store every miss.
    const std::uint64_t misses = requests.size() - (*run)->counts().hits;
    CHECK(((*run)->counts().objects_written == misses) ==
          (policy != cache::EvictionPolicy::kBelady));
    CHECK((*run)->counts().objects_written <= misses);
  }
}

TEST_CASE("LRU and FIFO hit as a naive model does", "[sim][replay]") {
  const auto requests = zipf_requests(20000, 2000);
  for (const std::size_t capacity : {1U, 10U, 200U}) {
    CHECK(replay(requests,
                 kernel(capacity, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways))
              .hits == naive_hits(requests, capacity, true));
    CHECK(replay(requests,
                 kernel(capacity, cache::EvictionPolicy::kFifo, cache::AdmissionPolicy::kAlways))
              .hits == naive_hits(requests, capacity, false));
  }
}

TEST_CASE("Exact second-hit admission hits as a naive model does", "[sim][replay]") {
  const auto requests = zipf_requests(20000, 2000);
  const auto counts = replay(
      requests, kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kExactSecondHit));
  CHECK(counts.hits == naive_second_hit(requests, 100, 1000));
  // So large a filter makes no false positives here: the same decisions.
  const auto filtered = replay(
      requests, kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kSecondHit));
  CHECK(filtered.hits == counts.hits);
  CHECK(filtered.bytes_written == counts.bytes_written);
}

TEST_CASE("Nothing is written under never, all misses under always", "[sim][replay]") {
  const auto requests = zipf_requests(5000, 500);
  const auto never =
      replay(requests, kernel(50, cache::EvictionPolicy::kSieve, cache::AdmissionPolicy::kNever));
  CHECK(never.hits == 0);
  CHECK(never.objects_written == 0);
  CHECK(never.bytes_from_origin == 5000);
  const auto always =
      replay(requests, kernel(50, cache::EvictionPolicy::kSieve, cache::AdmissionPolicy::kAlways));
  CHECK(always.hits + always.objects_written == 5000);
  CHECK(always.bytes_rewritten < always.bytes_written);
}

TEST_CASE("A TTL makes an object stale at its end, and validation makes it fresh again",
          "[sim][replay]") {
  const auto at = [](std::int64_t seconds) {
    return ReplayRequest{.key = filter::identify({}, "a").hash,
                         .time_ns = seconds * 1'000'000'000,
                         .size_bytes = 10,
                         .ttl_seconds = 60};
  };
  const auto counts =
      replay({at(1), at(60), at(61), at(120), at(121)},
             kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways));
  CHECK(counts.hits == 2);         // 60 and 120
  CHECK(counts.validations == 2);  // 61 and 121
  CHECK(counts.bytes_from_origin == 10);
}

TEST_CASE("An object takes the largest size seen of it so far", "[sim][replay]") {
  ObjectTable table;
  const auto asked = [&](const char* key, std::uint64_t bytes) {
    return table.number({.key = filter::identify({}, key).hash, .size_bytes = bytes});
  };
  // The 304 of "a" (no bytes) comes when "b" has driven it out: it is fetched whole again.
  const auto counts =
      replay({asked("a", 80), asked("b", 90), asked("a", 0)},
             kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways));
  CHECK(counts.bytes_written == 80 + 90 + 80);
  CHECK(counts.bytes_rewritten == 80);
  CHECK(counts.bytes_requested == 170);
}

TEST_CASE("A warm-up is not counted, intervals add up to what is", "[sim][replay]") {
  const auto requests = zipf_requests(10000, 1000);
  auto run = ReplayRun::create(
      {.kernel = kernel(100, cache::EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways),
       .warmup_requests = 2500,
       .interval_requests = 3000});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  CHECK((*run)->counts().requests == 7500);
  REQUIRE((*run)->intervals().size() == 4);
  std::uint64_t hits = 0;
  for (const ReplayInterval& interval : (*run)->intervals()) {
    hits += interval.counts.hits;
  }
  CHECK(hits == (*run)->counts().hits);
  CHECK((*run)->intervals()[3].from_request == 9000);
}

TEST_CASE("Each figure of a run is of the requests after the warm-up", "[sim][replay]") {
  // The counts after a warm-up are those of the whole run less those of the warm-up.
  constexpr std::size_t kWarm = 6000;
  const auto requests = zipf_requests(10000, 3000);
  for (const cache::AdmissionPolicy policy :
       {cache::AdmissionPolicy::kAlways, cache::AdmissionPolicy::kSecondHit,
        cache::AdmissionPolicy::kExactSecondHit, cache::AdmissionPolicy::kNthHit,
        cache::AdmissionPolicy::kTinyLfu, cache::AdmissionPolicy::kAdaptSize}) {
    CAPTURE(to_string(policy));
    cache::KernelOptions options = kernel(200, cache::EvictionPolicy::kLru, policy);
    options.admission.filter.capacity = 500;
    options.admission.filter.bits = 4096;
    options.admission.filter.hashes = 2;
    options.admission.filter.layout = filter::Layout::kClassic;
    options.admission.shadow_one_in = 1;
    const auto run_of = [&](std::size_t count, std::uint64_t warmup) {
      auto run = ReplayRun::create(
          {.kernel = options, .warmup_requests = warmup, .interval_requests = 1000});
      REQUIRE(run);
      (*run)->feed(std::span(requests).first(count));
      (*run)->finish();
      return std::move(*run);
    };
    const auto all = run_of(requests.size(), 0);
    const auto warm = run_of(kWarm, 0);
    const auto counted = run_of(requests.size(), kWarm);
#define ENCORE_COMPARE(id, meaning) \
  CHECK(counted->kernel().counters.id == all->kernel().counters.id - warm->kernel().counters.id);
    ENCORE_KERNEL_COUNTERS(ENCORE_COMPARE)
#undef ENCORE_COMPARE
    const auto more = [&](auto member) {
      return std::invoke(member, all->admission()) - std::invoke(member, warm->admission());
    };
    CHECK(counted->admission().rotations == more(&cache::AdmissionStatistics::rotations));
    CHECK(counted->admission().refreshes == more(&cache::AdmissionStatistics::refreshes));
    const filter::MeasuredFpr measured = counted->admission().measured;
    CHECK(measured.asked == all->admission().measured.asked - warm->admission().measured.asked);
    CHECK(measured.false_positives ==
          all->admission().measured.false_positives - warm->admission().measured.false_positives);
    CHECK(std::abs(measured.expected - (all->admission().measured.expected -
                                        warm->admission().measured.expected)) < 1e-9);
    // The contents at the end are the same.
    CHECK(counted->kernel().objects == all->kernel().objects);
    CHECK(counted->intervals().back().rotations == counted->admission().rotations);
    CHECK(counted->intervals()[2].rotations == 0);
  }
}

TEST_CASE("Evictions, false admissions and one-hit objects of a warm-up do not count",
          "[sim][replay]") {
  const Directory directory;
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    lines += std::to_string(i) + ",k" + std::to_string(i) + ",10\n";
  }
  const std::string ten = directory.write("ten.csv", lines);
  for (const char* how : {"", " --hold"}) {
    const Ran ran =
        run("replay --json --no-timing --cache-size 10 --warmup 9 --admission always " + ten + how);
    CHECK(ran.out.find("\"evictions\": 1,") != std::string::npos);
    CHECK(ran.out.find("\"one_hit_let_in\": 1,") != std::string::npos);
    const Ran none = run(
        "replay --json --no-timing --cache-size 10 --warmup 9 --admission second-hit " + ten + how);
    CHECK(none.out.find("\"one_hit_kept_out\": 1,") != std::string::npos);
    CHECK(none.out.find("\"evictions\": 0,") != std::string::npos);
  }
}

TEST_CASE("Streamed or held, on one thread or two, a replay says the same", "[sim][replay]") {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("encore_replay_" + std::to_string(::getpid()) + ".csv"))
                               .string();
  REQUIRE(run("generate akamai --requests 50000 --size lognormal:1000:1 -o " + path).exit_code ==
          0);
  const std::string line = "replay " + path +
                           " --cache-size 1MiB,4MiB --eviction lru,sieve --capacity 5000 "
                           "--interval 20000 --json --no-timing";
  const Ran streamed = run(line);
  CHECK(streamed.exit_code == 0);
  CHECK(streamed.out == run(line + " --hold").out);
  CHECK(streamed.out == run(line + " --threads 1").out);
  const Ran percent = run("replay " + path + " --cache-size 10% --warmup 20% --json --no-timing");
  CHECK(percent.exit_code == 0);
  CHECK(percent.out.find("\"requests\": 40000,") != std::string::npos);
  for (const char* bad :
       {"--cache-size 0", "--cache-size x", "--cache-size 0%", "--eviction best",
        "--admission some", "--fpr 2", "--shards 3", "--warmup 100%",
        "--layout split --hashes 3 --bits 1000", "--format none", "--format int64", "--columns key",
        "--rotate-after 5", "--capacity 0", "--bits 4398046511105"}) {
    INFO(bad);
    const Ran refused = run("replay " + path + " " + bad);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
  }
  CHECK(run("replay /nonexistent").exit_code == 2);
  std::filesystem::remove(path);
}

TEST_CASE("The mean latency is that of the misses, of their bytes and of the disk",
          "[sim][replay]") {
  const Directory directory;
  std::string text = "key,size\n";
  for (int i = 0; i < 3000; ++i) text += "k" + std::to_string(i * i % 97) + ",1000\n";
  const std::string trace = directory.write("t.csv", text);
  const auto row_of = [&](const std::string& options) {
    const Ran ran =
        run("replay " + trace + " --cache-size 20KiB --admission always --json" + options);
    REQUIRE(ran.exit_code == 0);
    return nlohmann::json::parse(ran.out)["rows"][0];
  };
  const auto plain = row_of("");
  CHECK_FALSE(plain.contains("mean_latency_ms"));
  const double requests = plain["requests"];
  const double misses = requests - plain["hits"].get<double>();
  CHECK(row_of(" --miss-latency 50ms")["mean_latency_ms"].get<double>() ==
        Approx(50 * misses / requests));
  CHECK(row_of(" --bandwidth 1000000")["mean_latency_ms"].get<double>() ==
        Approx(plain["bytes_from_origin"].get<double>() / 1000 / requests));
  const auto disk = row_of(" --disk-size 64MiB --disk-segment 1MiB --disk-latency 2ms");
  const Ran ran = run("replay " + trace + " --cache-size 20KiB --admission always --json" +
                      " --disk-size 64MiB --disk-segment 1MiB");
  const double disk_hits = nlohmann::json::parse(ran.out)["disk"][0]["disk_hits"];
  CHECK(disk_hits > 0);
  CHECK(disk["mean_latency_ms"].get<double>() == Approx(2 * disk_hits / requests));
  check_refused(run("replay " + trace + " --miss-latency 5"), "--miss-latency");
}

}  // namespace encore::sim
