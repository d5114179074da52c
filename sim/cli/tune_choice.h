// The rules by which tune chooses. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/cli/tune_front.h"
#include "sim/cli/tune_measured.h"

namespace encore::sim {

// Whether second-hit is worth what it loses in hits for what it saves in writes, as shares.
bool does_pay(double lost, double saved);

// The filter's runs follow a reference in the order of their memory. Returns the first one that is
// as good as the best in hits and, among those, as the best in writes. REQUIRES: there is one.
Measured best_filter(const std::vector<Measured>& all);

// By costs the next cheapest; without costs the one whose hits are nearest. REQUIRES: two or more.
std::size_t next_to(const std::vector<Measured>& all, std::size_t chosen, const Costs& costs);

// All that was measured of policies that the proxy has, the reference (storing everything) first.
struct TuneChoice {
  std::vector<Measured> all;
  std::size_t chosen = 0;  // 0: no filter pays
  std::size_t runner_up = 0;
  bool pays() const { return chosen != 0; }
  // The filter that is compared with storing everything.
  const Measured& compared() const { return all[pays() ? chosen : runner_up]; }
};
// With costs the cheapest; else the best filter of `fprs` if it pays.
TuneChoice choose_one(const std::vector<Measured>& windows, const std::vector<Measured>& fprs,
                      const Costs& costs);

}  // namespace encore::sim
