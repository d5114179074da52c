// Pareto fronts: the settings that no other one beats. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace encore::sim {

// More of it is better, in each of its numbers: what costs is negative.
inline constexpr std::size_t kGoals = 4;
using Goals = std::array<double, kGoals>;

// True if a is at least as good as b in each goal and better in one.
bool dominates(const Goals& a, const Goals& b);

// For each, whether no other one dominates it: equal ones are all on the front. O(n²) comparisons
// at worst.
std::vector<bool> pareto_front(std::span<const Goals> all);

}  // namespace encore::sim
