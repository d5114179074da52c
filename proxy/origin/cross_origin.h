// Rewrites the response of a redirection's target as one of the server that the client asked. Pure,
// thread-safe.
#pragma once

#include <string_view>

#include "proxy/origin/received_response.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// True if a field speaks of the host that sends it: cookies, what browsers keep of it.
bool is_of_its_host(std::string_view name);
// Takes out of the head what its sender says of its own host, as cookies, and makes its Location a
// whole URI. False: it is too large then. REQUIRES: `request.is_cross_origin`, a head that is
// there.
bool strip_host_specific_fields(const RequestContext& request, ReceivedResponse& received);

}  // namespace encore::server
