// Lines of log.level = "debug": one request, step by step, each line with its id. Thread-safe.
#pragma once

#include <initializer_list>
#include <string_view>

namespace encore::server {

// "request ID: ...": the parts one behind the other, of which nothing a peer has sent can begin
// another line. To be called where Runtime::follows_requests.
void log_step(std::string_view request_id, std::initializer_list<std::string_view> parts);

}  // namespace encore::server
