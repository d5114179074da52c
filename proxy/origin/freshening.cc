#include "proxy/origin/freshening.h"

#include <span>
#include <string>

#include "cache/charge.h"
#include "proxy/http/conditional.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/tags.h"
#include "proxy/http/vary.h"
#include "proxy/origin/changes.h"
#include "proxy/origin/entry.h"
#include "proxy/origin/response_plan.h"
#include "proxy/transfer/coded_form.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Puts the freshened response in the place of the old one. False where there is no room for it.
bool store_freshened(OriginServices& services, const RequestContext& request,
                     const ReceivedResponse& received, const ObjectMeta& meta,
                     std::uint64_t old_variant, store::ObjectRef& made) {
  const cache::Key key = cache_key(request);
  const MonotonicTime now = services.loop.now();
  const MonotonicTime keep = keep_until(request, received, meta.http);
  bool stored = false;
  // By other selecting fields it is another variant, which is another entry.
  bool is_replaced = meta.variant != old_variant;
  bool is_outdated = false;
  const LatestResponses::Variant variant{.key = request.hash, .number = old_variant};
  const InvalidatedSinceRequest invalidation_check(services, request, received, variant,
                                                   {.date = meta.http.date,
                                                    .requested = received.request_time,
                                                    .fresh_until = meta.http.fresh_until});
  // It confirms what was stored when it was requested, and nothing that came since
  // (docs/decisions/0360).
  if (is_overtaken(services, request, received) ||
      services.inflight.latest_responses().has_since(variant, received.request_time)) {
    services.stats.overtaken.add();
    return true;
  }
  ResidentMark resident(services, request);
  if (is_replaced) {
    remove_entry(services, request, old_variant);
  } else {
    invalidation_check.note();
    const auto outcome = services.kernel.freshen(key,
                                                 {.variant = meta.variant,
                                                  .charge_bytes = made->charge_with_forms(),
                                                  .fresh_until = meta.http.fresh_until,
                                                  .keep_until = keep,
                                                  .payload = made.payload(),
                                                  .invalidation_check = &invalidation_check},
                                                 now);
    stored = outcome == cache::FreshenOutcome::kFreshened;
    // Its record still says what it said before.
    is_replaced = is_outdated = outcome == cache::FreshenOutcome::kFreshenedOnDisk;
    if (stored) {
      store::ObjectRef kept = made;
      (void)kept.detach();
    }
  }
  if (is_replaced) {
    const std::uint64_t room =
        is_on_disk_alone(*made) ? 0 : made->charge_with_forms() + services.kernel.charge_of_entry();
    if (room != 0 && services.kernel.reserve(key, room, now) != cache::ReserveOutcome::kReserved) {
      // Not fresh, then, with the fields of before (RFC 9111 4.3.4).
      if (is_outdated) mark_entries_stale(services, request);
      return false;
    }
    const auto outcome =
        commit_entry(services, request,
                     {.object = made,
                      .received = received,
                      .keep_until = keep,
                      .admitted = meta.is_on_probation() ? cache::AdmitReason::kWaits
                                                         : cache::AdmitReason::kResident,
                      .reserved_bytes = room});
    stored = outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced;
  }
  if (stored && !is_on_disk_alone(*made)) resident.keep();
  // If the cache let it go meanwhile, it is as good for those who wait.
  return true;
}

// True if Last-Modified is as sure of the body as the dates of the freshened response have it. The
// Date of a 304 is no Date of the body, but where a strong entity tag says that it is the same
// (docs/decisions/0401).
bool is_sure(const store::Object& old, const ReceivedResponse& received,
             const http::StoredMeta& made) {
  const http::StoredMeta& before = meta_of(old).http;
  const http::Validators stored = http::stored_validators(before, stored_head_of(old));
  return http::strong_match(stored.etag, received.head.fields.value(http::FieldId::kEtag)) ||
         (before.is(http::StoredMeta::kSureDate) && before.last_modified == made.last_modified);
}

// The present head of the response may forbid it.
bool may_stay_coded(const RequestContext& request, const store::Object& object) {
  if (!request.runtime->compression) return false;
  http::ResponseHead head;
  http::read_stored_head(stored_head_of(object), head);
  return request.runtime->compression->covers(head, body_length_of(object));
}

}  // namespace

http::ValidatorStrength proof_wanted(const RequestContext& request, const store::Object& stored,
                                     MonotonicTime stale_from) {
  return http::wanted_proof(meta_of(stored).http, stale_from, request.directives, request.reuse());
}

void note_refresh(OriginServices& services, const RequestContext& request, Refresh refresh) {
  RefreshBackoff& pauses = services.inflight.refresh_backoff();
  if (refresh == Refresh::kDone) {
    pauses.note_success(request.hash);
  } else {
    pauses.note_failure(request.hash, services.loop.now());
  }
}

