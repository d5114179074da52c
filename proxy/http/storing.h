// May a response be stored (RFC 9111 3), by a shared cache. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/http/cache_control.h"
#include "proxy/http/freshness.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"

namespace encore::http {

#define ENCORE_HTTP_STORE_REASONS(X)                                            \
  X(kOk, "ok")                                                                  \
  X(kMethod, "method")   /* not GET or POST */                                  \
  X(kUpgrade, "upgrade") /* RFC 9110 7.8 */                                     \
  X(kRequestNoStore, "request-no-store")                                        \
  X(kNoStore, "no-store")                                                       \
  X(kPrivate, "private")                                                        \
  X(kAuthorization, "authorization")  /* RFC 9111 3.5 */                        \
  X(kStatus, "status")                /* 1xx, 304, of one client, some 206 */   \
  X(kNotUnderstood, "not-understood") /* must-understand */                     \
  X(kNoFreshness, "no-freshness")     /* nothing allows to store or reuse it */ \
  X(kVaryStar, "vary-star")                                                     \
  X(kVaryTooLarge, "vary-too-large") /* what the request says to select it */   \
  X(kSetCookie, "set-cookie")        /* SetCookiePolicy */                      \
  X(kRule, "rule")                   /* of the operator's */                    \
  X(kPost, "post")                   /* without freshness, Content-Location */

enum class StoreReason : std::uint8_t {
#define ENCORE_HTTP_REASON(id, name) id,
  ENCORE_HTTP_STORE_REASONS(ENCORE_HTTP_REASON)
#undef ENCORE_HTTP_REASON
};
std::string_view to_string(StoreReason reason) noexcept;

// Treatment of a response with Set-Cookie that may be stored otherwise. A cookie is made for one
// client; RFC 9111 7.3 leaves it to the origin to forbid storing it, and most forget.
enum class SetCookiePolicy : std::uint8_t {
  // Stored without its Set-Cookie; with it only where the origin marks the response for shared
  // caches (public, s-maxage, a targeted field). Not stored where the request carried a Cookie, for
  // the page may be its owner's, nor where its freshness is a guess of ours.
  kStrip,
  kRefuse,  // not stored
  kStore,   // stored as it came: the letter of RFC 9111 7.3
};

// Rules that an operator overrides by name, and no others: of the response, and `authorization` of
// the request.
struct Ignored {
  bool no_store = false;
  bool is_private = false;
  bool no_cache = false;
  bool set_cookie = false;  // it is stored without them, whatever SetCookiePolicy says
  bool authorization = false;
};
// Leaves out of the directives what is ignored.
void leave_out(ResponseDirectives& directives, const Ignored& ignored) noexcept;

struct StoreOptions {
  SetCookiePolicy set_cookie = SetCookiePolicy::kStrip;
  FreshnessOptions freshness = {};
  Ignored ignored = {};
  bool ignores_vary = false;
  bool refuses = false;  // nothing is stored, whatever the response
};

struct StoreDecision {
  StoreReason reason = StoreReason::kOk;
  Lifetime lifetime;
  // The stored response leaves its Set-Cookie lines out.
  bool strips_set_cookie = false;
  bool ok() const noexcept { return reason == StoreReason::kOk; }
};

// True if the origin says that a response is for shared caches.
inline bool is_marked_shared(const ResponseDirectives& directives) noexcept {
  return directives.is_public || directives.s_maxage.has_value() || directives.targeted;
}

// True if a Set-Cookie in a response to this request bars storing it.
bool set_cookie_bars(const RequestHead& request, const Lifetime& lifetime,
                     const StoreOptions& options) noexcept;

// Decides on the head alone; the caller checks that the body arrived whole. `directives` are the
// response's effective ones (targeted.h) without those that are ignored, `arrival` the wall clock's
// second. HEAD is judged as its GET would be. A 206 is allowed if its one part and place are known
// (range.h). For stored responses that were freshened see freshen() in stored_head.h.
StoreDecision may_store(const RequestHead& request, const Target& target,
                        const RequestDirectives& request_directives, const ResponseHead& response,
                        const ResponseDirectives& directives, UnixSeconds arrival,
                        const StoreOptions& options, Heuristic heuristic = Heuristic::kAllowed);

}  // namespace encore::http
