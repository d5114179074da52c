// Fleets against a naive model: maps and sets for caches and memories without end, a ring as a map.
#include "sim/replay/fleet.h"

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/cli/program.h"
#include "sim/replay/replay_run.h"
#include "tests/catch.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kEndless = 1ULL << 40U;

// Popularity falls with the number; some objects come once.
std::vector<ReplayRequest> fleet_trace(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  ObjectTable table;
  std::vector<ReplayRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(random() >> 11U) * 0x1p-53;
    const auto popular = static_cast<std::uint64_t>(std::pow(300.0, unit));
    const std::uint64_t id = random() % 4 == 0 ? 1000 + i : popular;
    const std::string key = std::to_string(id);
    requests.push_back(table.number({.key = filter::identify({}, key).hash,
                                     .time_ns = static_cast<std::int64_t>(i) * 1'000'000'000,
                                     .size_bytes = 1 + id % 7}));
  }
  return requests;
}

// Consistent hashing from its definition: the next point clockwise, of servers that may take one
// more.
class NaiveRing {
 public:
  NaiveRing(const std::string& name, std::uint32_t servers) {
    for (std::uint32_t i = 0; i < servers; ++i) {
      for (int point = 0; point < 160; ++point) {
        const std::string text = name + "-" + std::to_string(i) + "#" + std::to_string(point);
        points_[filter::hash_key(filter::HashFamily::kXxh3, {}, text).lo] = i;
      }
    }
  }
  template <typename MayTake>
  std::uint32_t find(const ReplayRequest& request, MayTake may_take) const {
    auto at = points_.lower_bound(filter::remix(request.key) << 24U);
    while (true) {
      if (at == points_.end()) at = points_.begin();
      if (may_take(at->second)) return at->second;
      ++at;
    }
  }
  std::uint32_t owner(const ReplayRequest& request) const {
    return find(request, [](std::uint32_t) { return true; });
  }

 private:
  std::map<std::uint64_t, std::uint32_t> points_;
};

struct NaiveNode {
  std::map<std::uint32_t, std::uint64_t> stored;  // size by object
  std::set<std::uint32_t> remembered;
};

class NaiveFleet {
 public:
  explicit NaiveFleet(const FleetOptions& options)
      : options_(options),
        ring_("node", options.front.nodes),
        parent_ring_("parent", options.parents),
        draws_(options.front.seed),
        nodes_(options.front.nodes),
        parents_(options.parents) {}

  ReplayOutcome ask(const ReplayRequest& request) {
    NaiveNode& node = nodes_[choose(request)];
    ++counts.requests;
    if (node.stored.contains(request.object)) {
      ++counts.hits;
      return ReplayOutcome::kHit;
    }
    const bool parent_knows = ask_parent(request);
    auto& memory = options_.memory == FleetMemory::kShared ? shared_ : node.remembered;
    const bool is_hinted = options_.memory == FleetMemory::kHint && parent_knows;
    if (memory.insert(request.object).second && !is_hinted) {
      return ReplayOutcome::kFirstRequest;
    }
    store(node, request);
    return ReplayOutcome::kSecondRequest;
  }
  ReplayCounts counts;

 private:
  std::uint32_t choose(const ReplayRequest& request) {
    const std::uint32_t nodes = options_.front.nodes;
    if (options_.front.balance == NodeChoice::kRandom) {
      return static_cast<std::uint32_t>(draws_.below(nodes));
    }
    if (options_.front.balance == NodeChoice::kHash) {
      return ring_.owner(request);
    }
    if (in_progress_.size() == std::size_t{options_.front.load} * nodes) {
      in_progress_.pop_front();
    }
    const double bound = std::ceil(options_.front.load_percent / 100.0 *
                                       static_cast<double>(in_progress_.size() + 1) / nodes -
                                   1e-9);
    const std::uint32_t node = ring_.find(request, [&](std::uint32_t server) {
      return static_cast<double>(std::ranges::count(in_progress_, server)) < bound;
    });
    in_progress_.push_back(node);
    return node;
  }
  bool ask_parent(const ReplayRequest& request) {
    if (parents_.empty()) {
      counts.bytes_from_origin += request.size_bytes;
      return false;
    }
    NaiveNode& parent = parents_[parent_ring_.owner(request)];
    if (parent.stored.contains(request.object)) {
      ++counts.hits;
      return true;
    }
    counts.bytes_from_origin += request.size_bytes;
    if (parent.remembered.insert(request.object).second) {
      return false;
    }
    store(parent, request);
    return true;
  }
  void store(NaiveNode& node, const ReplayRequest& request) {
    node.stored[request.object] = request.size_bytes;
    ++counts.objects_written;
    counts.bytes_written += request.size_bytes;
  }

