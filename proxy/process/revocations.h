// Revocations: ends connections of a worker whose client, login or destination a reload no longer
// allows: idle ones with the reload, others when its drain time is over. Confined to the worker.
// Why not all end with the reload: docs/decisions/0314.
#pragma once

#include <functional>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"

namespace encore::server {

class Revocations {
 public:
  // `connections` returns the first of all, an intrusive list. `loop` is borrowed.
  Revocations(net::Loop& loop, std::function<ClientConnection*()> connections);
  Revocations(const Revocations&) = delete;
  Revocations& operator=(const Revocations&) = delete;

  // A new configuration is in force: anything in progress that it does not allow ends within
  // `drain`; 0: with this call.
  void look(Nanoseconds drain);

 private:
  void end_all();

  net::Loop& loop_;
  std::function<ClientConnection*()> connections_;
  net::Timer timer_;
  MonotonicTime ends_{};  // the timer's, where it runs
};

}  // namespace encore::server
