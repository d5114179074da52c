// Heads as text: the lines of which one is built, and cut. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/field_id.h"

namespace encore::http {

// Appends "HTTP/1.1 404 Not Found" and CRLF.
void append_status_line(int status, std::string_view reason, std::string& out);

// Appends one field line.
void append_field(std::string_view name, std::string_view value, std::string& out);

// Cuts the lines of these fields out of a head of CRLF lines. For the few replies that are made
// from another's head.
void copy_head_without(std::string_view head, FieldSet left_out, std::string& out);

}  // namespace encore::http
