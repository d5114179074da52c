// A running proxy's state of a request, in addition to its configuration: objects that are stored
// for its key, the memory of admission, what would happen now, what happened lately. It learns
// nothing and changes nothing. Any thread.
#pragma once

#include <memory>

#include "base/time.h"
#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/exchange/recent_outcomes.h"
#include "proxy/process/explanation.h"
#include "proxy/request/request_context.h"
#include "proxy/settings/runtime.h"
#include "proxy/transfer/inflight.h"

namespace encore::server {

// Parts of a running proxy; all is borrowed.
struct Running {
  std::shared_ptr<const Runtime> runtime;  // the present one
  filter::Seed identity_seed;
  const cache::Kernel& kernel;
  const Inflight& inflight;
  const RecentOutcomes& recent;
  MonotonicTime now{};
  WallTime wall{};
};

ExplainedState explain_state(const Running& running, const RequestContext& request);

}  // namespace encore::server