  FleetOptions options_;
  NaiveRing ring_;
  NaiveRing parent_ring_;
  cache::Draws draws_;
  std::vector<NaiveNode> nodes_;
  std::vector<NaiveNode> parents_;
  std::set<std::uint32_t> shared_;
  std::deque<std::uint32_t> in_progress_;
};

ReplayOptions fleet_replay(const FleetOptions& fleet, cache::AdmissionPolicy admission) {
  ReplayOptions options{.kernel = kernel(kEndless, cache::EvictionPolicy::kLru, admission),
                        .fleet = fleet};
  options.kernel.admission.filter.capacity = 20000;
  return options;
}

// Every choice with every memory, in one tier and in two, as far as there are such.
std::vector<FleetOptions> all_fleets(std::uint64_t seed) {
  std::vector<FleetOptions> all;
  for (const NodeChoice choice : {NodeChoice::kRandom, NodeChoice::kHash, NodeChoice::kBounded}) {
    for (const FleetMemory memory :
         {FleetMemory::kLocal, FleetMemory::kHint, FleetMemory::kShared}) {
      for (const std::uint32_t parents : {0U, 1U, 3U}) {
        if (memory == FleetMemory::kHint && parents == 0) continue;
        all.push_back({.front = {.nodes = static_cast<std::uint32_t>(2 + seed % 6),
                                 .balance = choice,
                                 .load_percent = static_cast<std::uint32_t>(110 + 20 * (seed % 5)),
                                 .load = static_cast<std::uint32_t>(1 + seed % 9),
                                 .seed = seed},
                       .memory = memory,
                       .parents = parents});
      }
    }
  }
  return all;
}

TEST_CASE("a fleet decides as a naive model, to the last request", "[fleet]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto trace = fleet_trace(seed, 3000);
    for (const FleetOptions& fleet : all_fleets(seed)) {
      for (const auto admission :
           {cache::AdmissionPolicy::kExactSecondHit, cache::AdmissionPolicy::kSecondHit}) {
        CAPTURE(seed, to_string(fleet.front.balance), to_string(fleet.memory), fleet.parents);
        std::vector<ReplayOutcome> outcomes;
        ReplayOptions options = fleet_replay(fleet, admission);
        options.outcomes = &outcomes;
        auto run = create_replay(options);
        REQUIRE(run);
        (*run)->feed(trace);
        (*run)->finish();
        NaiveFleet naive(fleet);
        std::size_t differences = 0;
        for (std::size_t i = 0; i < trace.size(); ++i) {
          differences += naive.ask(trace[i]) == outcomes[i] ? 0U : 1U;
        }
        CHECK(differences == 0);
        const ReplayCounts& counts = (*run)->counts();
        CHECK(counts.requests == naive.counts.requests);
        CHECK(counts.hits == naive.counts.hits);
        CHECK(counts.objects_written == naive.counts.objects_written);
        CHECK(counts.bytes_written == naive.counts.bytes_written);
        CHECK(counts.bytes_from_origin == naive.counts.bytes_from_origin);
      }
    }
  }
}

bool same(const ReplayCounts& a, const ReplayCounts& b) {
  return a.requests == b.requests && a.hits == b.hits && a.validations == b.validations &&
         a.bytes_hit == b.bytes_hit && a.bytes_from_origin == b.bytes_from_origin &&
         a.objects_written == b.objects_written && a.bytes_written == b.bytes_written &&
         a.bytes_rewritten == b.bytes_rewritten && a.not_stored_full == b.not_stored_full;
}

