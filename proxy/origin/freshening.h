// Freshening: a stored response that the origin's answer to a validation speaks of (RFC 9111
// 4.3.4 and 4.3.5). Confined to the worker whose services are given.
#pragma once

#include <memory>

#include "proxy/http/validators.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/store/object.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// The proof that is asked of a stored response, which is stale from `stale_from` on, for this
// request.
http::ValidatorStrength proof_wanted(const RequestContext& request, const store::Object& stored,
                                     MonotonicTime stale_from);

// Result of a refresh in the background. A key whose refresh failed is left for a while.
enum class Refresh : std::uint8_t { kDone, kFailed };
void note_refresh(OriginServices& services, const RequestContext& request, Refresh refresh);

// The stored response as a validation left it.
struct Confirmed {
  store::ObjectRef object;
  // The response that goes out with its body because the store had no room for it; otherwise null.
  std::shared_ptr<const UnstoredHead> unstored = {};
  bool stays = false;  // stored, so that it may answer others
};

// The stored response with the fields and times of the one that came; in the cache too, unless what
// came forbids that.
Confirmed freshen_stored(OriginServices& services, const RequestContext& request,
                         const ReceivedResponse& received, const store::ObjectRef& old);

// A 200 to a HEAD speaks of what a GET would bring: the stored one is freshened, or stale from now
// on. Any other status says nothing of it (RFC 9111 4.3.5). `proof`: what its validators have to
// prove.
void update_by_head(OriginServices& services, const RequestContext& request,
                    const ReceivedResponse& received, const store::ObjectRef& old,
                    http::ValidatorStrength proof);

}  // namespace encore::server
