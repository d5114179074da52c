// Eviction policies written in Python: objects with the methods of encore_sim.Policy. The cache
// around one is that of every other policy (sim/replay/direct_cache.h); its decisions are asked for
// under the interpreter's lock.
#pragma once

#include <exception>
#include <memory>

#include "base/cli/monitor.h"
#include "base/mutex.h"
#include "sim/python/binding.h"
#include "sim/replay/replay_options.h"

namespace encore::sim::python {

// The first error of the policies of one call, from whichever thread. Thread-safe.
class PolicyFailure {
 public:
  // `monitor` is borrowed: an error ends the work.
  explicit PolicyFailure(Monitor& monitor) : monitor_(monitor) {}
  void set(std::exception_ptr error);
  // Throws it, if there is one.
  void raise() const;
  bool is_set() const;

 private:
  Monitor& monitor_;
  mutable Mutex mutex_;
  std::exception_ptr error_ ENCORE_GUARDED_BY(mutex_);
};

// For ReplayOptions::own. `make` is called with the capacity in bytes, and returns the policy of
// one cache; `failure` outlives the caches.
OwnCache python_policy(const py::object& make, PolicyFailure& failure);

}  // namespace encore::sim::python
