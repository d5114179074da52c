#include "proxy/exchange/request_record.h"

#include "proxy/request/parent.h"
#include "proxy/request/request_context.h"

namespace encore::server {

void RequestRecord::tell_of(const RequestContext& request) {
  user = request.user;
  listener = request.counts.get();
  rule = request.rule;
  tls = request.tls.get();
  intercepted = request.is_intercepted();
  through_parent = parent_of(request) != nullptr;
  listener_name = request.listener_text();
  request_id = request.request_id;
  taken_bytes += request.head.head_size;
}

}  // namespace encore::server
