#include "proxy/origin/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cache/charge.h"
#include "filter/hash.h"
#include "proxy/http/cache_status.h"
#include "proxy/http/invalidation.h"
#include "proxy/http/tags.h"
#include "proxy/origin/changes.h"
#include "proxy/origin/entry.h"
#include "proxy/settings/url_keys.h"
#include "proxy/transfer/not_stored.h"

namespace encore::server {

bool has_large_head(const RequestContext& request, const ReceivedResponse& received,
                    const SharedResponse& response) {
  // A Date, a Content-Length, and where the parts of a body lie.
  constexpr std::size_t kAddedMax = 256;
  cache::ObjectSizes sizes = {
      .key = request.key.size() + response.names.size() + response.variant_key.size(),
      .meta = sizeof(ObjectMeta),
      .head = received.head_bytes.size() + kAddedMax};
  // Tags are kept once more, and are no more than the head.
  const std::size_t head = std::exchange(sizes.head, 2 * sizes.head);
  if (cache::is_object(sizes)) [[likely]]
    return false;
  const auto& names = request.runtime->config.cache.tag_fields;
  sizes.head = head + http::tags_in(received.head.fields, names).size();
  return !cache::is_object(sizes);
}

bool is_hinted(const RequestContext& request, const ReceivedResponse& received) {
  // After a redirection to another host no server of the route has spoken.
  if (request.route == nullptr || !request.route->trusts_hints()) return false;
  const auto status = http::last_cache_status(received.head.fields);
  return status && http::tells_of_earlier_request(*status);
}

bool is_refused_for_size(const OriginServices& services, const RequestContext& request,
                         const RequestPolicy& request_policy, std::uint64_t bytes) {
  const cache::Key key = cache_key(request);
  const MonotonicTime now = services.loop.now();
  const cache::Kernel& kernel = services.kernel;
  // A response too large for the memory is not refused if there are disks; on probation it
  // is at first.
  const Runtime& runtime = *request.runtime;
  const bool on_probation = runtime.config.admission.policy == config::Policy::kProbation &&
                            request_policy.admission.kind == cache::AdmissionRule::Kind::kPolicy;
  const std::uint64_t beyond =
      !on_probation && request_policy.max_object_bytes > runtime.max_memory_object_bytes
          ? std::min(bytes, runtime.max_memory_object_bytes)
          : bytes;
  // Only a refusal because of the size counts: a response that admission refuses at any size is
  // passed on.
  return bytes > request_policy.max_object_bytes ||
         (kernel.would_admit(key, now, 0, request_policy.admission) &&
          !kernel.would_admit(key, now, beyond, request_policy.admission));
}

namespace {

MonotonicTime end_of_memory(const OriginServices& services, const RequestContext& request) {
  return services.loop.now() + request.runtime->config.cache.uncacheable_memory;
}

}  // namespace

void remember_sharing(OriginServices& services, const RequestContext& request,
                      Inflight::Unshared unshared) {
  const std::uint64_t credentials = request.credentials();
  if (unshared == Inflight::Unshared::kNo) {
    services.inflight.forget_unshared(request.hash, credentials);
    return;
  }
  services.inflight.remember_unshared(request.hash, credentials, unshared,
                                      end_of_memory(services, request));
}

void keep_ranges_alone(OriginServices& services, const RequestContext& request) {
  services.inflight.keep_ranges_alone(request.hash, end_of_memory(services, request));
}

namespace {

bool is_beyond_memory(const RequestContext& request, const RequestPolicy& request_policy,
                      const StoringPlan& plan) {
  return plan.size_bytes > request.runtime->max_memory_object_bytes &&
         plan.size_bytes <= request_policy.max_object_bytes;
}

}  // namespace

ResponseBody::Use admit(OriginServices& services, const RequestContext& request,
                        const RequestPolicy& request_policy, const StoringPlan& plan,
                        std::uint32_t joined, SharedResponse& response) {
  response.shareable = plan.shareable;
  response.outcome = plan.outcome;
  if (plan.admission == Admission::kNone) return ResponseBody::Use::kPass;
  const bool counts = plan.admission == Admission::kCount;
  const auto reason =
      services.kernel.admit(cache_key(request),
                            {.variant = response.variant,
                             // A client that joined before the head is a request of its own: two at
                             // the same time already store (docs/decisions/0050).
                             .requests = counts ? 1 : 1 + joined,
                             .size_bytes = plan.size_bytes,
                             .disk_only = is_beyond_memory(request, request_policy, plan),
                             .hinted = plan.hinted,
                             .rule = response.admission},
                            services.loop.now());
  response.outcome = reason == cache::AdmitReason::kParentHint ? Outcome::kParentHint
                                                               : cache::outcome_of<Outcome>(reason);
  response.admitted = reason;
  // Admission knows the key alone. If it cannot be stored, the response is not said to be.
  if (counts || !plan.can_store) response.outcome = unless_stored(response.outcome);
  if (counts) {
    response.reason = http::StoreReason::kOk;
    return ResponseBody::Use::kPass;
  }
  if (!plan.can_store || reason == cache::AdmitReason::kTooLarge) return ResponseBody::Use::kPass;
  if (!cache::is_stored(reason)) return ResponseBody::Use::kMayStore;
  response.is_for_validation = plan.is_for_validation;
  return ResponseBody::Use::kStore;
}

void drop_stored(OriginServices& services, const RequestContext& request,
                 const store::Object& stored) {
  remove_entry(services, request, meta_of(stored).variant);
}

void invalidate_others(OriginServices& services, const RequestContext& request,
                       const http::ResponseHead& head) {
  if (!request.has_uri()) return;
  const Runtime& runtime = *request.runtime;
  // A rule may give a URL another key, and others the one that it has without a rule: all go.
  const RequestPolicy& without_rule = request.is_forward() ? runtime.forward : runtime.reverse;
  for (const std::string& uri :
       http::invalidated_keys(request.target, head, {.scheme = without_rule.keys.scheme})) {
    std::vector<std::string_view> realms = {kForwardRealm};
    if (!request.is_forward()) {
      // Location may lead to what another route of the same site answers.
      const Route* route = runtime.router.match_uri(uri);
      if (route == nullptr) continue;
      realms = {route->realm()};
      if (runtime.has_secure_realms) realms.emplace_back(route->secure_realm());
    }
    for (const std::string_view realm : realms) {
      for (const std::string& key :
           keys_of_url(uri, realm, runtime.rules, without_rule, request.is_forward())) {
        const auto hash = filter::hash_key(filter::HashFamily::kXxh3, services.identity_seed, key);
        // Noted before the entries go: a response on its way either sees the note and is not
        // stored, or is stored by now and goes with them (docs/decisions/0160).
        services.inflight.invalidate(hash, key);
        invalidate_entries(services, {hash, key});
        note_change(services, std::string_view(key).substr(kRealmBytes));
      }
    }
  }
}

}  // namespace encore::server
