// From a trace to what is driven through a proxy, and the simulator run on the same: what the proxy
// with a given config should answer to each request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"
#include "config/config.h"
#include "sim/drive/driven_object.h"
#include "sim/replay/replay_run.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

struct DrivePlanOptions {
  std::uint64_t requests_max = 0;         // the first so many of the trace
  double size_scale = 1;                  // every size times this, rounded down,
  std::uint64_t size_max = 0;             // and no more than this
  std::uint32_t default_ttl_seconds = 0;  // for objects that have none in the trace
};
// An object has its largest size, and the TTL of its first request. Errors: the trace's, a trace
// without a request. An interrupt ends the reading.
Result<DrivePlan> read_drive_plan(TraceReader& reader, const DrivePlanOptions& options,
                                  Monitor& monitor);

struct DriveSimulation {
  std::vector<ReplayOutcome> outcomes;  // one per request
  std::unique_ptr<ReplayRun> run;
};
// The plan through the kernel that the config describes, one request after the other, with the
// forward proxy's keys for the origin at `authority` and its charges. No time passes: a TTL of 0
// expires immediately, any other one never. Errors: conditions that make the proxy's decisions
// unknowable. These are no seed in the config, keys that the filter would hash anew, rotation by
// time, and a TTL of less than kSureTtlSeconds, which might expire before the next request.
Result<DriveSimulation> simulate_drive(const DrivePlan& plan, const config::Config& config,
                                       std::string_view authority, Monitor& monitor);
inline constexpr std::uint32_t kSureTtlSeconds = 3600;

}  // namespace encore::sim
