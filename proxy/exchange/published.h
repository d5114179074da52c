// Requests on proxy listeners for what the proxy itself publishes. Thread-safe.
#pragma once

#include <string>

#include "base/time.h"
#include "proxy/publish/resources.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// Whether the request is for us: one of a forward listener that names no other host (ViewMaker), or
// of a reverse listener's route that is ours.
inline bool is_published(const RequestContext& request) {
  if (!request.is_forward()) return request.route->is_published();
  return request.target.form == http::TargetForm::kOrigin;
}

struct PublishedReply {
  int status = 0;
  std::string head;  // with Content-Length, without Cache-Status and the empty line
  std::string body;  // empty for HEAD
};
// `published` is null where nothing is: 404. REQUIRES: is_published(request).
PublishedReply answer_published(publish::Resources* published, const RequestContext& request,
                                WallTime now, std::string_view http_date);

}  // namespace encore::server
