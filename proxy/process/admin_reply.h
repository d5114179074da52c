// Responses of the admin pages, as all of them begin. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "proxy/admin/admin_message.h"

namespace encore::server {

// Text that is never cached. `body` begins with the status where it is an error: "404 Not Found\n".
AdminResponse reply(int status, std::string body);
AdminResponse json_reply(std::string body);
AdminResponse method_not_allowed(const char* allowed);
// 503, to be asked again; `what` says why.
AdminResponse busy(std::string_view what);
// 413 for a body that was left out; `accepted` says how long it may be.
AdminResponse too_large(const AdminRequest& request, std::string_view accepted);
AdminResponse bad_query(std::string_view query, std::string_view accepted);
// 400 with the reason.
AdminResponse wrong_request(std::string_view reason);

}  // namespace encore::server
