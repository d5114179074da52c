#include "cache/hash_ring.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "filter/hash.h"
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

TEST_CASE("a key goes to the nearest point ahead whose server may have it", "[cache][ring]") {
  std::mt19937_64 random(4);
  for (const auto& weights :
       std::vector<std::vector<std::uint32_t>>{{1}, {1, 1, 2}, {3, 1, 1, 2}}) {
    WeightedRing ring(weights);
    struct Placed {
      std::uint64_t at = 0;
      std::size_t server = 0;
    };
    std::vector<Placed> points;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      for (std::size_t point = 0; point < weights[i] * 160; ++point) {
        const std::string name = ring.names[i] + "#" + std::to_string(point);
        points.push_back({filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, name).lo, i});
      }
    }
    for (int step = 0; step < 1500; ++step) {
      // Some of the servers, in any order.
      std::vector<ServerCandidate> some;
      for (const ServerCandidate& each : ring.candidates) {
        if (random() % 4 != 0) some.push_back(each);
      }
      if (some.empty()) some.push_back(ring.candidates[0]);
      std::ranges::shuffle(some, random);
      std::uint64_t active = 1;
      std::uint64_t weight = 0;
      for (ServerCandidate& each : some) {
        each.active = static_cast<std::uint32_t>(random() % 12);
        active += each.active;
        weight += each.weight;
      }
      const bool is_bounded = random() % 2 == 0;
      const std::uint32_t percent = step % 3 == 0 ? 100 : 125;
      // On a point, too.
      const std::uint64_t hash = step % 5 == 0 ? points[random() % points.size()].at : random();
      std::size_t expected = some.size();
      std::uint64_t nearest = 0;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const double share = static_cast<double>(percent) / 100 * static_cast<double>(active) *
                             some[i].weight / static_cast<double>(weight);
        const double bound = std::ceil(share - 1e-9);
        REQUIRE(static_cast<double>(load_bound(some[i], some, percent)) == bound);
        if (is_bounded && some[i].active >= bound) continue;
        for (const Placed& point : points) {
          if (point.server != some[i].server) continue;
          const std::uint64_t ahead = point.at - hash;
          if (expected != some.size() && ahead >= nearest) continue;
          expected = i;
          nearest = ahead;
        }
      }
      REQUIRE(expected != some.size());
      REQUIRE(ring.ring.pick(hash, some,
                             is_bounded ? HashRing::Load::kBounded : HashRing::Load::kAny,
                             percent) == expected);
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
