// Decides if a rule follows a redirection of an origin, and where to. Pure but for the request that
// is made, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/net/address.h"
#include "proxy/observe/redirect_refusal.h"
#include "proxy/origin/received_response.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// The fetch that was redirected.
struct RedirectedFetch {
  std::uint32_t redirects = 0;  // that were followed before
  bool has_upload = false;
};

struct Redirection {
  std::shared_ptr<const RequestContext> to;      // null: the client gets the response
  RedirectRefusal why = RedirectRefusal::kNone;  // then; kNone: nothing was to be followed
};
Redirection find_redirection(const std::shared_ptr<const RequestContext>& request,
                             const RedirectedFetch& fetch, const ReceivedResponse& received);

// The name whose addresses decide whether `to` may be asked; nothing: it is decided already.
std::optional<std::string> name_to_check(const RequestContext& to);
// Checks if `to` may be asked at what its name has resolved to.
RedirectRefusal check_addresses(const RequestContext& to, std::vector<net::Address> addresses);

}  // namespace encore::server
