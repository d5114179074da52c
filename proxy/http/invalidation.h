// Invalidation by unsafe methods (RFC 9111 4.4). Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/http/message.h"
#include "proxy/http/uri.h"

namespace encore::http {

// True if a final response to this method invalidates: the method is not safe, or unknown, and
// the status is 2xx or 3xx.
constexpr bool invalidates(Method method, unsigned status) noexcept {
  return !is_safe(method) && method != Method::kConnect && status >= 200 && status < 400;
}

// The keys to invalidate with all their variants: the target's, and those of Location and
// Content-Location where they have the target's origin.
std::vector<std::string> invalidated_keys(const Target& target, const ResponseHead& response,
                                          const KeyOptions& options);

}  // namespace encore::http
