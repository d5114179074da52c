// The lines that frame an HTTP/1 response (RFC 9112 7.1 and 9.6). Pure, thread-safe.
#pragma once

#include <string_view>

#include "proxy/http/message.h"

namespace encore::server {

inline constexpr std::string_view kChunkedField = "Transfer-Encoding: chunked\r\n";
inline constexpr std::string_view kHeadEnd = "\r\n";

// Returns the field that informs a client of its connection's further life; empty where it knows by
// itself.
constexpr std::string_view connection_field(http::Version client, bool keeps_alive) {
  if (!keeps_alive) return "Connection: close\r\n";
  return client == http::Version::kHttp10 ? "Connection: keep-alive\r\n" : "";
}
// The longest.
inline constexpr std::size_t kConnectionFieldBytesMax = 24;
static_assert(connection_field(http::Version::kHttp10, true).size() == kConnectionFieldBytesMax);

}  // namespace encore::server
