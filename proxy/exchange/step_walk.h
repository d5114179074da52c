// StepWalk: the step that a request is at, held to the table of exchange/steps.h, and told to who
// follows requests and to a panic report. Confined to its worker.
#pragma once

#include "base/check.h"
#include "proxy/exchange/steps.h"
#include "proxy/request/request_context.h"

namespace encore::server {

class StepWalk {
 public:
  // Begins with Step::kBegun. `request` outlives it.
  explicit StepWalk(const RequestContext& request);

  // Panics where the table has no such way.
  void go(Step next);
  bool is_at(Step step) const { return step_ == step; }
  // For a PanicNote.
  const ThreadActivity& activity() const { return activity_; }

 private:
  const RequestContext& request_;
  Step step_ = Step::kBegun;
  ThreadActivity activity_;
};

}  // namespace encore::server
