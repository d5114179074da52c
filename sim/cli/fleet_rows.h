// Results of replays through several caches, as a table.
#pragma once

#include <vector>

#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

// A row a run: hits, requests and writes by tier. REQUIRES: the runs have a fleet.
Table fleet_table(const std::vector<FinishedRun>& runs);

// Adds to each row of the main table the capacity of all of the run's caches. REQUIRES: likewise.
void append_fleet(Table& table, const std::vector<FinishedRun>& runs);

}  // namespace encore::sim
