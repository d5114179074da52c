// Requests that were answered, in the form for simulated caches. Pure, thread-safe.
#pragma once

#include <optional>

#include "base/time.h"
#include "cache/shadow_cache.h"
#include "cache/types.h"
#include "proxy/exchange/request_facts.h"
#include "proxy/observe/shadow_caches.h"
#include "proxy/store/object.h"

namespace encore::server {

// Describes a response that was sent from the store.
cache::ShadowRequest shadow_request(const store::Object& object, const filter::Hash128& key,
                                    const cache::AdmissionRule& rule);
// Describes a response that came from an origin, and is stored or may be, or could be under another
// policy.
cache::ShadowRequest shadow_request(const SharedResponse& response, const RequestContext& request,
                                    std::uint64_t sent_bytes);

// Returns what an exchange's request was to the cache; nothing: none that it is asked for.
std::optional<ShadowTap::Served> served_as(Outcome outcome, const EndedExchange& ended);

}  // namespace encore::server
