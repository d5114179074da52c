// Cache-Control for clients: a rule's `client_cache_control` replaces the origin's on responses
// that a shared cache may reuse, so that what was meant for this cache (s-maxage) does not reach
// caches that no purge reaches. Pure, thread-safe.
#pragma once

#include "proxy/exchange/response_plan.h"
#include "proxy/settings/rules.h"

namespace encore::server {

// Edits the head of a response that was planned from `source`. A response with private, no-store or
// no-cache keeps its own, also where a rule ignores them.
void set_client_cache_control(const Rule& rule, const ResponseSource& source, ResponsePlan& plan);

}  // namespace encore::server
