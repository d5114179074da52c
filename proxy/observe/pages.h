// The two pages of numbers, written from a snapshot. Pure, but for the process's resident memory,
// which they ask the system for. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "proxy/observe/fleet_report.h"
#include "proxy/observe/limit_report.h"
#include "proxy/observe/predecessor_report.h"
#include "proxy/observe/snapshot.h"

namespace encore::server {

// Status of the process, in addition to its counters.
struct ProcessStatus {
  Nanoseconds uptime{};
  std::size_t workers = 0;
  std::uint64_t reloads = 0;  // configurations taken over
  std::uint64_t reload_failures = 0;
  bool ready = false;  // requests are taken
  std::vector<LimitReport> limits = {};
  std::uint64_t upgrade_failures = 0;  // after which this process went on
  std::vector<PredecessorReport> predecessors = {};
  std::optional<FleetReport> fleet = {};  // nothing: this node is in none
};

// All counters in the exposition format of Prometheus.
std::string metrics_text(const Snapshot& snapshot, const ProcessStatus& process);
// The same and more, as JSON.
std::string stats_json(const Snapshot& snapshot, const ProcessStatus& process);
// Lists pairs of a client and a host that refused the certificate of [intercept]: as JSON, and in
// lines for people.
std::string rejected_json(const InterceptReport& report);
std::string rejected_text(const InterceptReport& report);

}  // namespace encore::server
