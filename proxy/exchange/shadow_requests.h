// What simulated caches are told of requests that were answered. Pure, thread-safe.
#pragma once

#include <optional>

#include "base/time.h"
#include "cache/shadow_cache.h"
#include "cache/types.h"
#include "proxy/exchange/told_request.h"
#include "proxy/observe/shadow_caches.h"
#include "proxy/store/object.h"

namespace encore::server {

// Of what was sent from the store.
cache::ShadowRequest shadow_request(const store::Object& object, const filter::Hash128& key,
                                    const cache::AdmissionRule& rule);
// Of what came from an origin, and is stored or may be, or could be where another policy holds.
cache::ShadowRequest shadow_request(const SharedResponse& response, const RequestContext& request,
                                    std::uint64_t sent_bytes);

// What an exchange's request was to the cache; nothing: none that it is asked for.
std::optional<ShadowTap::Served> served_as(Outcome outcome, const EndedExchange& ended);

}  // namespace encore::server
