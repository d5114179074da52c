#include "proxy/server/admin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "config/network.h"
#include "proxy/http/list.h"
#include "proxy/http/uri.h"
#include "proxy/server/purge.h"
#include "proxy/server/server.h"

namespace encore::server {
namespace {

bool is_loopback_name(std::string_view host) {
  return http::equals_ignoring_case(host, "localhost");
}

// A name that a page of another site could have pointed at this machine is not ours.
bool is_host_accepted(const Server& server, const net::AdminRequest& request) {
  if (request.field_count("Host") != 1) return false;
  http::Authority authority;
  if (!http::parse_authority(request.field("Host"), authority)) return false;
  if (is_loopback_name(authority.host)) return true;
  const config::Admin& admin = server.config().admin;
  if (const auto ip = net::Address::parse_ip(authority.host, 0)) {
    if (ip->is_loopback()) return true;
    const auto own = config::parse_endpoint(admin.address);
    const auto own_ip = own ? net::Address::parse_ip(own->address, 0) : std::nullopt;
    // Addresses are no names: a page cannot make one of its own point here. With a listener on
    // every address, any of them is ours.
    return own_ip && (own_ip->is_unspecified() || own_ip->same_ip(*ip));
  }
  return std::ranges::any_of(admin.allow_hosts, [&](const std::string& host) {
    return http::equals_ignoring_case(host, authority.host);
  });
}

// Requests that change something must not come from a page of another origin.
bool is_same_origin(const net::AdminRequest& request) {
  const std::string_view site = request.field("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  const std::string_view origin = request.field("Origin");
  if (origin.empty()) return true;
  return origin == "http://" + std::string(request.field("Host"));
}

net::AdminResponse reply(int status, std::string body) {
  net::AdminResponse response;
  response.status = status;
  response.body = std::move(body);
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

net::AdminResponse answer_purge(Server& server, const net::AdminRequest& request) {
  if (request.method != "POST") {
    auto refused = reply(405, "405 Method Not Allowed\n");
    refused.fields.emplace_back("Allow", "POST");
    return refused;
  }
  const auto order = read_purge_order(request);
  if (!order) return reply(400, fmt::format("400 Bad Request\n{}\n", order.error().message));
  const std::uint64_t count = purge(server.shared(), server.config(), *order);
  auto done = reply(200, fmt::format("{{\"purged\": {}, \"soft\": {}}}\n", count, order->soft));
  done.content_type = "application/json";
  return done;
}

}  // namespace

net::AdminResponse answer_admin(Server& server, const net::AdminRequest& request) {
  if (!is_host_accepted(server, request)) {
    return reply(403, fmt::format("403 Forbidden\nHost \"{}\" is not one of this listener's names; "
                                  "accepted: localhost, its addresses, admin.allow_hosts.\n",
                                  request.field("Host")));
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && !is_same_origin(request)) {
    return reply(403, "403 Forbidden\nThe request comes from a page of another origin.\n");
  }
  if (request.path == "/purge") return answer_purge(server, request);
  const bool known = request.path == "/healthz" || request.path == "/readyz" ||
                     request.path == "/metrics" || request.path == "/api/stats" ||
                     request.path == "/";
  if (!known)
    return reply(404, "404 Not Found\nPages: /healthz /readyz /metrics /api/stats; POST /purge\n");
  if (!reads) {
    auto refused = reply(405, "405 Method Not Allowed\n");
    refused.fields.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  if (request.path == "/") return reply(200, "encore\n/healthz\n/readyz\n/metrics\n/api/stats\n");
  if (request.path == "/healthz") return reply(200, "ok\n");
  if (request.path == "/readyz") {
    return server.is_ready() ? reply(200, "ready\n") : reply(503, "draining\n");
  }
  if (request.path == "/metrics") {
    auto response = reply(200, metrics_text(server));
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  auto response = reply(200, stats_json(server));
  response.content_type = "application/json";
  return response;
}

}  // namespace encore::server
