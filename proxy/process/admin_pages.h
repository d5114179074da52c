// Pages of the admin listener. The caller has checked the method and the client. Confined to the
// main thread.
#pragma once

#include "proxy/admin/admin_message.h"
#include "proxy/process/endpoints.h"
#include "proxy/process/process_control.h"

namespace encore::server {

// The response to a GET of this endpoint. REQUIRES: one that answers immediately: not the log, and
// not what takes the token.
AdminResponse read_page(ProcessControl& process, const Endpoint& endpoint,
                        const AdminRequest& request);
// The response of published filters, below /filters, by any method.
AdminResponse read_published(ProcessControl& process, const AdminRequest& request);
// True if the path is of what is published.
bool is_published(const ProcessControl& process, std::string_view path);
// Answers with records of requests, when there are some.
void answer_log(ProcessControl& process, const AdminRequest& request, AdminReply to);

}  // namespace encore::server
