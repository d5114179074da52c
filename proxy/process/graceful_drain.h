// GracefulDrain: the clients of a worker whose listeners another process has by now. A connection
// is closed behind a response that says so; those that are idle for long are closed spread over a
// time, so that their clients do not return all in one moment. Confined to the worker.
#pragma once

#include <functional>
#include <optional>

#include "base/time.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"

namespace encore::server {

class ClientConnection;

// How clients are treated in a drain. Each limit from its beginning; 0: none.
struct DrainPlan {
  Nanoseconds limit{};  // for requests
  struct Gentle {
    Nanoseconds idle{};     // for one more request; then as long again for closing what is idle
    Nanoseconds tunnels{};  // for tunnels
  };
  // Nothing: idle connections are closed now, and silent ones after half of the limit.
  std::optional<Gentle> gentle = {};
};

class GracefulDrain {
 public:
  struct Parts {
    net::Loop& loop;
    std::function<ClientConnection*()> connections;  // the first of an intrusive list
    std::function<void()> cut_fetches;
    std::function<void()> end;  // nothing is left to wait for
  };
  // REQUIRES: plan.gentle.
  GracefulDrain(Parts parts, const DrainPlan& plan);
  GracefulDrain(const GracefulDrain&) = delete;
  GracefulDrain& operator=(const GracefulDrain&) = delete;

  // Announces it to all connections. Once, when closes_untold() may be asked.
  void begin();
  // Clients have had their time for one more request.
  bool closes_untold() const { return looks_left_ == 0; }

 private:
  void begin_closing(Nanoseconds time);
  void close_some();
  void cut_requests(Nanoseconds tunnels);

  Parts parts_;
  int looks_left_;
  net::Timer closing_;
  net::Timer limit_;
  net::Timer tunnels_;
};

}  // namespace encore::server
