#include "proxy/http/freshness.h"

#include <algorithm>
#include <array>

namespace encore::http {
namespace {

constexpr std::array<unsigned, 12> kHeuristic = {200, 203, 204, 206, 300, 301,
                                                 308, 404, 405, 410, 414, 501};

std::uint32_t saturated(std::int64_t seconds) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, kDeltaMax));
}

// The shortest that the Expires lines give; one that is no date is in the past (RFC 9111 5.3).
std::uint32_t expires_lifetime(const Fields& fields, UnixSeconds date, UnixSeconds now) noexcept {
  std::uint32_t shortest = kDeltaMax;
  fields.for_each(FieldId::kExpires, [&](const Field& field) {
    const auto expires = parse_date(field.value, now);
    shortest = std::min(shortest, expires ? saturated(*expires - date) : 0);
  });
  return shortest;
}

std::uint32_t heuristic_lifetime(UnixSeconds unmodified_seconds,
                                 const FreshnessOptions& options) noexcept {
  const double seconds = static_cast<double>(unmodified_seconds) * options.heuristic_fraction;
  return static_cast<std::uint32_t>(
      std::clamp(seconds, 0.0, static_cast<double>(options.heuristic_seconds_max)));
}

}  // namespace

bool is_heuristically_cacheable(unsigned status) noexcept {
  return std::ranges::find(kHeuristic, status) != kHeuristic.end();
}

namespace {

// RFC 9111 5.4 gives Pragma no meaning in a response, but its sender wants no reuse: no guess says
// otherwise.
bool says_pragma_no_cache(const Fields& fields) noexcept {
  return fields.has(FieldId::kPragma) && !fields.has(FieldId::kCacheControl) &&
         fields.list_has(FieldId::kPragma, "no-cache");
}

Lifetime lifetime_by_origin(const ResponseHead& response, const ResponseDirectives& directives,
                            UnixSeconds arrival, const FreshnessOptions& options,
                            Heuristic heuristic) noexcept {
  if (directives.s_maxage) return {LifetimeSource::kSMaxAge, *directives.s_maxage};
  if (directives.max_age) return {LifetimeSource::kMaxAge, *directives.max_age};
  const Fields& fields = response.fields;
  const UnixSeconds date = parse_date(fields.value(FieldId::kDate), arrival).value_or(arrival);
  if (fields.has(FieldId::kExpires) && !directives.targeted) {
    return {LifetimeSource::kExpires, expires_lifetime(fields, date, arrival)};
  }
  if (!is_heuristically_cacheable(response.status) && !directives.is_public) return {};
  const auto modified = parse_date(fields.value(FieldId::kLastModified), arrival);
  if (!modified) return {};
  if (heuristic == Heuristic::kBarred || (says_pragma_no_cache(fields) && !directives.targeted)) {
    return {LifetimeSource::kHeuristic, 0};
  }
  return {LifetimeSource::kHeuristic, heuristic_lifetime(date - *modified, options)};
}

constexpr unsigned kFirstError = 400;

}  // namespace

std::optional<std::uint32_t> ruled_lifetime(unsigned status, const LifetimeRule& rule) noexcept {
  if (status < kFirstError) return rule.seconds;
  for (const LifetimeRule::ByStatus& error : rule.errors) {
    if (status >= error.first && status <= error.last) return error.seconds;
  }
  return std::nullopt;
}

Lifetime freshness_lifetime(const ResponseHead& response, const ResponseDirectives& directives,
                            UnixSeconds arrival, const FreshnessOptions& options,
                            Heuristic heuristic) noexcept {
  const LifetimeRule& rule = options.rule;
  if (const auto seconds = ruled_lifetime(response.status, rule)) {
    return {LifetimeSource::kRule, *seconds};
  }
  Lifetime lifetime = lifetime_by_origin(response, directives, arrival, options, heuristic);
  if (response.status >= kFirstError) return lifetime;
  if (rule.seconds_min && lifetime.seconds < *rule.seconds_min) {
    return {LifetimeSource::kRule, *rule.seconds_min};
  }
  if (rule.seconds_max && lifetime.seconds > *rule.seconds_max) {
    lifetime.seconds = *rule.seconds_max;
  }
  return lifetime;
}

std::uint32_t age_value(const Fields& fields) noexcept {
  const Field* field = fields.find(FieldId::kAge);
  if (field == nullptr) return 0;
  const std::string_view first = trim_ows(field->value.substr(0, field->value.find(',')));
  return parse_delta(first).value_or(0);
}

Nanoseconds corrected_initial_age(const Fields& fields, const Exchange& exchange) noexcept {
  const UnixSeconds arrival = to_unix(exchange.response_wall);
  return corrected_initial_age(fields, exchange,
                               parse_date(fields.value(FieldId::kDate), arrival).value_or(kNoDate));
}

Nanoseconds corrected_initial_age(const Fields& fields, const Exchange& exchange,
                                  UnixSeconds date) noexcept {
  using std::chrono::seconds;
  const Nanoseconds delay =
      std::max(exchange.response_time - exchange.request_time, Nanoseconds(0));
  const Nanoseconds age = seconds(age_value(fields)) + delay;
  if (date == kNoDate || date >= to_unix(exchange.response_wall - delay)) return age;
  return std::max<Nanoseconds>(age, seconds(saturated(to_unix(exchange.response_wall) - date)));
}

}  // namespace encore::http
