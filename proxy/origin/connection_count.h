// ConnectionCount: an open connection to an origin as it is counted, from when it is made until it
// is closed, whoever has it meanwhile. Confined to its worker.
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
  // Of a server that a client named. `stats` is borrowed and outlives it.
  explicit ConnectionCount(WorkerStats& stats) : ConnectionCount(stats, {}, {}) {}
  // Of one of an origin's; `kept` is where `tally` counts.
  using Kept = std::array<std::shared_ptr<const ServerCounters>, 2>;
  ConnectionCount(WorkerStats& stats, ServerTally tally, Kept kept)
      : stats_(&stats), tally_(tally), kept_(std::move(kept)) {
    stats_->origin_connections.add();
    tally_.add(&ServerCounts::connections);
  }
  ConnectionCount(ConnectionCount&& other) noexcept
      : stats_(std::exchange(other.stats_, nullptr)),
        tally_(other.tally_),
        kept_(std::move(other.kept_)) {}
  ConnectionCount& operator=(ConnectionCount&& other) noexcept {
    std::swap(stats_, other.stats_);
    std::swap(tally_, other.tally_);
    std::swap(kept_, other.kept_);
    return *this;
  }
  ~ConnectionCount() {
    if (stats_ == nullptr) return;
    stats_->origin_connections.subtract();
    tally_.subtract(&ServerCounts::connections);
  }

 private:
  WorkerStats* stats_ = nullptr;  // null: nothing is counted
  ServerTally tally_;
  Kept kept_;
};

}  // namespace encore::server
