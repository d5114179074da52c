#include "proxy/exchange/shadow_requests.h"

#include "cache/charge.h"

namespace encore::server {
namespace {

// Returns for how long it is used without validation.
std::uint32_t fresh_seconds(const http::StoredMeta& meta) {
  constexpr unsigned kBarred = http::StoredMeta::kNoCache | http::StoredMeta::kInvalidated |
                               http::StoredMeta::kNeverFresh | http::StoredMeta::kWantsPermission;
  return (meta.flags & kBarred) != 0 ? 0 : meta.lifetime_seconds;
}

std::uint64_t charge_of(const store::Object& object) {
  if (!is_on_disk_alone(object)) return object.charge();
  return cache::charge_for({.key = object.key().size(),
                            .meta = sizeof(ObjectMeta),
                            .head = object.head().size(),
                            .body = body_length_of(object)});
}

}  // namespace

cache::ShadowRequest shadow_request(const store::Object& object, const filter::Hash128& key,
                                    const cache::AdmissionRule& rule) {
  const ObjectMeta& meta = meta_of(object);
  return {.key = key,
          .variant = meta.variant,
          .object_bytes = body_length_of(object),
          .charge_bytes = charge_of(object),
          .rule = rule.encoded(),
          .fresh_seconds = fresh_seconds(meta.http)};
}

cache::ShadowRequest shadow_request(const SharedResponse& response, const RequestContext& request,
                                    std::uint64_t sent_bytes) {
  const std::uint64_t body = response.length.value_or(sent_bytes);
  return {.key = request.hash,
          .variant = response.variant,
          .object_bytes = body,
          .charge_bytes = cache::charge_for(
              {.key = request.key.size() + response.names.size() + response.variant_key.size(),
               .meta = sizeof(ObjectMeta),
               .head = response.common_bytes,
               .body = body}),
          .rule = response.admission.encoded(),
          .fresh_seconds = fresh_seconds(response.meta)};
}

std::optional<ShadowTap::Served> served_as(Outcome outcome, const EndedExchange& ended) {
  if (ended.request.head.method != http::Method::kGet || !ended.request.is_cacheable()) {
    return std::nullopt;
  }
  const SharedResponse* const response = ended.response;
  switch (outcome) {
    case Outcome::kHit:
    case Outcome::kStale:
    case Outcome::kRevalidated:
      // A part that is stored is not the object.
      if (ended.object == nullptr || meta_of(*ended.object).http.is(http::StoredMeta::kPartial)) {
        return std::nullopt;
      }
      return outcome == Outcome::kHit ? ShadowTap::Served::kFresh : ShadowTap::Served::kValidated;
    case Outcome::kFirstRequest:
    case Outcome::kSecondRequest:
    case Outcome::kAdmitted:
    case Outcome::kNotAdmitted:
    case Outcome::kTooLarge:
    case Outcome::kProbation:
    case Outcome::kFill:
    case Outcome::kTooLargeToWait:
    case Outcome::kParentHint:
    case Outcome::kUncacheable:  // also if admission said yes, and it could not be stored
    case Outcome::kCollapsed:
      if (response == nullptr || !response->whole || response->reason != http::StoreReason::kOk) {
        return std::nullopt;
      }
      return ShadowTap::Served::kMissed;
    default:
      return std::nullopt;
  }
}

}  // namespace encore::server
