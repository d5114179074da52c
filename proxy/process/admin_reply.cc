#include "proxy/process/admin_reply.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

namespace encore::server {

AdminResponse reply(int status, std::string body) {
  AdminResponse response;
  response.status = status;
  response.body = std::move(body);
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

AdminResponse method_not_allowed(const char* allowed) {
  auto refused = reply(405, "405 Method Not Allowed\n");
  refused.fields.emplace_back("Allow", allowed);
  return refused;
}

AdminResponse busy(std::string_view what) {
  auto refused = reply(503, fmt::format("503 Service Unavailable\n{}\n", what));
  refused.fields.emplace_back("Retry-After", "1");
  return refused;
}

AdminResponse too_large(const AdminRequest& request, std::string_view accepted) {
  const std::string found = request.body_left_out == UINT64_MAX
                                ? "in chunks"
                                : fmt::format("of {} bytes", request.body_left_out);
  return reply(413,
               fmt::format("413 Content Too Large\nA body {}, accepted: {}\n", found, accepted));
}

AdminResponse json_reply(std::string body) {
  auto response = reply(200, std::move(body));
  response.content_type = "application/json";
  return response;
}

AdminResponse bad_query(std::string_view query, std::string_view accepted) {
  return reply(400, fmt::format("400 Bad Request\n\"{}\", accepted: {}\n", query, accepted));
}

AdminResponse wrong_request(std::string_view reason) {
  return reply(400, fmt::format("400 Bad Request\n{}\n", reason));
}

}  // namespace encore::server
