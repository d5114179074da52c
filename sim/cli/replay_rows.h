// What replays found, as tables: their keys are those of docs/SIMULATION.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cli/kernel_options.h"
#include "sim/cli/miss_ratio_curve.h"
#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

// What the runs were of. Everything but the sample's own figures is of the whole trace.
struct ReplayedTrace {
  std::string names;
  std::uint64_t requests = 0;
  std::uint64_t footprint_bytes = 0;
  std::uint64_t footprint_objects = 0;
  bool footprint_known = true;  // false: an interrupt ended the reading
  bool complete = true;         // false: it ended the runs; the tables show on what they rest
  double rate = 1;              // of the sample; 1: it is the whole
  std::uint64_t sample_requests = 0;
  std::uint64_t sample_objects = 0;
  std::uint64_t table_bytes = 0;  // of memory for the numbering of these objects
};

// A row a run; `runs` are in the order of `planned`, here and below.
Table replay_table(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs,
                   const std::vector<PlannedKernel>& planned);
Table interval_table(const std::vector<FinishedRun>& runs,
                     const std::vector<PlannedKernel>& planned);
// A run's admission, and what else it has: "probation" and "w 0.5", "second-hit" and nothing.
std::string admission_name(const FinishedRun& finished);
std::string admission_parameter(const FinishedRun& finished);
// What the disk of each run took and gave. REQUIRES: they have one.
Table disk_table(const std::vector<FinishedRun>& runs);
// The report's machine part: speed and memory of the runs alone, and what objects take beside them.
Row replay_machine(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs);

// A row a point.
Table curve_table(const ReplayedTrace& trace, const std::vector<CurvePoint>& points,
                  const std::vector<PlannedKernel>& planned);

// What there is to say where an interrupt came while the trace was being read.
std::string unread_note(std::uint64_t requests_read);

// How large the sample was and what its bounds mean. REQUIRES: it is one.
std::string sample_note(const ReplayedTrace& trace);

}  // namespace encore::sim
