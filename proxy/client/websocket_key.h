// The field that a server of WebSocket wants over HTTP/1.1 and clients of HTTP/2 do not send (RFC
// 6455 4.1, RFC 8441 5). Thread-safe.
#pragma once

#include <string>

namespace encore::server {

// A line of Sec-WebSocket-Key with 16 random bytes. Empty: the system has none.
std::string make_websocket_key_line();

}  // namespace encore::server
