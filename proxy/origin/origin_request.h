// The head of a request to an origin. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/request/request_context.h"
#include "proxy/settings/server_group.h"

namespace encore::server {

// The request to the origin, in difference to the client's.
struct OriginRequestOptions {
  bool to_proxy = false;               // the request line has the whole target (RFC 9112 3.2.2)
  bool whole = false;                  // without the client's Range and conditions
  std::string_view validation_fields;  // lines with CRLF, for our own validation or range
  bool drop_expect = false;
  // Length of the whole content, which came in chunks and is here; nothing: it goes on as it came.
  std::optional<std::uint64_t> length = {};
};

// The head to send: origin-form, Host, what http::SentFields lets through, Via, and (reverse)
// X-Forwarded-* and Forwarded, by what is known here.
// `text` is cleared first.
void build_origin_request(const RequestContext& request, const OriginServer* server,
                          const OriginRequestOptions& options, std::string& text);

}  // namespace encore::server
