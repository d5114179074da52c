#include "proxy/exchange/published.h"

#include <utility>

#include "proxy/http/head_text.h"
#include "proxy/http/reply_text.h"

namespace encore::server {
namespace {

publish::Answer refusal(int status, std::string text) {
  publish::Answer answer;
  answer.status = status;
  answer.content_type = "text/plain; charset=utf-8";
  answer.fields.emplace_back("Cache-Control", "no-store");
  answer.body = std::move(text);
  return answer;
}

// For everybody who may use the proxy: it is no secret, and a client that needs it has nothing yet.
publish::Answer authority_answer(const Interception& interception) {
  publish::Answer answer;
  answer.status = 200;
  answer.content_type = "application/x-x509-ca-cert";
  answer.fields.emplace_back("Cache-Control", "no-store");
  answer.body = interception.authority().pem();
  return answer;
}

publish::Answer find_answer(publish::Resources* published, const RequestContext& request,
                            WallTime now) {
  const Runtime& runtime = *request.runtime;
  if (runtime.interception != nullptr && request.is_forward() &&
      request.target.path == kAuthorityPath) {
    return authority_answer(*runtime.interception);
  }
  if (!runtime.may_have_published(request.client)) {
    return refusal(403, "403 Forbidden\nThis client is not in filters.allow_clients.\n");
  }
  if (published == nullptr) return refusal(404, "404 Not Found\nNo filter is published here.\n");
  if (runtime.squid_digest && request.target.path == kSquidDigestPath) {
    return published->answer(request.head, {}, "/resident.digest", now);
  }
  const std::string& root = runtime.config.filters.path;
  return published->answer(request.head, root, request.target.path, now);
}

}  // namespace

SyntheticResponse published_answer(publish::Resources* published, const RequestContext& request,
                                   WallTime now, std::string_view http_date,
                                   const http::CacheStatus& status) {
  publish::Answer answer = find_answer(published, request, now);
  SyntheticResponse reply;
  reply.outcome = Outcome::kPublished;
  reply.status = answer.status;
  const auto reason = http::reason_phrase(static_cast<unsigned>(answer.status));
  http::append_status_line(answer.status, reason, reply.head);
  http::append_field("Date", http_date, reply.head);
  if (!answer.content_type.empty()) {
    http::append_field("Content-Type", answer.content_type, reply.head);
  }
  for (const auto& [name, value] : answer.fields) http::append_field(name, value, reply.head);
  constexpr int kNotModified = 304;
  if (answer.status != kNotModified) {
    http::append_field("Content-Length", std::to_string(answer.body.size()), reply.head);
  }
  http::append_cache_status(status, reply.head);
  if (request.head.method != http::Method::kHead) reply.body = std::move(answer.body);
  return reply;
}

}  // namespace encore::server
