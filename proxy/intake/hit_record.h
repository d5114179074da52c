// Records of requests that an HTTP/1 connection answers by itself, and of those that it could not
// answer any more because their client had gone.
#pragma once

#include <string_view>

#include "base/time.h"
#include "proxy/exchange/request_log.h"
#include "proxy/exchange/request_record.h"
#include "proxy/net/address.h"
#include "proxy/request/client_tls.h"
#include "proxy/request/request_view.h"

namespace encore::server {

// As far as the connection has no part in it.
inline RequestRecord record_of(const RequestView& view, const HitCount& count) {
  RequestRecord record;
  record.outcome = Outcome::kHit;
  record.started = count.started;
  record.status = count.status;
  record.sent_bytes = count.sent_bytes;
  record.body_bytes = count.body_bytes;
  record.taken_bytes = view.head->head_size;
  record.listener = count.listener;
  record.user = view.user;
  record.request_id = view.request_id;
  record.rule = view.rule;
  record.intercepted = view.inside != nullptr;
  return record;
}

// Its client had gone before any of the response went out.
void set_unsent(RequestRecord& record);

// A request that was read behind others whose responses found nobody: it has none.
struct UnsentRequest {
  const RequestView& view;
  const net::Address& client;
  ListenerCounts* listener = nullptr;
  std::string_view listener_name = {};
  const ClientTls* tls = nullptr;
  MonotonicTime now{};
  int status = 0;  // that it would have had; 0: not known
};
void record_unsent(RequestLog& log, const UnsentRequest& request);

}  // namespace encore::server
