// Theory columns of the block experiment's tables. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "filter/theory.h"
#include "sim/replay/block_experiment.h"
#include "sim/report/report.h"

namespace encore::sim {

// Null where there is nothing.
Value of(const std::optional<double>& number);

// Theory's figures: the full filter, and the view while it fills. For a pair: the worst moment of a
// cycle, and the mean over the tests that were made.
struct BlockTheory {
  Value full;
  Value incremental;
  Value weighted;
};
// Why the theory of a rotating filter does not hold for this one: it takes the fill for its mean,
// so that a full generation must not answer 40 % of new keys, nor have few bits. Empty: it holds.
std::string theory_refusal(const filter::Ring& ring);

// All null where theory does not hold for the filter.
BlockTheory theory_for(const BlockResult& result, const BlockWorkload& workload);

// Appends notes that say for which filters theory is left out, and why.
void append_theory_notes(Report& report, const std::vector<BlockResult>& results);
// The column of z against theory is for tables where seeds are enough for one.
void drop_unknown_z(Table& table);

}  // namespace encore::sim
