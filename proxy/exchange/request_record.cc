#include "proxy/exchange/request_record.h"

#include "proxy/request/request_context.h"

namespace encore::server {

void RequestRecord::tell_of(const RequestContext& request) {
  user = request.user;
  listener = request.counts.get();
  rule = request.rule;
  tls = request.tls.get();
  intercepted = request.is_intercepted();
}

}  // namespace encore::server
