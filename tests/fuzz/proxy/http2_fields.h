// Fields of the world's ends of HTTP/2, as nghttp2 takes them. Thread-compatible.
#pragma once

#include <nghttp2/nghttp2.h>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/random.h"

namespace encore::proxyfuzz {

// Ends the program.
void check_http2(bool good, const char* what);

// The name as an origin writes it over HTTP/1: "Content-Length".
std::string usual_name(std::string_view name);

// They point into the fields.
std::vector<nghttp2_nv> pairs_of(const Fields& fields);

// Ends the content of a stream, with the trailers if there are any. Called from a source of
// content.
void end_content(nghttp2_session* session, std::int32_t id, const Fields& trailers,
                 std::uint32_t* flags);

// Returns the frame's length with padding, in `percent` of the frames; at most `most`.
ssize_t padded_length(Random& random, double percent, const nghttp2_frame& frame, std::size_t most);

// Say what nghttp2 does not accept.
std::string invalid_frame(const nghttp2_frame& frame, int error);
std::string invalid_header(const std::uint8_t* name, std::size_t size);

}  // namespace encore::proxyfuzz
