// May a response be stored (RFC 9111 3), by a shared cache. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/http/cache_control.h"
#include "proxy/http/framing.h"
#include "proxy/http/freshness.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"

namespace encore::http {

#define ENCORE_HTTP_STORE_REASONS(X)                                            \
  X(kOk, "ok")                                                                  \
  X(kMethod, "method") /* not GET or POST */                                    \
  X(kRequestNoStore, "request-no-store")                                        \
  X(kNoStore, "no-store")                                                       \
  X(kPrivate, "private")                                                        \
  X(kAuthorization, "authorization")  /* RFC 9111 3.5 */                        \
  X(kStatus, "status")                /* 1xx, 304, 206 that cannot be kept */   \
  X(kNotUnderstood, "not-understood") /* must-understand */                     \
  X(kNoFreshness, "no-freshness")     /* nothing allows to store or reuse it */ \
  X(kVaryStar, "vary-star")                                                     \
  X(kSetCookie, "set-cookie") /* by configuration */                            \
  X(kPost, "post")            /* without freshness, Content-Location */         \
  X(kUndecoded, "undecoded")  /* unknown transfer coding */

enum class StoreReason : std::uint8_t {
#define ENCORE_HTTP_REASON(id, name) id,
  ENCORE_HTTP_STORE_REASONS(ENCORE_HTTP_REASON)
#undef ENCORE_HTTP_REASON
};
std::string_view to_string(StoreReason reason) noexcept;

struct StoreOptions {
  bool store_set_cookie = true;  // false: a response with Set-Cookie is not stored
  FreshnessOptions freshness = {};
};

struct StoreDecision {
  StoreReason reason = StoreReason::kOk;
  Lifetime lifetime;
  bool ok() const noexcept { return reason == StoreReason::kOk; }
};

// Decides on the head alone; that the body arrived whole is the caller's to see. `directives` are
// the response's effective ones (targeted.h), `framing` its framing, `arrival` the wall clock's
// second. HEAD is judged as its GET would be. A 206 is allowed where its one part and place are
// known (range.h).
StoreDecision may_store(const RequestHead& request, const Target& target,
                        const RequestDirectives& request_directives, const ResponseHead& response,
                        const ResponseDirectives& directives, const Framing& framing,
                        UnixSeconds arrival, const StoreOptions& options);

}  // namespace encore::http
