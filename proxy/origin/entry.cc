#include "proxy/origin/entry.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>

#include "proxy/disk/disks.h"
#include "proxy/http/conditional.h"
#include "proxy/http/targeted.h"
#include "proxy/request/request_ids.h"
#include "proxy/transfer/saved_object.h"

namespace encore::server {

http::ResponseDirectives governing_directives(const RequestContext& request,
                                              const ReceivedResponse& received) {
  auto directives = http::effective_directives(received.head.fields, request.targets());
  http::leave_out(directives, received.request_policy->store.ignored);
  // The id of a request is for its sender alone, even if the response is for others, too.
  if (received.head.fields.find(kRequestIdName) != nullptr) {
    directives.stripped_fields.emplace_back(kRequestIdName);
  }
  return directives;
}

bool came_with_cookie(const RequestContext& request, const ReceivedResponse& received) {
  return request.sends_cookie() || received.part_with_cookie;
}

http::Heuristic heuristic_for(const RequestContext& request, const ReceivedResponse& received) {
  const bool allowed = received.request_policy->store.freshness.heuristic_with_cookie ||
                       !came_with_cookie(request, received);
  return allowed ? http::Heuristic::kAllowed : http::Heuristic::kBarred;
}

void complete_meta(const RequestContext& request, const ReceivedResponse& received,
                   http::StoredMeta& meta) {
  if (received.private_origin) meta.flags |= http::StoredMeta::kPrivateOrigin;
  if (request.rule != nullptr && request.rule->rechecks()) {
    meta.flags |= http::StoredMeta::kWantsPermission;
  }
  const RequestPolicy& request_policy = *received.request_policy;
  if (meta.is(http::StoredMeta::kNeverFresh) &&
      !http::ruled_lifetime(meta.status, request_policy.store.freshness.rule)) {
    // The operator may narrow what the origin permits, but not permit it in the origin's place.
    meta.swr_seconds = std::min(meta.swr_seconds, request_policy.swr_seconds.value_or(UINT32_MAX));
    meta.sie_seconds = std::min(meta.sie_seconds, request_policy.sie_seconds.value_or(UINT32_MAX));
    return;
  }
  if (request_policy.swr_seconds) {
    meta.swr_seconds = *request_policy.swr_seconds;
  } else if (!received.directives.stale_while_revalidate && meta.swr_seconds == 0) {
    meta.swr_seconds = request_policy.swr_seconds_default;
  }
  if (request_policy.sie_seconds) {
    meta.sie_seconds = *request_policy.sie_seconds;
    meta.flags |= http::StoredMeta::kHasSie;
  } else if (meta.is(http::StoredMeta::kNeverFresh) && !meta.is(http::StoredMeta::kHasSie)) {
    // By a rule's fresh = "0s": of such a response the record alone says how long it may be stale.
    meta.sie_seconds = request_policy.stale.error_status_seconds_max;
    meta.flags |= http::StoredMeta::kHasSie;
  }
}

MonotonicTime keep_until(const RequestContext& request, const ReceivedResponse& received,
                         const http::StoredMeta& meta) {
  const config::Cache& cache = request.runtime->config.cache;
  Nanoseconds keep = std::max<Nanoseconds>(std::chrono::seconds(meta.swr_seconds),
                                           std::chrono::seconds(meta.sie_seconds));
  const bool validator = meta.is(http::StoredMeta::kHasEtag) || meta.last_modified != http::kNoDate;
  const bool once_fresh = !meta.is(http::StoredMeta::kNeverFresh);
  // With a validator an expired response saves its body. Without one it is only of use while its
  // origin fails.
  if (validator || (cache.serve_stale_on_error && once_fresh)) {
    keep = std::max(keep, cache.keep_stale);
  }
  if (once_fresh && !meta.is(http::StoredMeta::kNeverStale)) {
    keep = std::max(keep, cache.stale_if_error);
  }
  return std::max(meta.fresh_until, received.time) + keep;
}

namespace {

// Sets what the kernel has to know of the object's record.
void ask_for_disk(OriginServices& services, const store::Object& object, cache::Stored& stored) {
  const auto bytes = record_bytes_of(object);
  if (!bytes) return;
  const auto names = services.kernel.intern(names_of(object), services.loop.now());
  if (!names) return;
  stored.disk_bytes = *bytes;
  stored.disk_names = *names;
  stored.disk_queue_full = services.disks->is_queue_full();
}

// LatestResponses::Answer::etag.
std::uint64_t number_of_etag(const store::Object& object) {
  const http::StoredMeta& meta = meta_of(object).http;
  if (!meta.is(http::StoredMeta::kStrongEtag)) return 0;
  const std::string_view etag = http::stored_validators(meta, stored_head_of(object)).etag;
  return etag.empty() ? 0 : std::hash<std::string_view>()(etag);
}

}  // namespace

cache::CommitOutcome commit_entry(OriginServices& services, const RequestContext& request,
                                  const Entry& entry) {
  const store::Object& object = *entry.object;
  const ObjectMeta& meta = meta_of(object);
  const MonotonicTime now = services.loop.now();
  cache::Stored stored{.variant = meta.variant,
                       .charge_bytes = object.charge_with_forms(),
                       .fresh_until = meta.http.fresh_until,
                       .keep_until = entry.keep_until,
                       .payload = entry.object.payload()};
  const LatestResponses::Variant variant{.key = request.hash, .number = meta.variant};
  const InvalidatedSinceRequest invalidation_check(
      services, request, entry.received, variant,
      {.date = meta.http.date,
       .requested = entry.received.request_time,
       .etag = number_of_etag(object),
       .is_part = entry.received.head.status == 206 || entry.received.completed,
       .fresh_until = meta.http.fresh_until});
  stored.invalidation_check = &invalidation_check;
  // Before it can be found: what comes late at the same time sees it, or is replaced
  // (docs/decisions/0360).
  invalidation_check.note();
  stored.waits = cache::is_on_probation(entry.admitted);
  if (services.disks != nullptr && entry.admitted != cache::AdmitReason::kWaits) {
    ask_for_disk(services, object, stored);
  }
  if (is_on_disk_alone(object)) {
    stored.disk_only = true;
    stored.charge_bytes = 0;
    stored.payload = 0;
  }
  // The kernel's own: others may have it evicted before this call returns.
  store::ObjectRef kept = entry.object;
  cache::DiskDecision decision;
  const cache::Key key = cache_key(request);
  const auto outcome = services.kernel.commit(key, stored, entry.reserved_bytes, now, &decision);
  if (!stored.disk_only &&
      (outcome == cache::CommitOutcome::kStored || outcome == cache::CommitOutcome::kReplaced)) {
    (void)kept.detach();
  }
  if (services.disks != nullptr) {
    const bool is_placed = decision.outcome == cache::DiskOutcome::kPlaced;
    services.disks->decided(
        key, decision,
        is_placed
            ? make_record_source(entry.object, key.hash, {stored.fresh_until, stored.keep_until},
                                 {now, services.loop.wall_now(), services.disks->run()})
            : nullptr);
  }
  if (stored.disk_only) {
    // Informs the store that no kernel has it.
    const store::Payload given_up = kept.detach();
    services.store.release(std::span(&given_up, 1));
  }
  return outcome;
}

void remove_entry(OriginServices& services, const RequestContext& request, std::uint64_t variant) {
  cache::DiskTombstone tombstone;
  const cache::Key key = cache_key(request);
  services.kernel.remove(key, variant, services.loop.now(), &tombstone);
  if (services.disks != nullptr && tombstone) services.disks->add_tombstone(key.hash, tombstone);
}

void invalidate_entries(OriginServices& services, const cache::Key& key) {
  cache::DiskTombstone tombstone;
  services.kernel.invalidate(key, services.loop.now(), &tombstone);
  if (services.disks == nullptr) return;
  // Also if nothing is here: a disk that is away may have the key, and has missed a purge
  // (docs/decisions/0390).
  services.disks->note_purge();
  if (tombstone) services.disks->add_tombstone(key.hash, tombstone);
}

void mark_entries_stale(OriginServices& services, const RequestContext& request) {
  cache::DiskTombstone tombstone;
  const cache::Key key = cache_key(request);
  services.kernel.mark_stale(key, services.loop.now(), &tombstone);
  if (services.disks != nullptr && tombstone) services.disks->add_tombstone(key.hash, tombstone);
}

void end_older(OriginServices& services, const RequestContext& request,
               const ReceivedResponse& received, const SharedResponse& response) {
  const LatestResponses::Variant variant{.key = request.hash, .number = response.variant};
  // A HEAD's 200 speaks of the stored response by itself (freshening.h); of a part that does not
  // fit nothing follows for the whole.
  if (request.head.method != http::Method::kGet || received.head.status == 206) return;
  const InvalidatedSinceRequest invalidation_check(
      services, request, received, variant,
      {.date = response.meta.date, .requested = received.request_time});
  if (invalidation_check.is_overtaken()) return;
  // Noted before the older one goes: a response that comes late sees it (docs/decisions/0360).
  invalidation_check.note();
  remove_entry(services, request, variant.number);
}

namespace {

// True if `rule` overrides more of what a response says about its audience than `other`.
bool ignores_more(const http::StoreOptions& rule, const http::StoreOptions& other) {
  const http::Ignored& a = rule.ignored;
  const http::Ignored& b = other.ignored;
  return (a.no_store && !b.no_store) || (a.is_private && !b.is_private) ||
         (a.no_cache && !b.no_cache) || (a.set_cookie && !b.set_cookie) ||
         (a.authorization && !b.authorization) || (rule.ignores_vary && !other.ignores_vary);
}

// True if a reload took back what the response would be stored by: it was requested by rules that
// override more of its audience than the present ones, or that ask in another way. Why not all
// older responses are refused: docs/decisions/0411.
bool is_by_rule_of_before(const OriginServices& services, const RequestContext& request,
                          const ReceivedResponse& received) {
  const Runtime& present = services.worker.present_runtime();
  if (&present == request.runtime.get() || !request.has_uri()) return false;
  const RuleQuery query = request.rule_query(request.listener_text());
  const Rule* const by_request = present.rules.find(query).rule;
  const auto request_change_suffix = [](const Rule* rule) {
    return rule == nullptr ? std::string_view() : std::string_view(rule->request_change_suffix());
  };
  if (request_change_suffix(request.rule) != request_change_suffix(by_request)) return true;
  const Rule* const rule = present.rules.find(
      query, media_type(received.head.fields.value(http::FieldId::kContentType)));
  const RequestPolicy& without = request.is_forward() ? present.forward : present.reverse;
  const RequestPolicy& now = rule == nullptr ? without : rule->request_policy(request.is_forward());
  return ignores_more(received.request_policy->store, now.store);
}

}  // namespace

// True if the newer one was purged since it was stored.
bool InvalidatedSinceRequest::is_gone(const LatestResponses::Newer& newer) const {
  return !newer.came_meanwhile &&
         services_.inflight.invalidations().has_since(request_.hash, newer.invalidations);
}

bool InvalidatedSinceRequest::is_overtaken() const {
  if (server::is_overtaken(services_, request_, received_)) return true;
  const auto newer =
      services_.inflight.latest_responses().newer_than(variant_, answer_, services_.loop.now());
  return newer && !is_gone(*newer);
}

void InvalidatedSinceRequest::note() const {
  LatestResponses& answers = services_.inflight.latest_responses();
  const MonotonicTime now = services_.loop.now();
  auto gone = answers.newer_than(variant_, answer_, now);
  if (gone && !is_gone(*gone)) gone.reset();
  LatestResponses::Answer noted = answer_;
  // The tag of a whole does not count.
  if (!noted.is_part) noted.etag = 0;
  noted.invalidations = services_.inflight.invalidations().count();
  answers.note(variant_, noted, now, gone);
}

bool is_overtaken(const OriginServices& services, const RequestContext& request,
                  const ReceivedResponse& received) {
  return services.inflight.invalidations().has_since(request.hash, received.invalidations_seen) ||
         is_by_rule_of_before(services, request, received);
}

}  // namespace encore::server
