// HealthChecks: the checks of all servers whose origins have a health_path. One worker of the
// process runs them; what they find is known to all through the servers' groups. Confined to its
// worker. Why one worker checks for all: docs/decisions/0201.
#pragma once

#include <memory>
#include <vector>

#include "proxy/process/health_check.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class HealthChecks {
 public:
  // All is borrowed.
  HealthChecks(net::Loop& loop, net::Resolver& resolver, WorkerStats& stats)
      : loop_(loop), resolver_(resolver), stats_(stats) {}

  // Ends those of before; what they had begun to count is forgotten, and what they found is not.
  // Not to be called by a check.
  void use(std::shared_ptr<const Runtime> runtime);

 private:
  net::Loop& loop_;
  net::Resolver& resolver_;
  WorkerStats& stats_;
  std::shared_ptr<const Runtime> runtime_;
  std::vector<std::unique_ptr<HealthCheck>> checks_;  // those of runtime_
};

}  // namespace encore::server
