#include "proxy/process/admin.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>

#include "proxy/process/admin_access.h"
#include "proxy/process/admin_orders.h"
#include "proxy/process/admin_pages.h"
#include "proxy/process/admin_reply.h"
#include "proxy/process/endpoints.h"

namespace encore::server {
namespace {

AdminAccess access_of(ProcessControl& process) {
  return {.admin = process.config().admin, .token = process.memory().token()};
}

AdminResponse token_needed() {
  auto refused = reply(
      401, "401 Unauthorized\nSend Authorization: Bearer with the token of admin.token_file.\n");
  refused.fields.emplace_back("WWW-Authenticate", "Bearer");
  return refused;
}

// Nothing where the request may change something, or read what is for operators alone.
std::optional<AdminResponse> refuse_operator(ProcessControl& process, const AdminRequest& request) {
  switch (access_of(process).may_change(request)) {
    case AdminAccess::Verdict::kAllowed:
      return std::nullopt;
    case AdminAccess::Verdict::kNoToken:
      return reply(403,
                   "403 Forbidden\nThe admin listener is not on loopback: this takes the "
                   "token of admin.token_file, and none is configured.\n");
    case AdminAccess::Verdict::kWrongToken:
      return token_needed();
  }
  return token_needed();
}

// Nothing where the request may have what is asked for.
std::optional<AdminResponse> refuse_stranger(ProcessControl& process, const AdminRequest& request) {
  if (process.memory().token() == nullptr) {
    return reply(403,
                 "403 Forbidden\nThe admission filter contains its secret seed: set "
                 "admin.token_file, and send its token.\n");
  }
  if (access_of(process).has_token(request)) return std::nullopt;
  return token_needed();
}

// Nothing where the client may use the listener, and calls it by a name of its own.
std::optional<AdminResponse> refuse_client(ProcessControl& process, const AdminRequest& request) {
  const AdminAccess access = access_of(process);
  if (!access.allows_client(request)) {
    return reply(403, fmt::format("403 Forbidden\nClient {} is not in admin.allow_clients.\n",
                                  request.peer.ip_string()));
  }
  if (access.names_us(request)) return std::nullopt;
  return reply(403, fmt::format("403 Forbidden\nHost \"{}\" is not one of this listener's names; "
                                "accepted: localhost, its addresses, admin.allow_hosts.\n",
                                request.field("Host")));
}

// Nothing where the client may have the endpoint.
std::optional<AdminResponse> refuse(ProcessControl& process, const Endpoint& endpoint,
                                    const AdminRequest& request) {
  switch (endpoint.access) {
    case EndpointAccess::kOperator:
      return refuse_operator(process, request);
    case EndpointAccess::kToken:
      return refuse_stranger(process, request);
    case EndpointAccess::kEverybody:
    case EndpointAccess::kReader:
      break;
  }
  return std::nullopt;
}

// Nothing where the endpoint has the method. The memory is read by GET alone: it is large.
std::optional<AdminResponse> refuse_method(const Endpoint& endpoint, std::string_view method) {
  if (endpoint.method == "POST") {
    return method == "POST" ? std::nullopt : std::optional(method_not_allowed("POST"));
  }
  const bool has_head = endpoint.id != EndpointId::kMemory && endpoint.id != EndpointId::kLog;
  if (method == "GET" || (method == "HEAD" && has_head)) return std::nullopt;
  return method_not_allowed(has_head ? "GET, HEAD" : "GET");
}

AdminResponse no_such_page() {
  std::string text = "404 Not Found\nEndpoints:";
  for (const Endpoint& each : endpoints()) {
    text += fmt::format(" {}{}", each.method == "POST" ? "POST " : "", each.path);
  }
  return reply(404, text + "\n");
}

void answer_endpoint(ProcessControl& process, const Endpoint& endpoint, AdminRequest& request,
                     AdminReply to) {
  switch (endpoint.id) {
    case EndpointId::kPurge:
      return answer_purge(process, request, std::move(to));
    case EndpointId::kClear:
      return answer_clear(process, request, std::move(to));
    case EndpointId::kReload:
      return answer_reload(process, std::move(to));
    case EndpointId::kUpgrade:
      return answer_upgrade(process, std::move(to));
    case EndpointId::kDrain:
      return answer_drain(process, std::move(to));
    case EndpointId::kMemory:
      return answer_memory(process, std::move(to));
    case EndpointId::kAdopt:
      return answer_adopt(process, request, std::move(to));
    case EndpointId::kLog:
      return answer_log(process, request, std::move(to));
    default:
      return to.send(read_page(process, endpoint, request));
  }
}

}  // namespace

std::size_t admin_body_max(ProcessControl& process, const AdminRequest& head, std::size_t usual) {
  const Endpoint* const endpoint = find_endpoint(head.path);
  if (endpoint == nullptr) return usual;
  const AdminAccess access = access_of(process);
  if (endpoint->access == EndpointAccess::kOperator) {
    return access.may_change(head) == AdminAccess::Verdict::kAllowed ? usual : 0;
  }
  if (endpoint->access != EndpointAccess::kToken) return usual;
  if (endpoint->id == EndpointId::kMemory || head.method != "POST" || !access.has_token(head)) {
    return 0;
  }
  return memory_body_max(process);
}

void answer_admin(ProcessControl& process, AdminRequest request, AdminReply to) {
  const Endpoint* const endpoint = find_endpoint(request.path);
  if (endpoint == nullptr || endpoint->access != EndpointAccess::kEverybody) {
    if (const auto refused = refuse_client(process, request)) return to.send(*refused);
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && !is_same_origin(request)) {
    return to.send(reply(403, "403 Forbidden\nThe request comes from a page of another origin.\n"));
  }
  if (is_published(process, request.path)) return to.send(read_published(process, request));
  if (endpoint == nullptr || endpoint->id == EndpointId::kPublished) {
    return to.send(no_such_page());
  }
  if (endpoint->access == EndpointAccess::kToken) {
    if (const auto refused = refuse(process, *endpoint, request)) return to.send(*refused);
  }
  if (const auto refused = refuse_method(*endpoint, request.method)) return to.send(*refused);
  if (const auto refused = refuse(process, *endpoint, request)) return to.send(*refused);
  answer_endpoint(process, *endpoint, request, std::move(to));
}

}  // namespace encore::server
