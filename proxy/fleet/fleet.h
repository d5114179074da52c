// Fleet: this node's part in the purges of all nodes, which travel by a stream of a Redis engine.
// Three threads, each with its connection: one reads and applies, one publishes, one listens to
// confirmations. Two more adopt and give admission filters. The engine may stop, freeze, be full or
// lose its memory: the node goes on, and says that purges are late. docs/decisions/0600.
//
// Confined to its loop's thread, but for what says otherwise.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "proxy/fleet/confirmations.h"
#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/fleet_state.h"
#include "proxy/fleet/follower.h"
#include "proxy/fleet/giving.h"
#include "proxy/fleet/joining.h"
#include "proxy/fleet/listener.h"
#include "proxy/fleet/publisher.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"

namespace encore::fleet {

class Fleet {
 public:
  // Starts the threads. `loop` is borrowed, and need not run yet.
  Fleet(net::Loop& loop, FleetOptions options, FleetHost host);
  // Ends the threads. Purges whose responses wait get none.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Waits until all purges that the engine has are applied. False: it was not reached within
  // fleet.wait, or reading them takes more than a minute.
  bool wait_until_current();
  // Publishes a purge that was done here. Calls `done` once, in a later turn: when all nodes have
  // confirmed, or fleet.wait is over, or it is known that it waits. REQUIRES: no dry run.
  void publish(const server::PurgeOrder& order, Confirmations::Done done);
  // Requests are served: from now on filters are adopted and given. Once.
  void serve();
  // Another process of this node has taken over. This one reads on for some seconds, for the other
  // may not repeat yet what it applies, and publishes its last clients' purges.
  void hand_over();
  FleetTimes& times() { return times_; }
  // Any thread.
  server::FleetReport report() const;

 private:
  void post(std::move_only_function<void(Fleet&)> function);
  void take_confirmed();
  void expire();
  void restart_timer();

  net::Loop& loop_;
  const FleetOptions options_;
  const FleetHost host_;
  FleetTimes times_;
  StopSignal stop_;
  StopSignal stop_reading_;
  FleetState state_;
  std::shared_ptr<Fleet*> self_;  // for posts; null once this has gone
  Confirmations confirmations_;
  std::atomic<std::uint64_t> unconfirmed_ = 0;
  std::atomic<bool> is_posted_ = false;
  net::Timer timer_;
  net::Timer end_of_reading_;
  Follower follower_;
  Publisher publisher_;
  ConfirmationListener listener_;
  Joining joining_;
  Giving giving_;
  std::vector<std::thread> threads_;
};

}  // namespace encore::fleet
