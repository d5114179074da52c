// tune's choice among what it measured: the Pareto front, costs in money, the runner-up, and how
// sure the choice is. Values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "sim/cli/tune_measured.h"
#include "sim/report/report.h"

namespace encore::sim {

// Money for what a setting costs over the trace, in a unit of the user's. All zero: none is known.
struct Costs {
  double miss = 0;    // a million misses
  double origin = 0;  // a GiB from the origin
  double write = 0;   // a GiB written
  double memory = 0;  // a GiB of the filter's memory, for the time of the trace

  void declare(Arguments& arguments);
  void append_parameters(Row& row) const;
  bool any() const { return miss != 0 || origin != 0 || write != 0 || memory != 0; }
};
double cost_of(const Measured& one, const Costs& costs);

// The cheapest; of equal ones the first. REQUIRES: there is one.
std::size_t cheapest(const std::vector<Measured>& all, const Costs& costs);

// Those that no other one beats in hits, byte hits, bytes written and the filter's memory at the
// same time, from the most hits on. `chosen` and `runner_up` are indices into all, and marked.
Table front_table(const std::vector<Measured>& all, const Costs& costs, std::size_t chosen,
                  std::size_t runner_up);
Chart front_chart(const std::vector<Measured>& all, std::size_t chosen);

// Sentences that say why the one is chosen and not the other, and how sure that is by the parts of
// the trace.
std::vector<std::string> reasons(const Measured& chosen, const Measured& runner_up,
                                 const Costs& costs);

// "second-hit of 217 insertions at an FPR of 0.005", "probation at a write cost of 0.2".
std::string name_of(const Measured& one);

}  // namespace encore::sim
