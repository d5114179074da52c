// What a request came to, as it is counted, logged and told. Values, whose views are borrowed.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "proxy/observe/access_record.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/client_tls.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"
#include "proxy/transfer/origin_visit.h"
#include "proxy/transfer/response.h"

namespace encore::server {

struct RequestRecord {
  Outcome outcome = Outcome::kInternal;
  MonotonicTime started{};
  int status = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t taken_bytes = 0;       // from the client: head and content
  Nanoseconds first_byte{-1};          // from `started`; below 0: with the last one
  const OriginVisit* visit = nullptr;  // null: nobody was asked for it
  std::string_view content_type;
  std::string_view user;               // who has logged in; empty: nobody
  const ClientTls* tls = nullptr;      // of its client with us; null: none
  bool intercepted = false;            // it came inside a CONNECT that is decrypted
  bool through_parent = false;         // the origin is another proxy
  ListenerCounts* listener = nullptr;  // where it is counted; null: nowhere
  const Rule* rule = nullptr;          // that holds for it; null: none
  std::string_view listener_name;      // as the config names it
  std::string_view request_id;         // empty: it has none
  std::string_view response_fields;    // lines with CRLF, where the log wants them
  ClientConnectionEnd connection = ClientConnectionEnd::kClosed;
  std::string_view detail = {};  // why, as Cache-Status says it; empty: the outcome says it all

  // Takes what is known of who has asked, and of the head. Borrowed.
  void tell_of(const RequestContext& request);
};

// Counts of a plain hit. Borrowed as in a RequestRecord.
struct HitCount {
  MonotonicTime started{};
  int status = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t body_bytes = 0;
  ListenerCounts* listener = nullptr;
  const Rule* rule = nullptr;
};

// A request that an exchange has answered.
struct EndedExchange {
  const RequestContext& request;
  const SharedResponse* response = nullptr;  // of the transfer that it was; null: of none
  const store::Object* object = nullptr;     // what was sent from the store; null: nothing
};

}  // namespace encore::server
