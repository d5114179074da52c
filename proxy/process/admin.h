// The admin listener's requests, by the table of endpoints (endpoints.h). Confined to the main
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "proxy/admin/admin_message.h"
#include "proxy/process/process_control.h"

namespace encore::server {

// Answers one request, a purge when it is done. Refuses with 403 a client that is none of
// allow_clients, a Host that is not ours (a page of another site must not reach us through a name
// of its own), and any request but GET and HEAD that a page of another origin sends.
//
// /healthz and /readyz tell nothing else and answer to everybody, by any Host: monitors of many
// machines rarely know their names.
void answer_admin(ProcessControl& process, AdminRequest request, AdminReply to);

// Returns the largest body of a request with this head: a memory with the token, nothing where one
// is asked for or given otherwise, else `usual` bytes.
std::size_t admin_body_max(ProcessControl& process, const AdminRequest& head, std::size_t usual);

}  // namespace encore::server
