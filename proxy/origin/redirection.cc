#include "proxy/origin/redirection.h"

#include <utility>

#include "base/text.h"
#include "proxy/http/framing.h"
#include "proxy/http/freshness.h"
#include "proxy/request/parent.h"

namespace encore::server {
namespace {

constexpr std::uint32_t kRedirectsMax = 5;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// True for a HEAD that asks if a client may have the stored response. To be sent elsewhere is no
// yes.
bool asks_permission(const RequestContext& request) {
  return request.rule->rechecks() && !request.is_cacheable() &&
         request.head.method == http::Method::kHead;
}

// True if the target may have been chosen by a Cookie: the origin saw one and states no lifetime,
// and no freshness is guessed for such a response either (heuristic_for()). Cookies that a rule has
// in the key tell the stored objects apart. Why no status is exempt: docs/decisions/0415.
bool may_follow_cookie(const RequestContext& request, const ReceivedResponse& received) {
  if (!request.sends_cookie() || request.vary().cookies == http::CookieUse::kSome) return false;
  const http::Lifetime lifetime =
      http::freshness_lifetime(received.head, received.directives, received.arrival(),
                               received.request_policy->store.freshness, http::Heuristic::kBarred);
  return !lifetime.is_explicit() || lifetime.seconds == 0;
}

// True if the redirection is for the requesting client alone. Its target would be stored for all,
// so that only the client follows it.
bool is_for_one(const RequestContext& request, const ReceivedResponse& received) {
  const http::Fields& fields = received.head.fields;
  const http::StoreOptions& store = received.request_policy->store;
  const http::ResponseDirectives& directives = received.directives;
  return directives.no_store || directives.is_private || directives.no_cache ||
         (fields.has(http::FieldId::kVary) && !store.ignores_vary) ||
         (fields.has(http::FieldId::kSetCookie) && !store.ignored.set_cookie) ||
         (request.head.fields.has(http::FieldId::kAuthorization) && !store.ignored.authorization &&
          !directives.is_public) ||
         may_follow_cookie(request, received);
}

}  // namespace

Redirection find_redirection(const std::shared_ptr<const RequestContext>& request,
                             const RedirectedFetch& fetch, const ReceivedResponse& received) {
  const http::ResponseHead& head = received.head;
  const Rule* const rule = request->rule;
  if (rule == nullptr || !rule->follows_redirects() || !is_redirect(head.status) ||
      asks_permission(*request)) {
    return {};
  }
  if (fetch.has_upload || !http::is_safe(request->head.method) || request->asks_upgrade()) {
    return {.to = nullptr, .why = RedirectRefusal::kMethod};
  }
  if (fetch.redirects == kRedirectsMax) return {.to = nullptr, .why = RedirectRefusal::kTooMany};
  if (head.fields.count(http::FieldId::kLocation) != 1) {
    return {.to = nullptr, .why = RedirectRefusal::kLocation};
  }
  if (is_for_one(*request, received)) return {.to = nullptr, .why = RedirectRefusal::kForOne};
  auto redirected =
      RequestContext::redirected(request, head.fields.value(http::FieldId::kLocation));
  return {.to = std::move(redirected.request), .why = redirected.why};
}

std::optional<std::string> name_to_check(const RequestContext& to) {
  if (!to.is_cross_origin || parent_of(to) != nullptr) return std::nullopt;
  std::string host = lower_ascii(to.target.authority.host);
  // RequestContext::redirected() has looked at addresses.
  if (DestinationPolicy::known_address(host, to.target.port())) return std::nullopt;
  return host;
}

RedirectRefusal check_addresses(const RequestContext& to, std::vector<net::Address> addresses) {
  const std::string host = lower_ascii(to.target.authority.host);
  return redirect_refusal_by(check_destination(to, host, to.target.port(), addresses));
}

}  // namespace encore::server
