// The admin pages: /healthz, /readyz, /metrics, /api/stats, and POST /purge. Confined to the main
// thread.
#pragma once

#include <string>

#include "proxy/net/admin_server.h"

namespace encore::server {

class Server;

// Answers one request, a purge when it is done. Refused with 403: a Host that is not ours (a page
// of another site must not reach us through a name of its own), and any request but GET and HEAD
// that a page of another origin sends. /healthz and /readyz tell nothing else and answer to any
// Host: what watches many machines rarely knows their names.
void answer_admin(Server& server, const net::AdminRequest& request, net::AdminReply to);

// All counters in the exposition format of Prometheus.
std::string metrics_text(Server& server);
// The same and more, as JSON.
std::string stats_json(Server& server);

}  // namespace encore::server
