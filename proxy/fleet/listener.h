// ConfirmationListener: receives the positions of the other nodes as they apply purges, by
// publish/subscribe of the engine. It has a connection and a thread of its own. A message that is
// lost delays nothing but a response, to fleet.wait: docs/decisions/0602.
#pragma once

#include <functional>
#include <string>

#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/redis_link.h"
#include "proxy/fleet/stream_id.h"

namespace encore::fleet {

class ConfirmationListener {
 public:
  // Called on its thread.
  struct Handlers {
    std::function<void(std::string node, const StreamId& position)> on_confirmed;
    std::function<void()> on_connected;
  };
  // All are borrowed.
  ConfirmationListener(const FleetOptions& options, const StopSignal& stop, Handlers handlers)
      : options_(options),
        stop_(stop),
        handlers_(std::move(handlers)),
        link_(options.engine, stop) {}

  // The thread: listens until the stop.
  void run();

 private:
  Result<void> listen();
  void take(const Reply& message);

  const FleetOptions& options_;
  const StopSignal& stop_;
  const Handlers handlers_;
  RedisLink link_;
};

}  // namespace encore::fleet
