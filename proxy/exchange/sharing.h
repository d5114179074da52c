// Decides if a request may wait for what another one asks for, and if what that brings answers
// it. Pure, thread-compatible.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "proxy/http/variant_keys.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

// True if what this request brings can be found by others, who may wait for it.
bool may_be_found(const RequestContext& request);
// True if others may wait for what this request brings, before its head is there, and it for
// others'. `unshared`: what is known of its key; `has_stored`: it has something to validate.
// REQUIRES: may_be_found().
bool may_lead(Inflight::Unshared unshared, bool has_stored);
// True if this request may wait for what another one brings: not where that, as fresh as it can be,
// would be no answer to it. It may wait until that is stored. REQUIRES: may_lead().
bool may_join(const RequestContext& request);

// The waiting request, and the time.
struct WaitingRequest {
  const RequestContext& request;
  http::VariantKeys& variants;  // its own
  MonotonicTime now;
  bool is_alike = true;  // its credentials are those of the request that it waited for
};
enum class ShareDecision : std::uint8_t {
  kYes,
  kAskAgain,    // it is no answer; another's may be
  kAskApart,    // it is for other credentials; one for its own may be an answer
  kAskAlone,    // nor would another's be one
  kOnceStored,  // it is no answer, but can be validated when it is stored
};
// Decides if the result of another request's validation answers this one, which had `found`.
ShareDecision may_take(const Validated& validated, const CacheView& found,
                       const WaitingRequest& asker);
// Decides if another request's response answers this one: as the store would give it, now and
// without asking.
ShareDecision may_take(const SharedResponse& response, const WaitingRequest& asker);

}  // namespace encore::server
