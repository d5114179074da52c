// Targeted cache control (RFC 9213): a structured-field dictionary (RFC 8941) that replaces
// Cache-Control and Expires for the caches it names. Pure, thread-compatible.
#pragma once

#include <span>
#include <string>

#include "proxy/http/cache_control.h"

namespace encore::http {

// The directives that govern us: those of the first name in `targets` (lower case, in order of
// precedence) whose field is present, parses as a whole and is not empty; else Cache-Control's.
// A directive whose value is of the wrong type counts as the least that it could mean.
ResponseDirectives effective_directives(const Fields& fields, std::span<const std::string> targets);

// Parses the joined value of one targeted field. Nothing if any part of it is malformed, or there
// is no member.
std::optional<ResponseDirectives> parse_targeted(std::string_view joined_value);

}  // namespace encore::http
