// Tables of probation's results: their keys are those of docs/SIMULATION.md.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

// A row for each run on probation: hits by place, bytes written by their reason, the rule in force.
Table probation_table(const std::vector<FinishedRun>& runs);
// A row for each sample of each run that has samples: what its rule would give. Its bytes are those
// of the sample, its shares stand for the whole.
Table what_if_table(const std::vector<FinishedRun>& runs);

// A sentence for each run whose memory holds too few objects, or none.
std::vector<std::string> probation_notes(const std::vector<FinishedRun>& runs);

}  // namespace encore::sim