TEST_CASE("a fleet of one node is one cache", "[fleet]") {
  auto trace = fleet_trace(7, 20000);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].object % 5 == 0) trace[i].ttl_seconds = 100;
  }
  const auto replayed = [&](const std::optional<FleetOptions>& fleet) {
    ReplayOptions options{
        .kernel = kernel(200, cache::EvictionPolicy::kSieve, cache::AdmissionPolicy::kSecondHit),
        .warmup_requests = 1500,
        .interval_requests = 1000,
        .fleet = fleet};
    auto run = create_replay(options);
    REQUIRE(run);
    (*run)->feed(trace);
    (*run)->finish();
    return std::move(*run);
  };
  const auto alone = replayed({});
  REQUIRE(alone->counts().validations > 0);
  REQUIRE(alone->kernel().counters.evictions > 0);
  for (const NodeChoice choice : {NodeChoice::kRandom, NodeChoice::kHash, NodeChoice::kBounded}) {
    for (const FleetMemory memory : {FleetMemory::kLocal, FleetMemory::kShared}) {
      const auto fleet =
          replayed(FleetOptions{.front = {.nodes = 1, .balance = choice}, .memory = memory});
      CAPTURE(to_string(choice), to_string(memory));
      CHECK(same(fleet->counts(), alone->counts()));
      CHECK(fleet->kernel().counters.evictions == alone->kernel().counters.evictions);
      CHECK(fleet->kernel().objects == alone->kernel().objects);
      CHECK(fleet->admission().insertions == alone->admission().insertions);
      CHECK(fleet->admission().rotations == alone->admission().rotations);
      CHECK(fleet->admission().measured.asked == alone->admission().measured.asked);
      REQUIRE(fleet->intervals().size() == alone->intervals().size());
      std::size_t differences = 0;
      for (std::size_t i = 0; i < fleet->intervals().size(); ++i) {
        const ReplayInterval& ours = fleet->intervals()[i];
        const ReplayInterval& theirs = alone->intervals()[i];
        differences += same(ours.counts, theirs.counts) && ours.filter_fill == theirs.filter_fill &&
                               ours.resident_objects == theirs.resident_objects &&
                               ours.rotations == theirs.rotations
                           ? 0U
                           : 1U;
      }
      CHECK(differences == 0);
    }
  }
}

