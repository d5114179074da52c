// Informs the rest of the proxy because of a response's head: the kernel, the table of transfers,
// the stored responses that it invalidates. Confined to the worker whose services are given.
#pragma once

#include <cstdint>

#include "proxy/http/message.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/response_body.h"
#include "proxy/origin/response_plan.h"
#include "proxy/origin/services.h"
#include "proxy/store/object.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// True if the store takes no head of this size, with its tags and its key. An upper bound of the
// stored head: what is added to one that came is short.
bool has_large_head(const RequestContext& request, const ReceivedResponse& received,
                    const SharedResponse& response);

// True if the response comes from a server whose Cache-Status the route trusts
// (origin.admission_hint), and that reports an earlier request for it. Which do, and why this is
// all that nodes share: docs/decisions/0620.
bool is_hinted(const RequestContext& request, const ReceivedResponse& received);

// True if the cache would let it in, but for its size.
bool is_refused_for_size(const OriginServices& services, const RequestContext& request,
                         const RequestPolicy& request_policy, std::uint64_t bytes);

// Requests with the credentials of this one do not wait for what they could not have; or do again
// (kNo).
void remember_sharing(OriginServices& services, const RequestContext& request,
                      Inflight::Unshared unshared);
// The next range of it goes to its origin as it is.
void keep_ranges_alone(OriginServices& services, const RequestContext& request);

// Asks the kernel as the plan says, `joined` others having waited. Sets outcome and shareable of
// the response, and reason where it is only counted; returns the use of its body.
ResponseBody::Use admit(OriginServices& services, const RequestContext& request,
                        const RequestPolicy& request_policy, const StoringPlan& plan,
                        std::uint32_t joined, SharedResponse& response);

// A stored response that is outdated, and what came may not take its place.
void drop_stored(OriginServices& services, const RequestContext& request,
                 const store::Object& stored);

// The response to an unsafe method: the target, and what Location and Content-Location name there.
void invalidate_others(OriginServices& services, const RequestContext& request,
                       const http::ResponseHead& head);

}  // namespace encore::server
