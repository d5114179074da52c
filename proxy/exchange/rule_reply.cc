#include "proxy/exchange/rule_reply.h"

#include <algorithm>

#include "proxy/http/head_text.h"
#include "proxy/http/message.h"

namespace encore::server {

RuleReply make_rule_reply(const RuleAnswer& answer, const RequestContext& request,
                          std::string_view http_date) {
  RuleReply reply;
  http::append_status_line(answer.status, http::reason_phrase(static_cast<unsigned>(answer.status)),
                           reply.head);
  http::append_field("Date", http_date, reply.head);
  if (!answer.location.empty()) {
    const std::string_view uri = request.uri_text();
    const std::string_view path = request.path_text();
    const std::string_view host =
        uri.substr(request.uri.authority, request.uri.path - request.uri.authority);
    std::string query;
    if (request.target.has_query) query.append("?").append(request.target.query);
    http::append_field("Location", filled_in(answer.location, host, path, query), reply.head);
  }
  if (!answer.body.empty()) http::append_field("Content-Type", answer.content_type, reply.head);
  // RFC 9110 8.6: a 204 has no Content-Length, and that of a 304 would be the length of a 200.
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  if (answer.status == kNoContent || answer.status == kNotModified) return reply;
  http::append_field("Content-Length", std::to_string(answer.body.size()), reply.head);
  reply.body = answer.body;
  return reply;
}

}  // namespace encore::server
