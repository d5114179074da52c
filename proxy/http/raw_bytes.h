// Bytes beyond ASCII in URIs, which have to be percent-encoded there (RFC 3986 2.1), and are not
// always. Pure functions, thread-safe. Why such bytes are not passed on: docs/decisions/0404.
#pragma once

#include <string>
#include <string_view>

namespace encore::http {

inline bool is_beyond_ascii(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0x80U) != 0;
}

// Appends the text, such bytes percent-encoded: three bytes for each.
void append_encoded(std::string_view text, std::string& out);

}  // namespace encore::http
