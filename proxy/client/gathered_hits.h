// GatheredHit: a plain hit among the replies of a ReplyBatch. It is recorded when the socket has
// taken it, or when its client has gone: the counters and the log have no byte that no socket took.
// Confined to its worker.
#pragma once

#include <memory>
#include <string>

#include "proxy/exchange/request_facts.h"
#include "proxy/observe/request_record.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"

namespace encore::server {

// A record that outlives the head, the client's address and the object that it views.
struct KeptRecord {
  std::shared_ptr<const RequestContext> request;
  RequestRecord record;
  store::ObjectRef object;      // the record names its content type
  std::string response_fields;  // that the record views
};

struct GatheredHit {
  HitCount count;
  std::unique_ptr<KeptRecord> kept;  // null: it is counted alone
};

}  // namespace encore::server
