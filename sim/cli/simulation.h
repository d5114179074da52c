// Sets of replays over one reading of a trace: what replay and tune have in common. The trace is
// decoded once; where a run needs to know all of it beforehand (a size in percent, an eviction
// that knows the future) it is spooled to disk, else it streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/cli/request_spool.h"
#include "sim/replay/replay_run.h"
#include "sim/replay/trace_object.h"
#include "sim/trace/trace_reader.h"
#include "sim/workload/monitor.h"

namespace encore::sim {

struct PlannedRun {
  ReplayOptions options;
  double footprint_share = 0;  // not 0: the capacity is this share of the footprint
};

struct FinishedRun {
  std::unique_ptr<ReplayRun> run;
  double cpu_seconds = 0;  // of its thread, spent in this run
  std::uint64_t one_hit_kept_out = 0;
  std::uint64_t one_hit_let_in = 0;
};

// A trace on disk, its objects in memory.
struct HeldTrace {
  ObjectTable objects;
  RequestSpool requests;
  double decode_seconds = 0;
};
struct HoldOptions {
  bool know_future = false;  // link each request to the next one for its object
};
// Errors: the trace's, the spool's. An interrupt ends the reading.
Result<HeldTrace> hold_trace(TraceReader& reader, const HoldOptions& options, Monitor& monitor);

struct RunOptions {
  double warmup_share = 0;  // this share of the requests is not counted
  unsigned threads = 0;     // 0: one a core
};
// The runs go on in parallel, each one's result is the same whatever the number of threads, in the
// order of the plan. Errors: the kernels', the spool's. An interrupt ends the runs early.
Result<std::vector<FinishedRun>> run_held(const HeldTrace& trace, std::vector<PlannedRun> plan,
                                          const RunOptions& options, Monitor& monitor);

// The same without holding the trace: no run may need to know all of it.
struct Streamed {
  ObjectTable objects;
  std::uint64_t requests = 0;
  std::vector<FinishedRun> runs;
};
Result<Streamed> run_streamed(TraceReader& reader, const std::vector<PlannedRun>& plan,
                              const RunOptions& options, Monitor& monitor);

}  // namespace encore::sim
