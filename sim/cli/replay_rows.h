// Results of replays, as tables: their keys are those of docs/SIMULATION.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cli/kernel_options.h"
#include "sim/cli/miss_ratio_curve.h"
#include "sim/cli/simulation.h"
#include "sim/report/report.h"

namespace encore::sim {

// The trace of the runs. Everything except the sample's own figures describes the whole trace.
struct ReplayedTrace {
  std::string names;
  std::uint64_t requests = 0;
  std::uint64_t footprint_bytes = 0;
  std::uint64_t footprint_objects = 0;
  bool footprint_known = true;  // false: an interrupt ended the reading
  bool complete = true;         // false: it ended the runs; the tables show on what they rest
  double rate = 1;              // rate of the sample; 1: it is the whole
  std::uint64_t sample_requests = 0;
  std::uint64_t sample_objects = 0;
  std::uint64_t table_bytes = 0;  // memory for the numbering of these objects
  // Share of the objects from which all counts of objects are estimated, and how far those of the
  // footprint may be off (95 %); nothing is known of bytes_rewritten then. 1: all of them.
  double objects_rate = 1;
  double footprint_objects_error = 0;
  double footprint_bytes_error = 0;
};

// A row a run; `runs` are in the order of `planned`, here and below.
Table replay_table(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs,
                   const std::vector<PlannedKernel>& planned);
// Adds to each row the counts of its intervals, as at most so many parts.
void append_parts(Table& table, const std::vector<FinishedRun>& runs, std::uint64_t most);
Table interval_table(const std::vector<FinishedRun>& runs,
                     const std::vector<PlannedKernel>& planned);
// A run's admission, and what else it has: "probation" and "w 0.5", "second-hit" and nothing.
std::string admission_name(const FinishedRun& finished);
std::string admission_parameter(const FinishedRun& finished);
// Writes and hits of each run's disk. REQUIRES: the runs have one.
Table disk_table(const std::vector<FinishedRun>& runs);
// The report's machine part: speed and memory of the runs alone, and the memory of the objects in
// addition.
Row replay_machine(const ReplayedTrace& trace, const std::vector<FinishedRun>& runs);

// A row a point.
Table curve_table(const ReplayedTrace& trace, const std::vector<CurvePoint>& points,
                  const std::vector<PlannedKernel>& planned);

// Returns the note for an interrupt while the trace was being read.
std::string unread_note(std::uint64_t requests_read);

// The sample from which objects are counted, and the error. REQUIRES: objects_rate below 1.
std::string forgotten_note(const ReplayedTrace& trace);

// How large the sample was and what its bounds mean. REQUIRES: it is one.
std::string sample_note(const ReplayedTrace& trace);

}  // namespace encore::sim
