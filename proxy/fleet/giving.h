// Giving: gives this node's admission filter to nodes that ask for it by their presence. It has a
// thread of its own, and a connection while it sends.
#pragma once

#include <set>
#include <string>

#include "proxy/fleet/filter_transfer.h"
#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/fleet_state.h"
#include "proxy/fleet/redis_link.h"

namespace encore::fleet {

class Giving {
 public:
  // All are borrowed.
  Giving(const FleetOptions& options, const FleetHost& host, FleetState& state,
         const StopSignal& stop)
      : options_(options), host_(host), state_(state), stop_(stop), transfer_(options, stop, {}) {}

  // The thread: gives until the stop.
  void run();

 private:
  void give(const NodeTable& nodes);

  const FleetOptions& options_;
  const FleetHost& host_;
  FleetState& state_;
  const StopSignal& stop_;
  FilterTransfer transfer_;
  std::set<std::string> given_;  // keys of requests that were granted
};

}  // namespace encore::fleet
