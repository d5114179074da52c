// AccessRecord: what the access log knows of a request. A value, whose views are borrowed.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/observe/outcome.h"

namespace encore::server {

// The state of the client's connection behind the response.
enum class ClientConnectionEnd : std::uint8_t {
  kClosed,  // it ends behind the response
  kKept,    // another request may follow
  kCut,     // it ended before the response did
};

// Facts about a request whose response has ended. All views are borrowed for the call.
struct AccessRecord {
  WallTime received;              // when the request head was complete
  Nanoseconds duration{0};        // from then until the last byte was handed to the system
  Nanoseconds first_byte{-1};     // and until the first one was; below 0: with the last
  std::string_view client;        // address without port
  std::string_view user;          // who has logged in; empty: nobody
  std::string_view listener;      // its address, as the config has it
  std::string_view method;        // as received; empty when the request could not be parsed
  std::string_view url;           // the target as received
  std::string_view version;       // "HTTP/1.1"
  int status = 0;                 // sent to the client; 0 when none was
  std::uint64_t sent_bytes = 0;   // head and body
  std::uint64_t body_bytes = 0;   // body alone, without chunk framing
  std::uint64_t taken_bytes = 0;  // from the client, head and body
  Outcome outcome = Outcome::kInternal;
  std::string_view detail;       // why; empty: the outcome says it all
  std::string_view request_id;   // empty: it has none
  std::string_view traceparent;  // as it came; what is not one is not shown
  std::string_view origin;       // address connected to; empty when none was
  std::string_view server;       // of an [[origin]]; empty: of none
  bool through_parent = false;   // the origin is another proxy
  Nanoseconds connect{-1};       // below 0: no connection was made
  Nanoseconds answer{-1};        // of the origin; below 0: none came
  std::string_view content_type;
  std::string_view referer;
  std::string_view user_agent;
  std::string_view host;
  const http::Fields* fields = nullptr;  // of the request; null: it could not be parsed
  std::string_view response_fields;      // lines, each with CRLF, where a format asks for some
  ClientConnectionEnd connection = ClientConnectionEnd::kClosed;
  // TLS facts of the client's connection; empty without TLS, or if not stated.
  std::string_view tls_version;
  std::string_view tls_cipher;
  std::string_view tls_server_name;
  bool tls_resumed = false;
  std::string_view client_subject;
  std::string_view client_fingerprint;
  bool intercepted = false;  // it came inside a CONNECT that is decrypted
};

}  // namespace encore::server