Confirmed freshen_stored(OriginServices& services, const RequestContext& request,
                         const ReceivedResponse& received, const store::ObjectRef& old) {
  const Runtime& runtime = *request.runtime;
  ObjectMeta meta = meta_of(*old);
  const bool with_cookie = meta.http.is(http::StoredMeta::kWithCookie);
  const bool may_guess =
      !with_cookie || received.request_policy->store.freshness.heuristic_with_cookie;
  std::string head;
  const http::Freshened freshened = http::freshen(
      stored_head_of(*old), received.head,
      {.request = request.head,
       .target = request.target,
       .directives = request.directives,
       .targets = request.targets(),
       .vary = request.vary(),
       .exchange = received.exchange(),
       .heuristic = may_guess ? heuristic_for(request, received) : http::Heuristic::kBarred,
       .withheld = received.directives.stripped_fields},
      received.request_policy->store, request.head_options(), head);
  meta.http = freshened.meta;
  if (!is_sure(*old, received, meta.http)) {
    meta.http.flags &= static_cast<std::uint16_t>(~http::StoredMeta::kSureDate);
  }
  if (with_cookie) meta.http.flags |= http::StoredMeta::kWithCookie;
  complete_meta(request, received, meta.http);
  place_content_type(head, meta);
  head += trailers_of(*old);
  if (const auto large = large_body_of(*old)) head += write_large_body(*large);
  std::string tags = http::tags_in(received.head.fields, runtime.config.cache.tag_fields);
  if (tags.empty()) tags = tags_of(*old);
  meta.tag_bytes = static_cast<std::uint32_t>(tags.size());
  head += tags;
  std::string key(old->key());
  bool allowed = freshened.decision.ok();
  // To a request with Cookie: no freshness is guessed of that, and its fields are for the one who
  // asked. The stored response came without one, and stays as it was.
  const bool is_for_one = !with_cookie && freshened.meta.is(http::StoredMeta::kHeuristic) &&
                          heuristic_for(request, received) == http::Heuristic::kBarred;
  if (allowed && freshened.names != names_of(*old)) {
    // It is this request's variant by other fields than it was stored by.
    std::string own;
    allowed = http::write_variant_key(freshened.names, request.head.fields, request.vary(), own);
    meta.variant = variant_of(freshened.names, own);
    meta.names_bytes = static_cast<std::uint32_t>(freshened.names.size());
    key = std::string(primary_key_of(*old)) + freshened.names + own;
  }
  auto made = services.store.with_head(
      old, {.key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head});
  // The body is the same, and so are its coded forms: only their heads change.
  if (made && may_stay_coded(request, **made)) carry_forms(services.store, *old, **made);
  Confirmed confirmed{.object = made ? *made : old};
  const bool is_too_large =
      !made && !cache::is_object({.key = key.size(), .meta = sizeof(meta), .head = head.size()});
  if (!made) confirmed.unstored = std::make_shared<const UnstoredHead>(meta, std::move(head));
  const std::uint64_t old_variant = meta_of(*old).variant;
  if (allowed && is_for_one) return confirmed;
  if (allowed && is_too_large) {
    // An object that cannot be kept with its new head would be validated at each request for ever
    // (docs/decisions/0391).
    services.stats.large_heads.add();
    remove_entry(services, request, old_variant);
  } else if (allowed) {
    confirmed.stays =
        made && store_freshened(services, request, received, meta, old_variant, *made);
  } else if (!is_of_the_request(freshened.decision.reason)) {
    remove_entry(services, request, old_variant);
  }
  return confirmed;
}

void update_by_head(OriginServices& services, const RequestContext& request,
                    const ReceivedResponse& received, const store::ObjectRef& old,
                    http::ValidatorStrength proof) {
  // Servers answer HEAD with 404, 405 or 403 where a GET gets 200: docs/decisions/0302.
  if (received.head.status != 200) return;
  const ObjectMeta& meta = meta_of(*old);
  const http::Validators stored = http::stored_validators(meta.http, stored_head_of(*old));
  const auto shown =
      http::compare_head(stored, received.head, body_length_of(*old), received.arrival(), proof);
  const bool same_status = received.head.status == meta.http.status;
  // Pages of two users may be of one length: it gives no freshness to one that never was fresh
  // (docs/decisions/0302).
  const bool is_same =
      shown == http::HeadEvidence::kSame ||
      (shown == http::HeadEvidence::kSameLength && !meta.http.is(http::StoredMeta::kNeverFresh));
  if (same_status && is_same) {
    (void)freshen_stored(services, request, received, old);
  } else if (!same_status || shown == http::HeadEvidence::kChange) {
    const MonotonicTime now = services.loop.now();
    services.latest_moment.note(now);
    mark_entries_stale(services, request);
    note_answer(services, request, received, *old);
  }
}

}  // namespace encore::server
