// Bounds on the optimal miss ratios of caches of several sizes, see sim/replay/offline_bounds.h:
// what is computed for --bounds, and its table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/cli/simulation.h"
#include "sim/replay/offline_bounds.h"
#include "sim/report/report.h"

namespace encore::sim {

struct BoundsWanted {
  bool lower = false;  // PFOO-L
  bool upper = false;  // PFOO-U

  bool any() const { return lower || upper; }
};
// "pfoo-l", "pfoo-u", "all", or nothing. Errors: another word; the message shows it.
Result<BoundsWanted> parse_bounds(std::string_view text);

// Miss ratios of one size of cache. Nothing: it was not wanted, or the work was interrupted.
struct Bounds {
  std::uint64_t cache_bytes = 0;
  BoundGoal goal = BoundGoal::kObjects;
  std::optional<double> lower;
  std::optional<double> upper;
};

// Two rows (objects, bytes) for each size of the plan, which differs in nothing else that matters
// here. One size after the other, each by a pass over the trace; PFOO-U holds up to 36 bytes a
// request meanwhile. Errors: the spool's, a trace that is too long. REQUIRES: it is no sample.
Result<std::vector<Bounds>> run_bounds(const LoadedTrace& trace,
                                       const std::vector<PlannedRun>& plan,
                                       const BoundsWanted& wanted, std::uint64_t first_counted,
                                       Monitor& monitor);

Table bounds_table(const std::vector<Bounds>& bounds, const BoundsWanted& wanted);
// Notes below the table: the bounds that the figures are.
std::vector<std::string> bounds_notes(const LoadedTrace& trace, const BoundsWanted& wanted);

}  // namespace encore::sim
