#include "proxy/exchange/synthetic_response.h"

#include <utility>

#include "proxy/exchange/rule_reply.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/scan.h"
#include "proxy/settings/refusal_keys.h"

namespace encore::server {

SyntheticResponse failure_answer(const Failure& failure, const RequestContext& request,
                                 std::string_view http_date, http::CacheStatus status) {
  SyntheticResponse made{.outcome = failure.outcome,
                         .status = failure.status,
                         .detail = std::string(failure.detail),
                         .head = {},
                         .body = {}};
  const config::Mode mode = request.is_forward() ? config::Mode::kForward : config::Mode::kReverse;
  std::string text = "encore: " + made.detail + named_keys(mode, made.detail);
  if (!failure.why.empty()) text.append(": ").append(failure.why);
  status.detail = http::is_token(made.detail) ? std::string_view(made.detail) : std::string_view();
  const http::OwnPage* const page = failure.outcome == Outcome::kPurge
                                        ? nullptr
                                        : request.runtime->error_pages.find(failure.status);
  http::SyntheticReply reply = http::make_own_reply(failure.status, text, http_date, status, page);
  made.head = std::move(reply.head);
  if (request.head.method != http::Method::kHead) made.body = std::move(reply.body);
  // Our own replies do not tell a client of HTTP/1.0 that it may go on.
  made.ends_connection = request.head.version == http::Version::kHttp10;
  return made;
}

SyntheticResponse rule_answer(const LocalResponse& answer, const RequestContext& request,
                              std::string_view http_date, http::CacheStatus status) {
  RuleReply reply = make_rule_reply(*answer.content, request, http_date);
  request.rule->response_edits().apply(reply.head);
  status.detail = answer.detail;
  http::append_cache_status(status, reply.head);
  SyntheticResponse made{.outcome = answer.outcome,
                         .status = answer.status,
                         .detail = std::string(answer.detail),
                         .head = std::move(reply.head),
                         .body = {}};
  if (request.head.method != http::Method::kHead) made.body = std::move(reply.body);
  return made;
}

}  // namespace encore::server
