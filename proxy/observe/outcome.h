// Outcome of a request: the one enum from which the access log, the counters and the Cache-Status
// field are written. Each row has the name (log, metrics) and the class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace encore::server {

// Source of the response, for hit ratios.
enum class OutcomeClass : std::uint8_t { kHit, kMiss, kPass, kError };
inline constexpr std::size_t kOutcomeClassCount = 4;
inline constexpr std::array<std::string_view, kOutcomeClassCount> kOutcomeClassNames = {
    "hit", "miss", "pass", "error"};

//  enumerator          name in log and metrics   class
#define ENCORE_OUTCOMES(X)                            \
  X(kHit, "hit", kHit)                                \
  X(kStale, "stale", kHit)                            \
  X(kRevalidated, "revalidated", kHit)                \
  X(kFirstRequest, "first-request", kMiss)            \
  X(kSecondRequest, "second-request", kMiss)          \
  X(kAdmitted, "admitted", kMiss)                     \
  X(kCollapsed, "collapsed", kMiss)                   \
  X(kNotAdmitted, "not-admitted", kMiss)              \
  X(kTooLarge, "too-large", kMiss)                    \
  X(kProbation, "probation", kMiss)                   \
  X(kFill, "fill", kMiss)                             \
  X(kTooLargeToWait, "too-large-to-wait", kMiss)      \
  X(kParentHint, "parent-hint", kMiss)                \
  X(kUncacheable, "uncacheable", kMiss)               \
  X(kBypass, "bypass", kPass)                         \
  X(kMethod, "method", kPass)                         \
  X(kTunnel, "tunnel", kPass)                         \
  X(kIntercepted, "intercepted", kPass)               \
  X(kUpgrade, "upgrade", kPass)                       \
  X(kPublished, "published", kPass)                   \
  X(kChallenge, "challenge", kPass)                   \
  X(kRule, "rule", kPass)                             \
  X(kPurge, "purge", kPass)                           \
  X(kBadRequest, "bad-request", kError)               \
  X(kDenied, "denied", kError)                        \
  X(kNoRoute, "no-route", kError)                     \
  X(kLoop, "loop", kError)                            \
  X(kOnlyIfCached, "only-if-cached", kError)          \
  X(kOriginUnreachable, "origin-unreachable", kError) \
  X(kOriginTimeout, "origin-timeout", kError)         \
  X(kOriginInvalid, "origin-invalid", kError)         \
  X(kOriginAborted, "origin-aborted", kError)         \
  X(kCacheAborted, "cache-aborted", kError)           \
  X(kClientAborted, "client-aborted", kError)         \
  X(kDrained, "drained", kError)                      \
  X(kSlowReader, "slow-reader", kError)               \
  X(kNoMemory, "no-memory", kError)                   \
  X(kInternal, "internal", kError)

enum class Outcome : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name, group) id,
  ENCORE_OUTCOMES(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};

inline constexpr std::size_t kOutcomeCount = 0
#define ENCORE_COUNT(id, name, group) +1  // NOLINT(bugprone-macro-parentheses): a term of a sum
    ENCORE_OUTCOMES(ENCORE_COUNT)
#undef ENCORE_COUNT
    ;

inline constexpr std::array<std::string_view, kOutcomeCount> kOutcomeNames = {
#define ENCORE_NAME(id, name, group) name,
    ENCORE_OUTCOMES(ENCORE_NAME)
#undef ENCORE_NAME
};

inline constexpr std::array<OutcomeClass, kOutcomeCount> kOutcomeClasses = {
#define ENCORE_CLASS(id, name, group) OutcomeClass::group,
    ENCORE_OUTCOMES(ENCORE_CLASS)
#undef ENCORE_CLASS
};

constexpr std::string_view to_string(Outcome outcome) {
  return kOutcomeNames.at(static_cast<std::size_t>(outcome));
}
constexpr OutcomeClass class_of(Outcome outcome) {
  return kOutcomeClasses.at(static_cast<std::size_t>(outcome));
}

}  // namespace encore::server
