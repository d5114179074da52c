// The head of a response whose content a proxy has put into a coding (RFC 9110 7.7, 8.4). Pure,
// thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/message.h"
#include "proxy/http/stored_meta.h"

namespace encore::http {

// Added to whatever might have been sent in a coding, and was not.
inline constexpr std::string_view kVaryByCodingField = "Vary: Accept-Encoding\r\n";

// True if the response says already that others may get it in another coding.
bool varies_by_coding(const Fields& response) noexcept;

// Builds the head of the coded form into `out` (cleared first), in the form of a stored head
// (stored_head.h): Content-Encoding is set, Vary names Accept-Encoding, and the entity tag is weak,
// for the bytes are others that mean the same. Fields about the bytes of the identity are left out:
// Content-Length (set anew if known), Accept-Ranges, Content-MD5, Digest, Repr-Digest and
// Content-Digest. `meta`, which is the response's, receives head_bytes, etag_offset, etag_bytes,
// and that the tag is not strong. REQUIRES: a response without Content-Encoding.
void build_coded_head(const ResponseHead& response, std::string_view coding,
                      std::optional<std::uint64_t> length, std::string& out, StoredMeta& meta);

// True if a field is the digest of a body as its origin has sent it.
bool is_body_digest(const Field& field) noexcept;

// Writes a strong entity tag of the head weak. `head` is in the form of a stored head.
void weaken_etag(std::string& head);

}  // namespace encore::http
