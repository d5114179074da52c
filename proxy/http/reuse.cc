#include "proxy/http/reuse.h"

#include <algorithm>
#include <array>

namespace encore::http {
namespace {

using std::chrono::seconds;

// How far the response is beyond what both the origin and the request allow; not positive: fresh.
Nanoseconds staleness(const StoredMeta& meta, const RequestDirectives& request,
                      MonotonicTime now) noexcept {
  const Nanoseconds margin = seconds(request.min_fresh.value_or(0));
  // Fresh as long as lifetime > age, so that at their equality it is stale already.
  Nanoseconds beyond = now - meta.fresh_until + margin + Nanoseconds(1);
  const bool immutable_now = meta.is(StoredMeta::kImmutable) && now < meta.fresh_until;
  if (request.max_age && !immutable_now) {
    beyond = std::max(beyond, now - meta.age_zero - seconds(*request.max_age));
  }
  return beyond;
}

RequestDirectives without_reload(RequestDirectives request) noexcept {
  request.no_cache = false;
  request.max_age.reset();
  request.min_fresh.reset();
  return request;
}

// True if the request itself is content with a response of this age in spite of its staleness.
bool accepts_while_revalidating(const StoredMeta& meta, const RequestDirectives& request,
                                MonotonicTime now) noexcept {
  if (request.min_fresh) return false;
  return !request.max_age || now - meta.age_zero <= seconds(*request.max_age);
}

ReuseDecision decide(const StoredMeta& meta, const RequestDirectives& request,
                     MonotonicTime now) noexcept {
  const bool stale = is_stale(meta, now);
  if (stale) now = std::max(now, meta.fresh_until);
  if (meta.is(StoredMeta::kNoCache) || meta.is(StoredMeta::kInvalidated)) {
    return {Reuse::kMustValidate, ForwardCause::kStale};
  }
  if (request.no_cache) return {Reuse::kMustValidate, ForwardCause::kRequest};
  const Nanoseconds beyond = staleness(meta, request, now);
  if (beyond <= Nanoseconds(0)) return {Reuse::kFresh, ForwardCause::kNone};
  const bool may_be_stale = !stale || !meta.is(StoredMeta::kNeverStale);
  // A request may stretch freshness, not give it: one that never was fresh may be its owner's
  // alone. Why no window of the configuration gives it either: docs/decisions/0300.
  const bool may_stretch = may_be_stale && !meta.is(StoredMeta::kNeverFresh);
  if (may_stretch && request.max_stale &&
      (*request.max_stale == kDeltaMax || beyond <= seconds(*request.max_stale))) {
    return {stale ? Reuse::kStaleAllowed : Reuse::kFresh, ForwardCause::kNone};
  }
  if (stale && may_be_stale && now < meta.fresh_until + seconds(meta.swr_seconds) &&
      accepts_while_revalidating(meta, request, now)) {
    return {Reuse::kStaleWhileRevalidate, ForwardCause::kNone};
  }
  return {Reuse::kMustValidate, stale ? ForwardCause::kStale : ForwardCause::kRequest};
}

}  // namespace

bool blames_the_request(unsigned status) noexcept {
  static constexpr std::array<unsigned, 19> kBlaming = {400, 405, 406, 407, 408, 411, 412,
                                                        413, 414, 415, 416, 417, 421, 422,
                                                        425, 426, 428, 429, 431};
  return status >= kBlaming.front() && std::ranges::find(kBlaming, status) != kBlaming.end();
}

ReuseDecision decide_reuse(const StoredMeta& meta, const RequestDirectives& request,
                           MonotonicTime now, const ReuseOptions& options) noexcept {
  ReuseDecision decision =
      decide(meta, options.ignore_client_reload ? without_reload(request) : request, now);
  if (decision.action == Reuse::kMustValidate && request.only_if_cached) {
    decision = {Reuse::kGatewayTimeout, ForwardCause::kNone};
  }
  return decision;
}

bool may_share(const StoredMeta& meta, const RequestDirectives& request, MonotonicTime now,
               const ReuseOptions& options) noexcept {
  return !is_stale(meta, now) && decide_reuse(meta, request, now, options).action == Reuse::kFresh;
}

ValidatorStrength wanted_proof(const StoredMeta& meta, MonotonicTime stale_from,
                               const RequestDirectives& request,
                               const ReuseOptions& options) noexcept {
  // The index of a disk knows times to the second.
  constexpr Nanoseconds kInexact = seconds(1);
  const bool ended_early = stale_from < meta.fresh_until - kInexact;
  const bool is_reload = request.no_cache && !options.ignore_client_reload;
  const bool is_doubted = meta.is(StoredMeta::kInvalidated) || ended_early || is_reload;
  return is_doubted ? ValidatorStrength::kStrong : ValidatorStrength::kUsual;
}

bool may_serve_stale(const StoredMeta& meta, const RequestDirectives& request, MonotonicTime now,
                     OriginFailure failure, const StaleOptions& options) noexcept {
  if (meta.is(StoredMeta::kNoCache) || meta.is(StoredMeta::kInvalidated) ||
      (request.no_cache && !options.ignore_client_reload)) {
    return false;
  }
  if (!is_stale(meta, now)) return true;
  now = std::max(now, meta.fresh_until);
  if (meta.is(StoredMeta::kNeverStale)) return false;
  std::uint32_t window = 0;
  if (meta.is(StoredMeta::kNeverFresh)) {
    window = meta.sie_seconds;
  } else if (meta.is(StoredMeta::kHasSie) || request.stale_if_error) {
    window = std::max(meta.sie_seconds, request.stale_if_error.value_or(0));
  } else {
    window = failure == OriginFailure::kUnreachable ? options.unreachable_seconds_max
                                                    : options.error_status_seconds_max;
  }
  return now < meta.fresh_until + seconds(window);
}

}  // namespace encore::http