TEST_CASE("a node keeps an object no longer than its parent does", "[fleet]") {
  auto run = create_replay(
      fleet_replay({.front = {.nodes = 1}, .parents = 1}, cache::AdmissionPolicy::kAlways));
  REQUIRE(run);
  ObjectTable table;
  const auto at = [&](std::int64_t seconds) {
    return (*run)->ask(table.number(
        {.key = {1, 2}, .time_ns = seconds * 1'000'000'000, .size_bytes = 1, .ttl_seconds = 10}));
  };
  // A second node at the parent's would be served from there: here the node's own is stale with it.
  CHECK(at(0) == ReplayOutcome::kAdmitted);
  CHECK(at(9) == ReplayOutcome::kHit);
  CHECK(at(10) == ReplayOutcome::kRevalidated);
  (*run)->finish();
  CHECK((*run)->counts().validations == 1);
  CHECK((*run)->counts().hits == 1);

  auto two = create_replay(fleet_replay({.front = {.nodes = 2, .seed = 3}, .parents = 1},
                                        cache::AdmissionPolicy::kAlways));
  REQUIRE(two);
  // Every second until both nodes have it, the later one by a hit at the parent; at 10 neither is
  // fresh.
  std::vector<ReplayRequest> each_second;
  for (std::int64_t second = 0; second < 10; ++second) {
    each_second.push_back(table.number(
        {.key = {3, 4}, .time_ns = second * 1'000'000'000, .size_bytes = 1, .ttl_seconds = 10}));
  }
  (*two)->feed(each_second);
  (*two)->finish();
  REQUIRE((*two)->fleet()->report().nodes.counts.objects_written == 2);
  const std::uint64_t hits = (*two)->fleet()->report().nodes.counts.hits;
  CHECK(hits == 8);
  for (std::int64_t more = 0; more < 4; ++more) {
    (*two)->ask(table.number(
        {.key = {3, 4}, .time_ns = 10'000'000'000 + more, .size_bytes = 1, .ttl_seconds = 10}));
  }
  const FleetReport report = (*two)->fleet()->report();
  // One validation at the origin; the other node's finds the parent's fresh.
  CHECK(report.nodes.counts.validations == 2);
  CHECK(report.parents.counts.validations == 1);
}

TEST_CASE("policies that count no requests ignore hints", "[fleet]") {
  const auto trace = fleet_trace(9, 5000);
  for (const auto admission : {cache::AdmissionPolicy::kNever, cache::AdmissionPolicy::kProbability,
                               cache::AdmissionPolicy::kTinyLfu}) {
    std::vector<std::uint64_t> written;
    for (const FleetMemory memory : {FleetMemory::kLocal, FleetMemory::kHint}) {
      auto run = create_replay(
          fleet_replay({.front = {.nodes = 3}, .memory = memory, .parents = 1}, admission));
      REQUIRE(run);
      (*run)->feed(trace);
      (*run)->finish();
      written.push_back((*run)->fleet()->report().nodes.counts.objects_written);
    }
    CAPTURE(to_string(admission));
    CHECK(written[0] == written[1]);
  }
}

class Hinting final : public Upstream {
 public:
  Fetched fetch(const ReplayRequest& /*request*/) override { return {.is_hint = hints}; }
  bool hints = true;
};

TEST_CASE("a hinted key is remembered as that of a stored object", "[fleet]") {
  for (const auto admission :
       {cache::AdmissionPolicy::kSecondHit, cache::AdmissionPolicy::kExactSecondHit,
        cache::AdmissionPolicy::kNthHit}) {
    Hinting upstream;
    ReplayOptions options{.kernel = kernel(1, cache::EvictionPolicy::kLru, admission),
                          .asks_kernel = true,
                          .upstream = &upstream};
    options.kernel.admission.min_requests = 4;
    auto run = ReplayRun::create(options);
    REQUIRE(run);
    ObjectTable table;
    const auto ask = [&](std::uint64_t object) {
      return (*run)->ask(table.number({.key = {object, object}, .size_bytes = 1}));
    };
    ask(1);
    CHECK(ask(1) == ReplayOutcome::kHit);
    ask(2);  // takes its place
    CHECK(ask(2) == ReplayOutcome::kHit);
    upstream.hints = false;
    ask(1);
    CHECK(ask(1) == ReplayOutcome::kHit);
    ask(3);
    CHECK(ask(1) == ReplayOutcome::kHit);
  }
}

TEST_CASE("a node that is lost moves its own keys only", "[fleet]") {
  const auto trace = fleet_trace(3, 6000);
  for (const NodeChoice choice : {NodeChoice::kRandom, NodeChoice::kHash, NodeChoice::kBounded}) {
    CAPTURE(to_string(choice));
    const BalanceOptions options{.nodes = 4, .balance = choice, .lost_at = 3000};
    Balancer losing(options, "node");
    Balancer staying({.nodes = 4, .balance = choice}, "node");
    std::size_t at_lost = 0;
    std::size_t moved = 0;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const std::uint32_t got = losing.next(trace[i]);
      const std::uint32_t before = staying.next(trace[i]);
      at_lost += i >= 3000 && got == 0 ? 1U : 0U;
      moved += got != before && (i < 3000 || before != 0) ? 1U : 0U;
    }
    CHECK(at_lost == 0);
    CHECK((moved == 0) == (choice == NodeChoice::kHash));
  }
}

TEST_CASE("counts before and after a loss are those of the whole", "[fleet]") {
  const auto trace = fleet_trace(4, 6000);
  ReplayOptions options = fleet_replay(
      {.front = {.nodes = 3, .balance = NodeChoice::kHash, .lost_at = 4000}, .parents = 2},
      cache::AdmissionPolicy::kSecondHit);
  options.warmup_requests = 1000;
  auto run = create_replay(options);
  REQUIRE(run);
  (*run)->feed(trace);
  (*run)->finish();
  const FleetReport report = (*run)->fleet()->report();
  CHECK(report.before_loss.requests == 3000);
  CHECK(report.after_loss.requests == 2000);
  CHECK(report.before_loss.hits + report.after_loss.hits == (*run)->counts().hits);
  CHECK((*run)->counts().hits == report.nodes.counts.hits + report.parents.counts.hits);
  CHECK(report.origin_requests == 5000 - (*run)->counts().hits);
  CHECK(report.parents.counts.requests == 5000 - report.nodes.counts.hits);
}

TEST_CASE("the share of a node's shards is even under hashing", "[fleet]") {
  // Keys of one node, by the shard of its cache: the ring must not take the shards' bits.
  constexpr std::uint32_t kShards = 64;
  constexpr int kKeys = 60000;
  Balancer balancer({.nodes = 3, .balance = NodeChoice::kHash}, "node");
  std::vector<double> of_first(kShards);
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const auto hash = filter::identify({}, std::to_string(i)).hash;
    if (balancer.next({.key = hash, .object = i}) == 0) ++of_first[filter::shard_of(hash, kShards)];
  }
  const double mean = std::accumulate(of_first.begin(), of_first.end(), 0.0) / kShards;
  double chi = 0;
  for (const double count : of_first) chi += (count - mean) * (count - mean) / mean;
  // 63 degrees of freedom; 4.5 sigma of a chi-square.
  CHECK(chi < 63 + 4.5 * std::sqrt(2.0 * 63));
}

TEST_CASE("a fleet refuses what several caches cannot have", "[fleet][cli]") {
  const std::string replay = "replay none.csv ";
  check_refused(run(replay + "--nodes 0"), "--nodes");
  check_refused(run(replay + "--nodes 1025"), "--nodes");
  check_refused(run(replay + "--nodes 3 --balance roundrobin"),
                "--balance \"roundrobin\", accepted: random, hash, bounded");
  check_refused(run(replay + "--balance hash"), "--balance with --nodes 1, accepted: two nodes");
  check_refused(run(replay + "--memory shared"), "--memory with --nodes 1, accepted: two nodes");
  check_refused(run(replay + "--nodes 3 --memory redis"),
                "--memory \"redis\", accepted: local, hint, shared");
  check_refused(run(replay + "--nodes 3 --tier three"), "--tier \"three\", accepted: one, two");
  check_refused(run(replay + "--nodes 3 --memory hint"), "--memory hint without --tier two");
  check_refused(run(replay + "--nodes 3 --parents 2"), "--parents without --tier two");
  check_refused(run(replay + "--nodes 3 --balance hash --balance-factor 2"),
                "--balance-factor without --balance bounded");
  check_refused(run(replay + "--nodes 3 --balance bounded --balance-factor 0.9"),
                "--balance-factor");
  check_refused(run(replay + "--fail-node 0.5"), "--fail-node with --nodes 1");
  check_refused(run(replay + "--nodes 3 --eviction belady"), "--eviction belady");
  check_refused(run(replay + "--nodes 3 --memory shared --admission tinylfu"),
                "--memory shared with --admission tinylfu");
  check_refused(run(replay + "--nodes 3 --disk-size 1GiB"), "--disk-size");
  check_refused(run(replay + "--nodes 3 --sample 0.1"), "cannot be combined with a sample");
  check_refused(run(replay + "--nodes 3 --mrc 5"), "cannot be combined with a sample, --mrc");
  check_refused(run(replay + "--nodes 3 --bounds"), "--bounds");
  check_refused(run(replay + "--nodes 1024 --capacity 1000000000"), "the filters of");
}

}  // namespace
}  // namespace encore::sim
