#include "proxy/exchange/request_facts.h"

#include "proxy/request/parent.h"

namespace encore::server {

void record_request(const RequestContext& request, RequestRecord& record) {
  record.client = &request.client;
  record.head = &request.head;
  record.user = request.user;
  record.listener = request.counts.get();
  record.rule = request.rule;
  record.tls = request.tls.get();
  record.intercepted = request.is_intercepted();
  record.through_parent = parent_of(request) != nullptr;
  record.listener_name = request.listener_text();
  record.request_id = request.request_id;
}

}  // namespace encore::server
