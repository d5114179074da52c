// Facts that the record of a request takes from the request itself, apart from how it went. Values,
// whose views are borrowed.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "proxy/observe/request_record.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// Writes who has asked, and by which head. `request` is borrowed.
void record_request(const RequestContext& request, RequestRecord& record);

// Counts of a plain hit. Borrowed as in a RequestRecord.
struct HitCount {
  MonotonicTime started{};
  int status = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t body_bytes = 0;
  ListenerCounts* listener = nullptr;
  const Rule* rule = nullptr;
  const net::Address* client = nullptr;  // until the hit is noted; null: not known
};

// A request that an exchange has answered.
struct EndedExchange {
  const RequestContext& request;
  const SharedResponse* response = nullptr;  // the transfer's; null: there was none
  const store::Object* object = nullptr;     // the object that was sent from the store; null: none
};

}  // namespace encore::server
