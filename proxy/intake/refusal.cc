#include "proxy/intake/refusal.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "proxy/http/head_text.h"
#include "proxy/request/request_ids.h"
#include "proxy/settings/access.h"
#include "proxy/settings/refusal_keys.h"

namespace encore::server {
namespace {

constexpr std::string_view kNotAccepted = "The request was refused.";

Refusal bad_request(int status, std::string_view detail, std::string_view text) {
  return {.status = status, .detail = detail, .text = text};
}

Refusal denied(int status, std::string_view detail, std::string_view text) {
  return {.status = status, .outcome = Outcome::kDenied, .detail = detail, .text = text};
}

}  // namespace

Refusal malformed(const http::ParseError& error) {
  return bad_request(error.status, http::to_string(error.reason), "The request is malformed.");
}

Refusal request_timeout() {
  return bad_request(408, "request-timeout", "The request did not arrive in time.");
}

Refusal unfinished_heads() {
  return bad_request(408, "unfinished-heads", "Too many requests are unfinished.");
}

Refusal refused_by(const ViewFault& fault) {
  return {.status = fault.status,
          .outcome = fault.outcome,
          .detail = fault.detail,
          .text = kNotAccepted,
          .rule = fault.rule};
}

Refusal refused_by_access(std::string_view why, Refusal::Further further) {
  const int status = status_of_refusal(why);
  return {.status = status,
          .outcome = status == 400 ? Outcome::kBadRequest : Outcome::kDenied,
          .detail = why,
          .text = kNotAccepted,
          .further = further};
}

Refusal no_longer_decrypted() { return denied(421, "no-longer-decrypted", "Connect again."); }

Refusal challenge_reply(std::optional<std::string> content) {
  Refusal reply{.status = 200, .outcome = Outcome::kChallenge, .detail = "acme"};
  if (content) {
    reply.content = std::move(*content);
    return reply;
  }
  reply.status = 404;
  reply.detail = "no-challenge";
  reply.text = "No challenge of this name.";
  return reply;
}

Refusal moved_to_https(std::uint32_t port, const http::RequestHead& head,
                       const http::Target& target) {
  if (target.authority.host.empty()) {
    return bad_request(400, "no-host", "The request names no host.");
  }
  constexpr std::uint32_t kUsualPort = 443;
  const bool v6 = target.authority.host.contains(':');
  std::string fields = v6 ? "Location: https://[" : "Location: https://";
  fields += lower_ascii(target.authority.host);
  if (v6) fields += ']';
  if (port != kUsualPort) fields += ":" + std::to_string(port);
  fields.append(target.form == http::TargetForm::kAsterisk ? "/" : target.path);
  if (target.has_query) fields.append("?").append(target.query);
  const bool plain = head.method == http::Method::kGet || head.method == http::Method::kHead;
  Refusal refusal = denied(plain ? 301 : 308, "redirect-https", "Use https for this URL.");
  refusal.fields = fields + "\r\n";
  return refusal;
}

Refusal login_needed(http::FieldId field, Credential sent, std::string_view challenge) {
  const bool by_proxy = field == http::FieldId::kProxyAuthorization;
  Refusal refusal =
      denied(by_proxy ? 407 : 401,
             sent == Credential::kWrong ? "wrong-credentials" : "no-credentials", "Log in.");
  refusal.fields = challenge;
  refusal.further = Refusal::Further::kMayStay;
  return refusal;
}

Refusal no_login_inside() {
  return denied(403, "no-credentials", "Connect again, with credentials.");
}

Refusal logins_busy() {
  Refusal refusal = denied(503, "logins-busy", "Too many logins are being checked.");
  refusal.fields = "Retry-After: 1\r\n";
  return refusal;
}

Refusal login_unchecked() {
  Refusal refusal = denied(503, "login-unchecked", "Logins cannot be checked at present.");
  refusal.fields = "Retry-After: 10\r\n";
  return refusal;
}

Refusal too_many(std::string_view detail, Nanoseconds wait, Refusal::Further further) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  Refusal refusal = denied(429, detail, "Too many requests.");
  refusal.fields = "Retry-After: " + std::to_string(std::max<std::int64_t>(seconds, 1)) + "\r\n";
  refusal.further = further;
  return refusal;
}

http::SyntheticReply reply_to(const Refusal& refusal, const RefusalFacts& facts) {
  const Runtime& runtime = facts.runtime;
  const ListenerPolicy* const policy = runtime.policy(facts.listener.index);
  http::CacheStatus cache_status;
  cache_status.detail = refusal.detail;
  cache_status.said = policy == nullptr || policy->cache_status;
  const std::string text = std::string(refusal.text) + " Reason: " + std::string(refusal.detail) +
                           named_keys(facts.listener.mode, refusal.detail) + ".";
  const http::OwnPage content{.content_type = "application/octet-stream", .body = refusal.content};
  http::SyntheticReply reply = http::make_own_reply(
      refusal.status, text, facts.http_date, cache_status,
      refusal.content.empty() ? runtime.error_pages.find(refusal.status) : &content);
  reply.head += refusal.fields;
  if (runtime.config.log.request_id == config::RequestIds::kRespond) {
    http::append_field(kRequestIdField, facts.request_id, reply.head);
  }
  return reply;
}

}  // namespace encore::server
