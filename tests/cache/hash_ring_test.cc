#include "cache/hash_ring.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::cache {
namespace {

struct WeightedRing {
  explicit WeightedRing(const std::vector<std::uint32_t>& weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      names.push_back("http://10.0.0." + std::to_string(i) + ":80");
    }
    std::vector<HashRing::Server> servers;
    for (std::size_t i = 0; i < weights.size(); ++i) servers.push_back({names[i], weights[i]});
    ring = HashRing(servers);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      candidates.push_back({.server = i, .weight = weights[i]});
    }
  }
  std::size_t server_for(std::uint64_t hash) const {
    return candidates[ring.pick(hash, candidates, HashRing::Load::kBounded)].server;
  }
  std::vector<std::string> names;
  HashRing ring;
  std::vector<ServerCandidate> candidates;
};

TEST_CASE("each server has its share of the keys by weight", "[cache][ring]") {
  const std::vector<std::uint32_t> weights = {1, 1, 2, 4};
  const WeightedRing ring(weights);
  std::mt19937_64 random(1);
  constexpr int kKeys = 40000;
  std::vector<double> got(weights.size());
  for (int i = 0; i < kKeys; ++i) got[ring.server_for(random())] += 1.0 / kKeys;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / 8.0;
    // With so many points the part of the ring varies by one over their root, and so do keys.
    const double points = std::sqrt(1.0 / (kPointsPerWeight * weights[i]));
    const double keys = std::sqrt((1 - share) / (share * kKeys));
    CHECK(std::abs(got[i] - share) < 4.5 * share * std::hypot(points, keys));
  }
}

TEST_CASE("with a server leave its own keys alone", "[cache][ring]") {
  WeightedRing ring({1, 1, 1, 1});
  std::mt19937_64 random(2);
  std::vector<std::pair<std::uint64_t, std::size_t>> before;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t hash = random();
    before.emplace_back(hash, ring.server_for(hash));
  }
  // Out for a while, and gone from the config: the same.
  WeightedRing gone({1, 1, 1, 1});
  gone.candidates.erase(gone.candidates.begin() + 1);
  std::vector<HashRing::Server> left;
  for (const std::size_t i : {0U, 2U, 3U}) left.push_back({ring.names[i], 1});
  const HashRing smaller(left);
  std::vector<ServerCandidate> of_smaller = {{.server = 0}, {.server = 1}, {.server = 2}};
  for (const auto& [hash, server] : before) {
    const std::size_t now = gone.server_for(hash);
    if (server != 1) CHECK(now == server);
    CHECK(now != 1);
    const std::size_t in_smaller = smaller.pick(hash, of_smaller, HashRing::Load::kBounded);
    CHECK((in_smaller == 0 ? 0 : in_smaller + 1) == now);
  }
}

TEST_CASE("no server ever has more under way than its bound", "[cache][ring]") {
  std::mt19937_64 random(3);
  for (const auto& weights :
       std::vector<std::vector<std::uint32_t>>{{1, 1}, {1, 1, 1, 1, 1}, {1, 3, 7}, {100, 1}}) {
    WeightedRing ring(weights);
    std::vector<std::size_t> under_way;
    for (int step = 0; step < 4000; ++step) {
      if (!under_way.empty() && random() % 3 == 0) {
        const std::size_t which = random() % under_way.size();
        --ring.candidates[under_way[which]].active;
        under_way[which] = under_way.back();
        under_way.pop_back();
        continue;
      }
      // One key that all request, and others.
      const std::uint64_t hash = random() % 2 == 0 ? 42 : random();
      const std::size_t picked = ring.ring.pick(hash, ring.candidates, HashRing::Load::kBounded);
      const std::uint64_t bound = load_bound(ring.candidates[picked], ring.candidates);
      ++ring.candidates[picked].active;
      under_way.push_back(picked);
      REQUIRE(ring.candidates[picked].active <= bound);
      // The bound by its definition, not by integers.
      double sum = 0;
      double total = 0;
      for (const ServerCandidate& each : ring.candidates) {
        sum += each.active;
        total += each.weight;
      }
      const double exact = std::ceil(1.25 * sum * weights[picked] / total - 1e-9);
      REQUIRE(ring.candidates[picked].active <= exact);
    }
  }
}

TEST_CASE("a key stays with its server while that has room", "[cache][ring]") {
  WeightedRing ring({1, 1, 1});
  const std::size_t own = ring.server_for(42);
  for (ServerCandidate& each : ring.candidates) each.active = 10;
  CHECK(ring.server_for(42) == own);
  // 5/4 of a third of 31, rounded up, is 13.
  ring.candidates[own].active = 12;
  for (ServerCandidate& each : ring.candidates) {
    if (each.server != own) each.active = 9;
  }
  CHECK(ring.server_for(42) == own);
  // A third of 33 allows 14.
  ring.candidates[own].active = 14;
  CHECK(ring.server_for(42) != own);
}

}  // namespace
}  // namespace encore::cache
