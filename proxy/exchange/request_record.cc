#include "proxy/exchange/request_record.h"

#include "proxy/request/request_context.h"

namespace encore::server {

void RequestRecord::tell_of(const RequestContext& request) {
  user = request.user;
  tls = request.tls.get();
  intercepted = request.is_intercepted();
}

}  // namespace encore::server
