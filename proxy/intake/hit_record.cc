#include "proxy/intake/hit_record.h"

namespace encore::server {

void set_unsent(RequestRecord& record) {
  record.outcome = Outcome::kClientAborted;
  record.detail = "reset";
  record.connection = ClientConnectionEnd::kCut;
  record.sent_bytes = record.body_bytes = 0;
}

void record_unsent(RequestLog& log, const UnsentRequest& request) {
  HitCount count;
  count.started = request.now;
  count.status = request.status;
  count.listener = request.listener;
  count.rule = request.view.rule;
  RequestRecord record = record_of(request.view, count);
  record.tls = request.tls;
  record.listener_name = request.listener_name;
  set_unsent(record);
  log.record(record, request.view.head, request.client);
}

}  // namespace encore::server
