// The report of a sweep: a row a run, the Pareto front of each trace, means over seeds.
#pragma once

#include <vector>

#include "sim/report/report.h"
#include "sim/sweep/sweep_file.h"

namespace encore::sim {

// `lines` are those of sim/sweep/task_results.h. On the front of its trace is what no other run
// beats in hits, byte hits, bytes written and memory (cache and filter) together.
void fill_sweep_report(Report& report, const Sweep& sweep, const std::vector<Row>& lines);

}  // namespace encore::sim
