// ConnectionCount: an open connection to an origin as it is counted, from when it is made until it
// is closed, no matter which owner has it meanwhile. Confined to its worker.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "proxy/observe/server_counters.h"
#include "proxy/observe/stats.h"

namespace encore::server {

class ConnectionCount {
 public:
  ConnectionCount() = default;
  // Counts a connection to a server that a client named. `stats` is borrowed and outlives it.
  explicit ConnectionCount(WorkerStats& stats) : ConnectionCount(stats, {}, {}) {}
  // Counts a connection to a server of an origin; `kept` is where `tally` counts.
  using Kept = std::array<std::shared_ptr<const ServerCounters>, 2>;
  ConnectionCount(WorkerStats& stats, ServerTally tally, Kept kept)
      : counted_(std::make_unique<Counted>(stats, tally, std::move(kept))) {}

 private:
  // A connection changes hands several times for each request: what goes is a pointer.
  struct Counted {
    Counted(WorkerStats& of, ServerTally by, Kept where)
        : stats(of), tally(by), kept(std::move(where)) {
      stats.origin_connections.add();
      tally.add(&ServerCounts::connections);
    }
    ~Counted() {
      stats.origin_connections.subtract();
      tally.subtract(&ServerCounts::connections);
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    WorkerStats& stats;
    ServerTally tally;
    Kept kept;
  };
  std::unique_ptr<Counted> counted_;  // null: nothing is counted
};

}  // namespace encore::server
