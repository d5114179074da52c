// Via (RFC 9110 7.6.3): what we append, and how we recognise that a message passed us before.
// Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

// Our member for a message received in `version`: "1.1 encore-1a2b3c"; the pseudonym tells this
// instance from others. REQUIRES: pseudonym is a token.
std::string via_member(Version version, std::string_view pseudonym);

// True if a member of Via names this pseudonym: the request went in a circle.
bool via_has(const Fields& fields, std::string_view pseudonym) noexcept;

}  // namespace encore::http
