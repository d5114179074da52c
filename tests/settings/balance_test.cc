#include "proxy/settings/balance.h"

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

std::vector<ServerCandidate> of_weights(const std::vector<std::uint32_t>& weights) {
  std::vector<ServerCandidate> candidates;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    candidates.push_back({.server = i, .weight = weights[i]});
  }
  return candidates;
}

TEST_CASE("turns are shared by weight, and spread evenly", "[server][balance]") {
  const auto candidates = of_weights({5, 1, 1});
  RoundRobin turns(3);
  std::vector<std::size_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(turns.pick(candidates, RoundRobin::Turn::kTaken));
  CHECK(order == std::vector<std::size_t>{0, 0, 1, 0, 2, 0, 0});
}

TEST_CASE("in any number of turns each server is within one of its share of them",
          "[server][balance]") {
  // Tijdeman, "The chairman assignment problem" (1980), has 1 as the bound that can be reached;
  // this way of turns keeps to it within the number of servers, and exactly at the end of each
  // round.
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> weights(2 + random() % 6);
    double total = 0;
    for (auto& weight : weights) total += weight = static_cast<std::uint32_t>(1 + random() % 100);
    const auto candidates = of_weights(weights);
    RoundRobin turns(weights.size());
    std::vector<double> got(weights.size());
    for (int turn = 1; turn <= static_cast<int>(total); ++turn) {
      got[turns.pick(candidates, RoundRobin::Turn::kTaken)] += 1;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double share = static_cast<double>(turn) * weights[i] / total;
        REQUIRE(std::abs(got[i] - share) < static_cast<double>(weights.size()));
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) CHECK(got[i] == weights[i]);
  }
}

TEST_CASE("a turn that is left is there for the next one", "[server][balance]") {
  const auto candidates = of_weights({1, 1});
  RoundRobin turns(2);
  const std::size_t first = turns.pick(candidates, RoundRobin::Turn::kLeft);
  CHECK(turns.pick(candidates, RoundRobin::Turn::kTaken) == first);
  CHECK(turns.pick(candidates, RoundRobin::Turn::kTaken) != first);
}

TEST_CASE("of two the one with less under way for its weight is asked", "[server][balance]") {
  std::vector<ServerCandidate> candidates = of_weights({1, 3});
  candidates[0].active = 2;
  candidates[1].active = 5;  // 5/3 < 2
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) CHECK(pick_least_requests(candidates, random()) == 1);
  candidates[1].active = 7;
  for (int i = 0; i < 100; ++i) CHECK(pick_least_requests(candidates, random()) == 0);
}

TEST_CASE("servers with nothing to do are asked by weight", "[server][balance]") {
  const std::vector<std::uint32_t> weights = {1, 2, 5};
  const auto candidates = of_weights(weights);
  std::mt19937_64 random(11);
  constexpr double kRequests = 80000;
  std::vector<double> got(3);
  for (int i = 0; i < static_cast<int>(kRequests); ++i) {
    got[pick_least_requests(candidates, random())] += 1;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double p = weights[i] / 8.0;
    CHECK(std::abs(got[i] - p * kRequests) < 4.5 * std::sqrt(kRequests * p * (1 - p)));
  }
}

// Oracle: with a constant number of requests in progress, each sent to the less loaded of two, the
// most loaded of n has about log log n / log 2 more than the mean; with one choice it would have
// some log n / log log n more (Mitzenmacher 2001).
TEST_CASE("two choices keep loads close together", "[server][balance]") {
  constexpr std::size_t kServers = 64;
  std::vector<ServerCandidate> candidates = of_weights(std::vector<std::uint32_t>(kServers, 1));
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < 100 * kServers; ++i) {
    ++candidates[pick_least_requests(candidates, random())].active;
  }
  for (const ServerCandidate& each : candidates) CHECK(each.active <= 100 + 4);
}

}  // namespace
}  // namespace encore::server
