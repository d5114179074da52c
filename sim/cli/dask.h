// The tasks of a sweep on a Dask cluster, by a Python program that is part of this one.
#pragma once

#include <string>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::sim {

struct DaskTask {
  std::string name;
  std::string command;  // for a shell of a worker
};

// Returns when all tasks have ended. Errors: no Python, no `distributed`, no scheduler there, or
// tasks that failed: the message has the first one's.
Result<void> run_on_scheduler(const std::string& scheduler, const std::vector<DaskTask>& tasks,
                              Monitor& monitor);

}  // namespace encore::sim
