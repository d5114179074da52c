// Sets of replays over one reading of a trace: what replay and tune have in common. The trace is
// decoded once; where a run needs to know all of it beforehand (a size in percent, an eviction
// that knows the future) it is spooled to disk, else it streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "sim/cli/loaded_trace.h"
#include "sim/replay/object_memory.h"
#include "sim/replay/replay_run.h"
#include "sim/replay/sample_estimate.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

inline constexpr const char* kObjectSizeHelp =
    "size of an object whose responses differ: largest (for logs of sent bytes), latest";

struct PlannedRun {
  ReplayOptions options;       // but for the warm-up, which is RunOptions'
  double footprint_share = 0;  // not 0: the capacity is this share of the footprint
};

struct FinishedRun {
  std::unique_ptr<ReplayRun> run;  // for a sample: in a cache that is as much smaller
  cache::KernelOptions kernel;     // as planned, the capacity in bytes
  // Counts of the whole trace, estimated if the run used a sample.
  ReplayCounts counts;
  HitRatios ratios;
  bool complete =
      true;  // false: an interrupt cut it short, and of one-hit objects nothing is known
  std::uint64_t one_hit_kept_out = 0;
  std::uint64_t one_hit_let_in = 0;
  double cpu_seconds = 0;  // time of its thread, spent in the run alone
};

inline constexpr std::uint64_t kThreadsMax = 1024;

struct RunOptions {
  std::uint64_t warmup_requests = 0;              // not counted; of the whole trace
  unsigned threads = 0;                           // 0: one a core
  ObjectSize object_size = ObjectSize::kLargest;  // for a trace that is not held
  // For a trace that is not held: the table of objects remembers so many, and those that a cache
  // holds (0: all). Unless `forget_sizes`, it forgets none if the rule for sizes depends on all
  // responses (kLargest) and sizes vary.
  std::uint64_t objects_max = 0;
  bool forget_sizes = false;
};
// The runs go on in parallel, each one's result is the same whatever the number of threads, in the
// order of the plan. `phase` is a literal, for the monitor. Errors: the kernels', the spool's. An
// interrupt ends the runs early: each says by its counts how far it came, and has no `run` where
// that is nowhere.
Result<std::vector<FinishedRun>> run_held(const LoadedTrace& trace,
                                          const std::vector<PlannedRun>& plan,
                                          const RunOptions& options, Monitor& monitor,
                                          const char* phase = "simulating");

// The same without holding the trace: no run may need to know all of it. An interrupt while a pipe
// is waited for does not lose what it has sent, as far as that is simulated in no time.
struct Streamed {
  ObjectTable objects;
  ObjectMemory memory;
  std::uint64_t requests = 0;
  std::vector<FinishedRun> runs;
};
// With ObjectMemory::has_forgotten(), counts of objects are estimates, and bytes_rewritten is not
// known.
Result<Streamed> run_streamed(TraceReader& reader, const std::vector<PlannedRun>& plan,
                              const RunOptions& options, Monitor& monitor);

// Errors: the plan's options alone need more memory than there is, for a sample of that rate (1:
// everything); with limited objects nothing is known beforehand.
Result<void> check_plan(const std::vector<PlannedRun>& plan, const cache::SampleOptions& sample);

// Errors: the trace has an object that the kernel has no room to count (kChargeMax), and a cache
// that would take it.
Result<void> check_largest(std::uint64_t largest_bytes, const std::vector<PlannedRun>& plan,
                           std::uint64_t footprint_bytes);

// A planned run's capacity in bytes.
std::uint64_t capacity_of(const PlannedRun& planned, std::uint64_t footprint_bytes);

}  // namespace encore::sim
