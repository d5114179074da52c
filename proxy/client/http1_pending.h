// Http1Pending: replies that a client did not take at once. Of Http1Connection alone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "proxy/client/http1_writer.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/exchange/request_log.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"

namespace encore::server {

struct Http1Pending {
  Http1Writer writer;
  BodyReader content;
  // The record of the large hit among them; null: there is none. It is logged when the hit ends.
  // While `request` is null it belongs to the caller, who logs it.
  RequestRecord* record = nullptr;
  std::shared_ptr<const RequestContext> request;
  std::optional<RequestRecord> own_record;
  store::ObjectRef object;      // whose content type the record names
  std::string response_fields;  // that the record views
};

}  // namespace encore::server
