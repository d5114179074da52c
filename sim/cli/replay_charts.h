// The plots of a replay.
#pragma once

#include <vector>

#include "sim/cli/miss_ratio_curve.h"
#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

// Miss ratio by cache size, bytes written against hits; with intervals also hits, the filter's
// fill and the working set over time. Charts without a point are left out.
void append_replay_charts(std::vector<Chart>& charts, const std::vector<FinishedRun>& runs);

// Miss ratio and byte miss ratio by cache size, with bounds where there are some.
void append_curve_charts(std::vector<Chart>& charts, const std::vector<CurvePoint>& points);

}  // namespace encore::sim
