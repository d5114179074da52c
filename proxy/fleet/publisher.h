// Publisher: writes this node's purges into the stream, in their order, and its presence; reads
// that of the others. It has a connection and a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/fleet_state.h"
#include "proxy/fleet/redis_link.h"

namespace encore::fleet {

class Publisher {
 public:
  // Called on the publisher's thread.
  struct Handlers {
    std::function<void(std::uint64_t number, const StreamId& id)> on_published;
    // It waits until the engine is back.
    std::function<void(std::uint64_t number)> on_delayed;
    // All that wait are dropped: a purge of everything is published in their place.
    std::function<void()> on_dropped;
  };
  // All are borrowed.
  Publisher(const FleetOptions& options, const FleetHost& host, const FleetTimes& times,
            FleetState& state, const StopSignal& stop, Handlers handlers);

  // The thread: publishes until the stop.
  void run();
  // Another process of this node is present from now on. Any thread.
  void end_presence() { is_present_.store(false); }

 private:
  Result<void> work();
  Result<void> publish();
  Result<void> tell_presence();
  Result<void> renew_position();
  Result<void> check_last();
  void replace_dropped();
  void keep_waiting();
  Command addition(const Fields& fields) const;
  Result<std::vector<Reply>> call(const std::vector<Command>& commands);
  Result<NodeTable> read_nodes(const std::string& key, bool is_whole, std::uint64_t now);
  void check_name(const NodeTable& nodes);
  // An entry of a purge of everything.
  Fields everything(const server::PurgeOrder& order, std::uint64_t number) const;

  const FleetOptions& options_;
  const FleetHost& host_;
  const FleetTimes& times_;
  FleetState& state_;
  const StopSignal& stop_;
  const Handlers handlers_;
  RedisLink link_;
  std::atomic<bool> is_present_ = true;
  bool has_kept_;  // the file of those that wait has some
  std::string keep_fault_;
  std::string presence_fault_;  // the engine refuses this node's presence
  MonotonicTime next_presence_{};
  bool has_said_part_ = false;  // the warning that not all nodes are known
  unsigned strangers_ = 0;      // presences in a row that another process has replaced
};

}  // namespace encore::fleet
