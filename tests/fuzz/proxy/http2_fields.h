// Fields of the world's ends of HTTP/2, as nghttp2 takes them. Thread-compatible.
#pragma once

#include <nghttp2/nghttp2.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/proxy/message.h"

namespace encore::proxyfuzz {

// Ends the program.
void check_http2(bool good, const char* what);

// The name as an origin writes it over HTTP/1: "Content-Length".
std::string usual_name(std::string_view name);

// They point into the fields.
std::vector<nghttp2_nv> pairs_of(const Fields& fields);

}  // namespace encore::proxyfuzz
