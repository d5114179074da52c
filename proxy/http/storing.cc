#include "proxy/http/storing.h"

#include <algorithm>
#include <array>
#include <string>

#include "proxy/http/conditional.h"
#include "proxy/http/range.h"
#include "proxy/http/vary.h"

namespace encore::http {
namespace {

constexpr std::array kReasonNames = {
#define ENCORE_HTTP_REASON(id, name) std::string_view(name),
    ENCORE_HTTP_STORE_REASONS(ENCORE_HTTP_REASON)
#undef ENCORE_HTTP_REASON
};

// Final status codes whose caching rules we know: those of RFC 9110 15 and the registry's others
// that have none of their own. must-understand means these (RFC 9111 5.2.2.3).
bool is_understood(unsigned status) noexcept {
  static constexpr std::array<unsigned, 53> kKnown = {
      200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404,
      405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 424, 425,
      426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 226};
  return std::ranges::find(kKnown, status) != kKnown.end();
}

// Also where the names cannot be read, or are too many to be compared by.
bool varies_by_all(const Fields& fields) {
  return fields.has(FieldId::kVary) && selecting_names(fields) == "*";
}

// Content-Location names the target itself (RFC 9110 9.3.3).
bool describes_target(const Target& target, const ResponseHead& response) {
  const Field* location = response.fields.find(FieldId::kContentLocation);
  if (location == nullptr || response.fields.count(FieldId::kContentLocation) != 1) return false;
  std::string storage;
  Target described;
  if (!resolve_reference(location->value, target, storage, described)) return false;
  const auto key = [](const Target& uri) {
    std::string text(key_bytes_max(uri), '\0');
    text.resize(write_key(uri, {}, text).bytes);
    return text;
  };
  return key(described) == key(target);
}

// Could a stored copy ever be of use, be it after validation or in an error's stead?
bool is_reusable(const ResponseHead& response, const ResponseDirectives& directives,
                 const Lifetime& lifetime, UnixSeconds arrival) noexcept {
  // One that has a validator is not asked for its date.
  const Fields& fields = response.fields;
  if (!fields.value(FieldId::kEtag).empty() ||
      parse_date(fields.value(FieldId::kLastModified), arrival)) {
    return true;
  }
  if (directives.no_cache) return false;
  return lifetime.seconds > 0 || directives.stale_if_error.value_or(0) > 0 ||
         directives.stale_while_revalidate.value_or(0) > 0;
}

// RFC 6585: what these say is of one client, or of the network before it.
bool is_of_one_client(unsigned status) noexcept {
  return status == 428 || status == 429 || status == 431 || status == 511;
}

bool is_storable_status(const RequestHead& request, const ResponseHead& response) noexcept {
  const unsigned status = response.status;
  if (status < 200 || status == 304 || request.method == Method::kConnect) return false;
  if (is_of_one_client(status)) return false;
  return status != 206 || partial_content(response).has_value();
}

// The clauses that forbid storing, in the order in which they are reported.
StoreReason forbidden(const RequestHead& request, const RequestDirectives& request_directives,
                      const ResponseHead& response, const ResponseDirectives& directives,
                      const StoreOptions& options) {
  if (options.refuses) return StoreReason::kRule;
  const bool get = request.method == Method::kGet || request.method == Method::kHead;
  if (!get && request.method != Method::kPost) return StoreReason::kMethod;
  if (request_directives.no_store) return StoreReason::kRequestNoStore;
  if (!is_storable_status(request, response)) return StoreReason::kStatus;
  if (directives.must_understand && !is_understood(response.status)) {
    return StoreReason::kNotUnderstood;
  }
  // must-understand, understood, overrides no-store (RFC 9111 5.2.2.3).
  if (directives.no_store && !directives.must_understand) return StoreReason::kNoStore;
  if (directives.is_private) return StoreReason::kPrivate;
  if (request.fields.has(FieldId::kAuthorization) && !options.ignored.authorization &&
      !directives.is_public && !directives.must_revalidate && !directives.s_maxage) {
    return StoreReason::kAuthorization;
  }
  if (!options.ignores_vary && varies_by_all(response.fields)) return StoreReason::kVaryStar;
  return StoreReason::kOk;
}

}  // namespace

std::string_view to_string(StoreReason reason) noexcept {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

void leave_out(ResponseDirectives& directives, const Ignored& ignored) noexcept {
  if (ignored.no_store) directives.no_store = false;
  if (ignored.is_private) directives.is_private = false;
  if (ignored.no_cache) directives.no_cache = false;
}

bool set_cookie_bars(const RequestHead& request, const Lifetime& lifetime,
                     const StoreOptions& options) noexcept {
  if (options.ignored.set_cookie) return false;
  switch (options.set_cookie) {
    case SetCookiePolicy::kStrip:
      return request.fields.has(FieldId::kCookie) || lifetime.source == LifetimeSource::kHeuristic;
    case SetCookiePolicy::kRefuse:
      return true;
    case SetCookiePolicy::kStore:
      return false;
  }
  return true;
}

StoreDecision may_store(const RequestHead& request, const Target& target,
                        const RequestDirectives& request_directives, const ResponseHead& response,
                        const ResponseDirectives& directives, UnixSeconds arrival,
                        const StoreOptions& options, Heuristic heuristic) {
  StoreDecision decision;
  decision.reason = forbidden(request, request_directives, response, directives, options);
  if (!decision.ok()) return decision;
  decision.lifetime =
      freshness_lifetime(response, directives, arrival, options.freshness, heuristic);
  const bool is_explicit = decision.lifetime.is_explicit();
  if (request.method == Method::kPost) {
    const bool good = response.status == 200 && is_explicit &&
                      decision.lifetime.source != LifetimeSource::kRule &&
                      describes_target(target, response);
    if (!good) decision.reason = StoreReason::kPost;
  } else {
    const bool allowed =
        is_explicit || directives.is_public || is_heuristically_cacheable(response.status);
    if (!allowed || !is_reusable(response, directives, decision.lifetime, arrival)) {
      decision.reason = StoreReason::kNoFreshness;
    }
  }
  if (decision.ok() && response.fields.has(FieldId::kSetCookie)) {
    const bool barred = set_cookie_bars(request, decision.lifetime, options);
    if (barred) decision.reason = StoreReason::kSetCookie;
    decision.strips_set_cookie =
        !barred && (options.ignored.set_cookie || (options.set_cookie == SetCookiePolicy::kStrip &&
                                                   !is_marked_shared(directives)));
  }
  return decision;
}

}  // namespace encore::http
