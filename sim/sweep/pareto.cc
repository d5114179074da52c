#include "sim/sweep/pareto.h"

#include <algorithm>

namespace encore::sim {

bool dominates(const Goals& a, const Goals& b) {
  bool better = false;
  for (std::size_t i = 0; i < kGoals; ++i) {
    if (a[i] < b[i]) return false;
    better = better || a[i] > b[i];
  }
  return better;
}

std::vector<bool> pareto_front(std::span<const Goals> all) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.push_back(i);
  // None dominates one that stands before it.
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return all[a] > all[b]; });
  std::vector<bool> on_front(all.size(), false);
  std::vector<std::size_t> front;
  for (const std::size_t each : order) {
    const bool beaten = std::ranges::any_of(
        front, [&](std::size_t before) { return dominates(all[before], all[each]); });
    if (beaten) continue;
    on_front[each] = true;
    front.push_back(each);
  }
  return on_front;
}

}  // namespace encore::sim
