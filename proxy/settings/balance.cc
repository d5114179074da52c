#include "proxy/settings/balance.h"

#include "base/check.h"

namespace encore::server {
namespace {

std::uint64_t total_weight(std::span<const ServerCandidate> candidates) {
  std::uint64_t total = 0;
  for (const ServerCandidate& each : candidates) total += each.weight;
  return total;
}

// 32 random bits as a number below `bound`, which is far below 2^32: what is uneven is not seen.
std::uint64_t below(std::uint64_t bound, std::uint32_t random) {
  return (std::uint64_t{random} * bound) >> 32U;
}

// The candidate that `point` falls on, where each takes as much room as its weight; `left_out`
// takes none.
std::size_t at_point(std::span<const ServerCandidate> candidates, std::uint64_t point,
                     std::size_t left_out) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == left_out) continue;
    if (point < candidates[i].weight) return i;
    point -= candidates[i].weight;
    last = i;
  }
  return last;
}

}  // namespace

std::size_t RoundRobin::pick(std::span<const ServerCandidate> candidates, Turn turn) {
  ENCORE_CHECK(!candidates.empty(), "one of some is picked");
  const auto credit_of = [this](const ServerCandidate& each) {
    return credit_.at(each.server) + static_cast<std::int64_t>(each.weight);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (credit_of(candidates[i]) > credit_of(candidates[best])) best = i;
  }
  if (turn == Turn::kLeft) return best;
  for (const ServerCandidate& each : candidates) credit_.at(each.server) = credit_of(each);
  credit_.at(candidates[best].server) -= static_cast<std::int64_t>(total_weight(candidates));
  return best;
}

std::size_t pick_least_requests(std::span<const ServerCandidate> candidates, std::uint64_t random) {
  ENCORE_CHECK(!candidates.empty(), "one of some is picked");
  if (candidates.size() == 1) return 0;
  const std::uint64_t total = total_weight(candidates);
  const std::size_t first =
      at_point(candidates, below(total, static_cast<std::uint32_t>(random)), candidates.size());
  const std::uint64_t rest = total - candidates[first].weight;
  const std::size_t second =
      at_point(candidates, below(rest, static_cast<std::uint32_t>(random >> 32U)), first);
  const ServerCandidate& a = candidates[first];
  const ServerCandidate& b = candidates[second];
  // As fractions of their weights, multiplied out.
  const bool first_has_less =
      std::uint64_t{a.active} * b.weight <= std::uint64_t{b.active} * a.weight;
  return first_has_less ? first : second;
}

}  // namespace encore::server
