// Freshness lifetime and age (RFC 9111 4.2). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "proxy/http/cache_control.h"
#include "proxy/http/date.h"
#include "proxy/http/message.h"

namespace encore::http {

// When one exchange with an origin happened: the clocks' readings as its response head arrived,
// and the monotonic one as its request was sent.
struct Exchange {
  WallTime response_wall;
  MonotonicTime response_time;
  MonotonicTime request_time;
};

// An operator's rule for freshness lifetimes, which overrides the origin's.
struct LifetimeRule {
  struct ByStatus {
    std::uint16_t first = 0;  // closed
    std::uint16_t last = 0;
    std::uint32_t seconds = 0;
  };
  std::optional<std::uint32_t> seconds = {};  // for all without an error
  std::optional<std::uint32_t> seconds_min = {};
  std::optional<std::uint32_t> seconds_max = {};
  std::vector<ByStatus> errors = {};  // the first that has the status holds
};

struct FreshnessOptions {
  double heuristic_fraction = 0.1;              // share of the time since Last-Modified (4.2.2)
  std::uint32_t heuristic_seconds_max = 86400;  // cap on it
  bool heuristic_with_cookie = false;           // also where the origin saw a Cookie
  LifetimeRule rule = {};
};

// kRule: an operator's word, which counts from when the response came, whatever its age.
enum class LifetimeSource : std::uint8_t { kNone, kHeuristic, kExpires, kMaxAge, kSMaxAge, kRule };

struct Lifetime {
  LifetimeSource source = LifetimeSource::kNone;
  std::uint32_t seconds = 0;
  bool is_explicit() const noexcept { return source >= LifetimeSource::kExpires; }
};

// The lifetime that an operator states for responses with this status; nothing: the origin decides,
// within the operator's bounds.
std::optional<std::uint32_t> ruled_lifetime(unsigned status, const LifetimeRule& rule) noexcept;

// Status codes that may be given heuristic freshness without more (RFC 9110 15.1).
bool is_heuristically_cacheable(unsigned status) noexcept;

// Whether freshness may be guessed. Not for a response to a request with Cookie: it may be made for
// its owner alone, and an origin that states no lifetime has not thought of who else gets it. Why
// `Vary: Cookie` is no exception: docs/decisions/0301.
enum class Heuristic : std::uint8_t { kAllowed, kBarred };

// s-maxage, else max-age, else Expires - Date, else the heuristic (none next to Pragma: no-cache
// without Cache-Control); an invalid value of one of these is 0, not the next one's turn. If Date
// is missing or invalid the time of arrival replaces it. An operator's rule comes before all of
// them.
Lifetime freshness_lifetime(const ResponseHead& response, const ResponseDirectives& directives,
                            UnixSeconds arrival, const FreshnessOptions& options,
                            Heuristic heuristic = Heuristic::kAllowed) noexcept;

// The Age field's value: the first member, digits only, saturated at kDeltaMax; 0 if missing or
// invalid (RFC 9111 5.1).
std::uint32_t age_value(const Fields& fields) noexcept;

// The age that the response had when its head arrived (RFC 9111 4.2.3): the larger of Age plus the
// time the exchange took, and what Date tells. A Date within the exchange tells nothing: its
// second is coarser than the exchange itself.
Nanoseconds corrected_initial_age(const Fields& fields, const Exchange& exchange) noexcept;
// The same where the response's Date has been read; kNoDate: it has none.
Nanoseconds corrected_initial_age(const Fields& fields, const Exchange& exchange,
                                  UnixSeconds date) noexcept;

}  // namespace encore::http
