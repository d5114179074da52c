#include "proxy/exchange/step_walk.h"

#include "proxy/observe/request_steps.h"

namespace encore::server {

StepWalk::StepWalk(const RequestContext& request)
    : request_(request), activity_(doing_for(request, "an exchange", kSteps[0].name)) {}

void StepWalk::go(Step next) {
  ENCORE_CHECK(may_follow(step_, next),
               "the steps of a request follow one another as the table says");
  step_ = next;
  activity_.step = kSteps[static_cast<std::size_t>(next)].name;
  if (request_.runtime->follows_requests) [[unlikely]] {
    log_step(request_.request_id, {"exchange: ", activity_.step});
  }
}

}  // namespace encore::server
