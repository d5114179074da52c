// RequestRecord: the result of a request, for counters, logs and pages. It is made when the request
// arrives, filled as things happen, and handed to the RequestLog once, when the last byte has gone
// or its client has. LogValue: the access log's values of it, field by field. Both are values,
// whose views and pointers are borrowed (docs/decisions/0461).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "config/log_format.h"
#include "proxy/http/message.h"
#include "proxy/observe/client_tls.h"
#include "proxy/observe/origin_visit.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/request_counts.h"

namespace encore::net {
class Address;
}

namespace encore::server {

class Rule;

// The state of the client's connection behind the response.
enum class ClientConnectionEnd : std::uint8_t {
  kClosed,  // it ends behind the response
  kKept,    // another request may follow
  kCut,     // it ended before the response did
};

struct RequestRecord {
  const net::Address* client = nullptr;     // as access lists see it; null: not known
  const http::RequestHead* head = nullptr;  // null: none could be parsed
  Outcome outcome = Outcome::kInternal;
  MonotonicTime started{};             // when the head was complete
  int status = 0;                      // sent to the client; 0: none was
  std::uint64_t sent_bytes = 0;        // head and body
  std::uint64_t body_bytes = 0;        // body alone, without chunk framing
  std::uint64_t taken_bytes = 0;       // content that came from the client
  Nanoseconds first_byte{-1};          // from `started`; below 0: with the last one
  const OriginVisit* visit = nullptr;  // null: nobody was asked for it
  std::string_view content_type;       // type of the response
  std::string_view user;               // the authenticated user; empty: none
  const ClientTls* tls = nullptr;      // the client's connection to us; null: none
  bool intercepted = false;            // it came inside a CONNECT that is decrypted
  bool through_parent = false;         // the origin is another proxy
  ListenerCounts* listener = nullptr;  // counters for it; null: none
  const Rule* rule = nullptr;          // that holds for it; null: none
  std::string_view listener_name;      // as the config names it
  std::string_view request_id;         // empty: it has none
  std::string_view response_fields;    // lines with CRLF, where the log wants them
  ClientConnectionEnd connection = ClientConnectionEnd::kClosed;
  std::string_view detail = {};  // why, as Cache-Status says it; empty: the outcome says it all
};

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": W3C Trace Context 3.2, of any version.
bool is_traceparent(std::string_view text);

// A record that has ended, with what is worked out once for all fields.
struct LoggedRequest {
  const RequestRecord& record;
  WallTime received;        // when the head was complete
  Nanoseconds duration{0};  // from then until the last byte was handed to the system
  std::string_view client;  // address without port
  std::string_view url;     // the target, with what an interception knows; empty without a head

  std::string_view method() const {
    return record.head == nullptr ? std::string_view() : record.head->method_text;
  }
  std::string_view version() const {
    if (record.head == nullptr) return "HTTP/1.1";
    switch (record.head->version) {
      case http::Version::kHttp10:
        return "HTTP/1.0";
      case http::Version::kHttp11:
        return "HTTP/1.1";
      case http::Version::kHttp2:
        return "HTTP/2";
    }
    return {};
  }
  std::string_view field(http::FieldId id) const {
    return record.head == nullptr ? std::string_view() : record.head->fields.value(id);
  }
  std::uint64_t request_bytes() const {
    return record.taken_bytes + (record.head == nullptr ? 0 : record.head->head_size);
  }
  Nanoseconds first_byte() const {
    return record.first_byte.count() < 0 ? duration : record.first_byte;
  }
  std::string_view traceparent() const {
    const http::Field* const traced =
        record.head == nullptr ? nullptr : record.head->fields.find("traceparent");
    return traced != nullptr && is_traceparent(traced->value) ? traced->value : std::string_view();
  }
  // Facts that there may be none of: then empty, and a time below 0.
  template <typename Facts>
  static std::string_view text_of(const Facts* facts, std::string Facts::* text) {
    return facts == nullptr ? std::string_view() : facts->*text;
  }
  Nanoseconds visit_time(Nanoseconds OriginVisit::* time) const {
    return record.visit == nullptr ? Nanoseconds(-1) : record.visit->*time;
  }
};

// A value of a field, by the kinds that are written differently. JSON leaves out what is not
// `shown`; a line has "-" for a text that is empty and a time that is none.
struct LogValue {
  enum class Kind : std::uint8_t { kText, kUrl, kUser, kNumber, kTime, kInstant, kFlag };
  Kind kind = Kind::kText;
  bool shown = true;
  std::string_view text = {};
  std::int64_t number = 0;  // nanoseconds of a time or an instant

