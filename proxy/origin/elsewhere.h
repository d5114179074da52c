// Rewrites the response of a redirection's target as one of the server that the client asked. Pure,
// thread-safe.
#pragma once

#include <string_view>

#include "proxy/origin/received.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// True if a field speaks of the host that sends it: cookies, what browsers keep of it.
bool is_of_its_host(std::string_view name);
// Takes out of the head what its sender says of its own host, as cookies, and makes its Location a
// whole URI. False: it is too large then. REQUIRES: `request.is_elsewhere`, a head that is there.
bool keep_what_is_for_here(const RequestContext& request, Received& received);

}  // namespace encore::server
