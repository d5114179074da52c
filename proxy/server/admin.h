// The admin pages: /healthz, /readyz, /metrics, /api/stats, and POST /purge. Confined to the main
// thread.
#pragma once

#include <string>

#include "proxy/net/admin_server.h"

namespace encore::server {

class Server;

// Answers one request. Refused with 403: a Host that is not ours (a page of another site must not
// reach us through a name of its own), and any request but GET and HEAD that a page of another
// origin sends.
net::AdminResponse answer_admin(Server& server, const net::AdminRequest& request);

// All counters in the exposition format of Prometheus.
std::string metrics_text(Server& server);
// The same and more, as JSON.
std::string stats_json(Server& server);

}  // namespace encore::server
