#include "proxy/exchange/authorization_recheck.h"

#include "proxy/http/digest_path.h"
#include "proxy/http/stored_head.h"
#include "proxy/request/sent_head.h"

namespace encore::server {
namespace {

// True for a registry that sends this client to a signed URL of the blob, instead of answering
// itself: that is its yes. A redirection to a page to log in at is none, and often has the blob's
// URL in its query: only a host counts that the rule names in follow_hosts.
bool leads_to_signed(const std::shared_ptr<const RequestContext>& request,
                     const SharedResponse& response) {
  const int status = response.meta.status;
  const bool is_redirect = status == 302 || status == 303 || status == 307 || status == 308;
  const Rule& rule = *request->rule;
  if (!is_redirect || !rule.follows_redirects() || !rule.by_digest() || !rule.verifies()) {
    return false;
  }
  const auto digest = http::sha256_in_path(request->path_text());
  http::ResponseHead head;
  http::read_stored_head(response.head, head);
  if (!digest || head.fields.count(http::FieldId::kLocation) != 1) return false;
  const std::string_view location = head.fields.value(http::FieldId::kLocation);
  const auto redirected = RequestContext::redirected(request, location);
  return redirected.request != nullptr && redirected.request->is_cross_origin &&
         any_glob_matches(rule.follow_hosts(),
                          plain_host(redirected.request->target.authority.host)) &&
         (location.find(*digest) != std::string_view::npos ||
          location.find('?') != std::string_view::npos);
}

}  // namespace

bool AuthorizationRecheck::is_needed(const RequestContext& request, MonotonicTime now) const {
  return request.rule != nullptr && request.rule->rechecks() && state_ != State::kGiven &&
         !rechecks_.is_allowed(rechecks_.name(access_text(request)), now);
}

bool AuthorizationRecheck::take(const std::shared_ptr<const RequestContext>& request,
                                const SharedResponse& answer, MonotonicTime now) {
  constexpr int kSuccess = 2;
  const bool allowed = answer.meta.status / 100 == kSuccess || leads_to_signed(request, answer);
  state_ = allowed ? State::kGiven : State::kRefused;
  if (allowed) rechecks_.allow(rechecks_.name(access_text(*request)), now);
  return allowed;
}

}  // namespace encore::server