  static constexpr LogValue always(std::string_view text) { return {.text = text}; }
  static constexpr LogValue if_any(std::string_view text, Kind kind = Kind::kText) {
    return {.kind = kind, .shown = !text.empty(), .text = text};
  }
  static constexpr LogValue count(std::uint64_t number) {
    return {.kind = Kind::kNumber, .number = static_cast<std::int64_t>(number)};
  }
  // Below 0: none.
  static constexpr LogValue time(Nanoseconds time) {
    return {.kind = Kind::kTime, .shown = time.count() >= 0, .number = time.count()};
  }
  static constexpr LogValue flag(bool value, bool shown) {
    return {.kind = Kind::kFlag, .shown = shown, .number = value ? 1 : 0};
  }
};

// REQUIRES: a field of ENCORE_LOG_FIELDS.
// NOLINTNEXTLINE(readability-function-size): a table, with a line for each field
[[gnu::always_inline]] inline LogValue value_of(config::LogField field,
                                                const LoggedRequest& request) {
  using enum config::LogField;
  using Kind = LogValue::Kind;
  const RequestRecord& record = request.record;
  switch (field) {
    case kTime:
      return {.kind = Kind::kInstant, .number = request.received.time_since_epoch().count()};
    case kClient:
      return LogValue::always(request.client);
    case kUser:
      return LogValue::if_any(record.user, Kind::kUser);
    case kListener:
      return LogValue::if_any(record.listener_name);
    case kMethod:
      return LogValue::always(request.method());
    case kUrl:
      return {.kind = Kind::kUrl, .text = request.url};
    case kHost:
      return LogValue::if_any(request.field(http::FieldId::kHost));
    case kVersion:
      return LogValue::always(request.version());
    case kStatus:
      return LogValue::count(static_cast<std::uint64_t>(record.status));
    case kBytes:
      return LogValue::count(record.sent_bytes);
    case kBodyBytes:
      return LogValue::count(record.body_bytes);
    case kRequestBytes:
      return LogValue::count(request.request_bytes());
    case kDuration:
      return LogValue::time(request.duration);
    case kFirstByte:
      return LogValue::time(request.first_byte());
    case kOutcome:
      return LogValue::always(to_string(record.outcome));
    case kDetail:
      return LogValue::if_any(record.detail);
    case kRequestId:
      return LogValue::if_any(record.request_id);
    case kTraceparent:
      return LogValue::if_any(request.traceparent());
    case kOrigin:
      return LogValue::if_any(request.text_of(record.visit, &OriginVisit::address));
    case kServer:
      return LogValue::if_any(request.text_of(record.visit, &OriginVisit::server));
    case kOriginVersion:
      return LogValue::if_any(record.visit == nullptr ? std::string_view() : record.visit->version);
    case kConnect:
      return LogValue::time(request.visit_time(&OriginVisit::connect));
    case kOriginTime:
      return LogValue::time(request.visit_time(&OriginVisit::answer));
    case kContentType:
      return LogValue::if_any(record.content_type);
    case kReferer:
      return LogValue::if_any(request.field(http::FieldId::kReferer), Kind::kUrl);
    case kUserAgent:
      return LogValue::if_any(request.field(http::FieldId::kUserAgent));
    case kTlsVersion:
      return LogValue::if_any(request.text_of(record.tls, &ClientTls::version));
    case kTlsCipher:
      return LogValue::if_any(request.text_of(record.tls, &ClientTls::cipher));
    case kTlsResumed:
      return LogValue::flag(record.tls != nullptr && record.tls->resumed, record.tls != nullptr);
    case kTlsServerName:
      return LogValue::if_any(request.text_of(record.tls, &ClientTls::server_name));
    case kClientSubject:
      return LogValue::if_any(request.text_of(record.tls, &ClientTls::subject));
    case kClientFingerprint:
      return LogValue::if_any(request.text_of(record.tls, &ClientTls::fingerprint));
    case kIntercepted:
      return LogValue::flag(record.intercepted, record.intercepted);
    default:
      return LogValue::if_any({});
  }
}

}  // namespace encore::server
