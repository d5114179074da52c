// Requests on proxy listeners for what the proxy itself publishes. Thread-safe.
#pragma once

#include <string_view>

#include "base/time.h"
#include "proxy/exchange/synthetic_response.h"
#include "proxy/http/cache_status.h"
#include "proxy/publish/resources.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// True if the request is for us: one of a forward listener that names no other host
// (RequestViewBuilder), or of a reverse listener's route that is ours.
inline bool is_published(const RequestContext& request) {
  if (!request.is_forward()) return request.route->is_published();
  return request.target.form == http::TargetForm::kOrigin;
}

// `published` may be null: nothing is.
SyntheticResponse published_answer(publish::Resources* published, const RequestContext& request,
                                   WallTime now, std::string_view http_date,
                                   const http::CacheStatus& status);

}  // namespace encore::server
