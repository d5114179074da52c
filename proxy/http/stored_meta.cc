#include "proxy/http/stored_meta.h"

#include <algorithm>

#include "proxy/http/validators.h"

namespace encore::http {
namespace {

std::uint16_t flags_of(const ResponseHead& response, const ResponseDirectives& directives,
                       const Validators& validators) noexcept {
  unsigned flags = 0;
  const auto set = [&flags](bool condition, StoredMeta::Flag flag) {
    if (condition) flags |= flag;
  };
  set(directives.no_cache, StoredMeta::kNoCache);
  // s-maxage carries proxy-revalidate with it (RFC 9111 5.2.2.10).
  set(directives.must_revalidate || directives.proxy_revalidate ||
          directives.s_maxage.has_value() || directives.no_cache,
      StoredMeta::kNeverStale);
  set(directives.immutable, StoredMeta::kImmutable);
  set(!validators.etag.empty(), StoredMeta::kHasEtag);
  set(is_strong_etag(validators.etag), StoredMeta::kStrongEtag);
  set(is_sure_date(validators.last_modified, validators.date), StoredMeta::kSureDate);
  set(directives.stale_if_error.has_value(), StoredMeta::kHasSie);
  set(response.status == 206, StoredMeta::kPartial);
  set(response.fields.has(FieldId::kVary), StoredMeta::kHasVary);
  return static_cast<std::uint16_t>(flags);
}

}  // namespace

void set_lifetime(StoredMeta& meta, const Lifetime& lifetime, MonotonicTime came) noexcept {
  meta.lifetime_seconds = lifetime.seconds;
  if (lifetime.source == LifetimeSource::kRule && lifetime.seconds != 0) {
    const auto age = std::chrono::floor<std::chrono::seconds>(came - meta.age_zero).count();
    const std::int64_t seconds = std::int64_t{lifetime.seconds} + std::max<std::int64_t>(age, 0);
    meta.lifetime_seconds = static_cast<std::uint32_t>(std::min<std::int64_t>(seconds, kDeltaMax));
  }
  meta.fresh_until = meta.age_zero + std::chrono::seconds(meta.lifetime_seconds);
  const bool is_guess = lifetime.source == LifetimeSource::kHeuristic;
  const bool never_fresh = lifetime.seconds == 0 || (is_guess && meta.fresh_until <= came);
  constexpr unsigned kSet = StoredMeta::kHeuristic | StoredMeta::kNeverFresh;
  unsigned flags = meta.flags & ~kSet;
  if (is_guess) flags |= StoredMeta::kHeuristic;
  if (never_fresh) flags |= StoredMeta::kNeverFresh;
  meta.flags = static_cast<std::uint16_t>(flags);
}

StoredMeta make_stored_meta(const ResponseHead& response, const ResponseDirectives& directives,
                            const Lifetime& lifetime, const Exchange& exchange) noexcept {
  const UnixSeconds arrival = to_unix(exchange.response_wall);
  Validators validators = received_validators(response, arrival);
  StoredMeta meta;
  meta.age_zero =
      exchange.response_time - corrected_initial_age(response.fields, exchange, validators.date);
  if (validators.date == kNoDate) validators.date = arrival;  // as the stored head will say
  meta.last_modified = validators.last_modified;
  meta.date = validators.date;
  meta.swr_seconds = directives.stale_while_revalidate.value_or(0);
  meta.sie_seconds = directives.stale_if_error.value_or(0);
  meta.status = response.status;
  meta.flags = flags_of(response, directives, validators);
  set_lifetime(meta, lifetime, exchange.response_time);
  return meta;
}

}  // namespace encore::http
