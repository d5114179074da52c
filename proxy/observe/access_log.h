// One record a request, in the format the operator chose. Pure formatting, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/observe/outcome.h"

namespace encore::server {

enum class AccessFormat : std::uint8_t { kJson, kSquid, kCombined };

// What is known of a request when its response has ended. All views are borrowed for the call.
struct AccessRecord {
  WallTime received;             // when the request head was complete
  Nanoseconds duration{0};       // from then until the last byte was handed to the system
  std::string_view client;       // address without port
  std::string_view user;         // who has logged in; empty: nobody
  std::string_view method;       // as received; empty when the request could not be parsed
  std::string_view url;          // the target as received, userinfo never
  std::string_view version;      // "HTTP/1.1"
  int status = 0;                // sent to the client; 0 when none was
  std::uint64_t sent_bytes = 0;  // head and body
  std::uint64_t body_bytes = 0;  // body alone, without chunk framing
  Outcome outcome = Outcome::kInternal;
  std::string_view origin;  // address connected to; empty when none was
  std::string_view content_type;
  std::string_view referer;
  std::string_view user_agent;
  std::string_view host;
  // Of TLS with us; empty where there is none, or nothing was said.
  std::string_view tls_version;
  std::string_view tls_cipher;
  std::string_view tls_server_name;
  bool tls_resumed = false;
  std::string_view client_subject;
  std::string_view client_fingerprint;
  bool intercepted = false;  // it came inside a CONNECT that is decrypted
};

// Appends the record and a newline. Bytes that the format would misread are escaped (JSON: \u00XX,
// the others: %XX), so that one record is always one line.
void append_access_record(std::string& out, AccessFormat format, const AccessRecord& record);

}  // namespace encore::server
