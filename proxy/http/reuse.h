// May a stored response answer this request now (RFC 9111 4 and 5.2.1, RFC 5861, RFC 8246). Pure,
// thread-safe.
#pragma once

#include <cstdint>

#include "proxy/http/cache_control.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/validators.h"

namespace encore::http {

enum class Reuse : std::uint8_t {
  kFresh,                 // serve it
  kStaleAllowed,          // serve it stale: the request's max-stale
  kStaleWhileRevalidate,  // serve it stale and validate in the background
  kMustValidate,          // ask the origin first
  kGatewayTimeout,        // only-if-cached, and it may not be served: 504
};

// Why a request goes forward although something is stored (RFC 9211 2.2).
enum class ForwardCause : std::uint8_t { kNone, kStale, kRequest };

struct ReuseDecision {
  Reuse action = Reuse::kFresh;
  ForwardCause cause = ForwardCause::kNone;  // for kMustValidate
};

struct ReuseOptions {
  bool ignore_client_reload = false;  // no-cache, max-age, min-fresh and Pragma of clients
};

// For requests that have Cache-Control or Pragma, and for what is_fresh() denied. A response that
// never was fresh is validated before every use, unless its own stale-while-revalidate permits
// more: neither the request's max-stale nor a configured window does.
ReuseDecision decide_reuse(const StoredMeta& meta, const RequestDirectives& request,
                           MonotonicTime now, const ReuseOptions& options) noexcept;

// True if what another request brought (a response on its way, or a stored one that was just
// validated) answers this one too: only where the store alone would answer it now. Then it is
// fresh, and neither the response nor this request demands that the origin be asked. Why storing is
// not sharing: docs/decisions/0053.
bool may_share(const StoredMeta& meta, const RequestDirectives& request, MonotonicTime now,
               const ReuseOptions& options) noexcept;

// Returns the proof that a validation must give for a stored response that is stale for the cache
// from `stale_from` on. kStrong where there is a doubt beyond its age: an invalidation, a soft
// purge (it ends freshness before its time), a client that requests the origin's own response.
ValidatorStrength wanted_proof(const StoredMeta& meta, MonotonicTime stale_from,
                               const RequestDirectives& request,
                               const ReuseOptions& options) noexcept;

enum class OriginFailure : std::uint8_t {
  kErrorStatus,  // 500, 502, 503, 504
  kUnreachable,  // refused, closed, timed out, not resolved
};

// True if a status of a validation's answer counts as a failure of the origin (RFC 5861 4).
constexpr bool is_error_status(unsigned status) noexcept {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

// Client errors that say what is wrong with one request, and nothing of what it was for.
bool blames_the_request(unsigned status) noexcept;

struct StaleOptions {
  // Without stale-if-error, a stale response is served this long when its origin is unreachable
  // (RFC 9111 4.2.4); 0: never.
  std::uint32_t unreachable_seconds_max = 86400;
  // The same when it answers with an error status.
  std::uint32_t error_status_seconds_max = 0;
  bool ignore_client_reload = false;  // as ReuseOptions
};

// After validation failed: may the stored response be served stale? Not where the response
// forbids it, nor to a request that demanded validation. One that never was fresh is not used
// without its origin, unless it says so itself (stale-if-error).
bool may_serve_stale(const StoredMeta& meta, const RequestDirectives& request, MonotonicTime now,
                     OriginFailure failure, const StaleOptions& options) noexcept;

}  // namespace encore::http
