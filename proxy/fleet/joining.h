// Joining: a node that starts with an empty admission filter adopts that of another node. It has a
// thread of its own, for half a minute at most; the node serves meanwhile. Which node it asks, and
// when it gives up: docs/decisions/0606.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "proxy/fleet/filter_transfer.h"
#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/fleet_state.h"
#include "proxy/fleet/givers.h"
#include "proxy/fleet/redis_link.h"

namespace encore::fleet {

class Joining {
 public:
  // All are borrowed.
  Joining(const FleetOptions& options, const FleetHost& host, FleetState& state,
          const StopSignal& stop)
      : options_(options), host_(host), state_(state), stop_(stop), transfer_(options, stop, {}) {}

  // The thread: adopts a filter if it can. REQUIRES: FleetOptions::filter is kWanted.
  void run();

 private:
  // True: the filter of one of them was adopted.
  bool adopt_one(const Givers& givers, MonotonicTime end);
  Result<std::uint64_t> adopt(const Giver& giver, MonotonicTime end);

  const FleetOptions& options_;
  const FleetHost& host_;
  FleetState& state_;
  const StopSignal& stop_;
  FilterTransfer transfer_;
  MonotonicTime begin_{};
  std::set<std::string> tried_;                                         // processes
  std::set<std::pair<std::string, std::string>> unfit_;                 // those that the log has
  std::string why_none_ = "the nodes of the engine could not be read";  // if it ends now
};

}  // namespace encore::fleet
