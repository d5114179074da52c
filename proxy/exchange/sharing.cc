#include "proxy/exchange/sharing.h"

#include "proxy/http/reuse.h"

namespace encore::server {
namespace {

// True if it comes from where this client may not go.
bool is_barred(const http::StoredMeta& meta, const RequestContext& request) {
  return meta.is(http::StoredMeta::kPrivateOrigin) &&
         !request.runtime->destinations.may_reach_private(request.client);
}

// Its origin says who may have it, and has not been asked of this client.
bool wants_permission(const http::StoredMeta& meta) {
  return meta.is(http::StoredMeta::kWantsPermission);
}

bool may_share(const http::StoredMeta& meta, const WaitingRequest& asker) {
  return !is_barred(meta, asker.request) && !wants_permission(meta) &&
         http::may_share(meta, asker.request.directives, asker.now, asker.request.reuse());
}

// The response to another request that is no answer to this one: a response that is shared with
// nobody says nothing about one to other credentials (docs/decisions/0400).
ShareDecision unanswered(bool shareable, const WaitingRequest& asker) {
  return shareable || asker.is_alike ? ShareDecision::kAskAlone : ShareDecision::kAskApart;
}

}  // namespace

bool may_be_found(const RequestContext& request) {
  return request.head.method == http::Method::kGet && request.request_policy->collapse &&
         !request.directives.no_store && !request.head.fields.has(http::FieldId::kAuthorization);
}

// A client that has something to validate gets its answer soonest by asking, if each has to
// validate (docs/decisions/0293).
bool may_lead(Inflight::Unshared unshared, bool has_stored) {
  return unshared == Inflight::Unshared::kNo ||
         (unshared == Inflight::Unshared::kValidated && !has_stored);
}

bool may_join(const RequestContext& request) {
  if (request.reuse().ignore_client_reload) return true;
  const http::RequestDirectives& directives = request.directives;
  return !directives.no_cache && directives.max_age.value_or(1) != 0;
}

ShareDecision may_take(const Validated& validated, const CacheView& found,
                       const WaitingRequest& asker) {
  const store::Object& object = *validated.object;
  if (asker.variants.make(names_of(object)) != variant_key_of(object))
    return ShareDecision::kAskAgain;
  const bool looked_up = &object == found.object.get();
  const http::StoredMeta meta =
      looked_up ? meta_until(object, found.fresh_until) : meta_of(object).http;
  // It would ask the same origin, and hear the same.
  if (validated.stale && !is_barred(meta, asker.request) && !wants_permission(meta)) {
    const auto failure = validated.status == 0 ? http::OriginFailure::kUnreachable
                                               : http::OriginFailure::kErrorStatus;
    const bool allowed = http::may_serve_stale(meta, asker.request.directives, asker.now, failure,
                                               asker.request.request_policy->stale);
    return allowed ? ShareDecision::kYes : ShareDecision::kAskAgain;
  }
  if (validated.shareable && may_share(meta, asker)) return ShareDecision::kYes;
  return unanswered(validated.shareable, asker);
}

// If it is merely another variant, waiting for a further one makes sense.
ShareDecision may_take(const SharedResponse& response, const WaitingRequest& asker) {
  const bool answers = response.shareable && may_share(response.meta, asker);
  if (!answers && !response.is_for_validation) return unanswered(response.shareable, asker);
  if (asker.variants.make(response.names) != response.variant_key) return ShareDecision::kAskAgain;
  return answers ? ShareDecision::kYes : ShareDecision::kOnceStored;
}

}  // namespace encore::server
