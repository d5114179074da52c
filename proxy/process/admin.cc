#include "proxy/process/admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "config/network.h"
#include "proxy/http/list.h"
#include "proxy/http/uri.h"

namespace encore::server {
namespace {

bool is_loopback_name(std::string_view host) {
  return http::equals_ignoring_case(host, "localhost");
}

// A name that a page of another site could have pointed at this machine is not ours.
bool is_host_accepted(const Administered& process, const net::AdminRequest& request) {
  if (request.field_count("Host") != 1) return false;
  http::Authority authority;
  if (!http::parse_authority(request.field("Host"), authority)) return false;
  if (is_loopback_name(authority.host)) return true;
  const config::Admin& admin = process.config().admin;
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

net::AdminResponse method_not_allowed(const char* allowed) {
  auto refused = reply(405, "405 Method Not Allowed\n");
  refused.fields.emplace_back("Allow", allowed);
  return refused;
}

net::AdminResponse unavailable() {
  auto refused = reply(503, "503 Service Unavailable\nToo many purges wait, or this is the end.\n");
  refused.fields.emplace_back("Retry-After", "1");
  return refused;
}

void answer_purge(Administered& process, const net::AdminRequest& request, net::AdminReply to) {
  if (request.method != "POST") return to.send(method_not_allowed("POST"));
  auto order = read_purge_order(request);
  if (!order)
    return to.send(reply(400, fmt::format("400 Bad Request\n{}\n", order.error().message)));
  const bool soft = order->soft;
  // Where it is refused nobody calls, and the answer is still ours to give.
  auto owed = std::make_shared<net::AdminReply>(std::move(to));
  const bool taken = process.purge(std::move(*order), [owed, soft](std::uint64_t count) {
    auto done = reply(200, fmt::format("{{\"purged\": {}, \"soft\": {}}}\n", count, soft));
    done.content_type = "application/json";
    owed->send(done);
  });
  if (!taken) owed->send(unavailable());
}

// What a page says to a GET; nothing where there is no such page.
std::optional<net::AdminResponse> read_page(Administered& process, std::string_view path) {
  if (path == "/") return reply(200, "encore\n/healthz\n/readyz\n/metrics\n/api/stats\n");
  if (path == "/healthz") return reply(200, "ok\n");
  if (path == "/readyz") {
    return process.is_ready() ? reply(200, "ready\n") : reply(503, "draining\n");
  }
  if (path == "/metrics") {
    auto response = reply(200, metrics_text(process.snapshot(), process.status()));
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  if (path == "/api/stats") {
    auto response = reply(200, stats_json(process.snapshot(), process.status()));
    response.content_type = "application/json";
    return response;
  }
  return std::nullopt;
}

bool is_probe(std::string_view path) { return path == "/healthz" || path == "/readyz"; }

}  // namespace

void answer_admin(Administered& process, const net::AdminRequest& request, net::AdminReply to) {
  if (!is_probe(request.path) && !is_host_accepted(process, request)) {
    return to.send(
        reply(403, fmt::format("403 Forbidden\nHost \"{}\" is not one of this listener's names; "
                               "accepted: localhost, its addresses, admin.allow_hosts.\n",
                               request.field("Host"))));
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && !is_same_origin(request)) {
    return to.send(reply(403, "403 Forbidden\nThe request comes from a page of another origin.\n"));
  }
  if (request.path == "/purge") return answer_purge(process, request, std::move(to));
  const auto page = read_page(process, request.path);
  if (!page) {
    return to.send(
        reply(404, "404 Not Found\nPages: /healthz /readyz /metrics /api/stats; POST /purge\n"));
  }
  to.send(reads ? *page : method_not_allowed("GET, HEAD"));
}

}  // namespace encore::server
