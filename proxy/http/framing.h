// How long a message's body is (RFC 9112 6.3), and refusal of all that is ambiguous about it.
// Pure, thread-safe.
#pragma once

#include <cstdint>

#include "proxy/http/message.h"

namespace encore::http {

enum class BodyKind : std::uint8_t {
  kNone,        // no body, whatever the fields say
  kLength,      // exactly `length` bytes, may be 0
  kChunked,     // chunked.h
  kUntilClose,  // responses only: to the end of the connection
  kError,       // refused; `status` is what the client is answered
};

enum class FramingReason : std::uint8_t {
  kNone,
  kLengthAndTransferEncoding,  // both: 400 / 502
  kRepeatedLength,             // several Content-Length lines or a list, equal or not: 400 / 502
  kBadLength,                  // not digits, or empty: 400 / 502
  kLengthTooLarge,             // above 2^63 - 1: 400 / 502
  kTransferEncodingIn10,       // Transfer-Encoding in HTTP/1.0: 400 / 502
  kBadTransferEncoding,        // empty, not tokens, chunked twice or not last: 400 / 502
  kUnknownCoding,              // another than chunked: 501 / 502
};

struct Framing {
  BodyKind kind = BodyKind::kNone;
  std::uint64_t length = 0;  // for kLength
  std::uint16_t status = 0;  // for kError
  FramingReason reason = FramingReason::kNone;
  // Responses: the connection can carry another message after this one as far as framing tells.
  // False for kUntilClose and wherever the framing contradicts the status (a 204 with a body).
  bool reusable = true;
};

// A request's body. Transfer-Encoding is accepted only as exactly one "chunked" (any case) in
// HTTP/1.1 without Content-Length.
Framing request_framing(const RequestHead& head) noexcept;

// A response's body, given the method of its request. HEAD, 1xx, 204, 304 and a 2xx to CONNECT
// have none. A transfer coding but chunked is refused, with chunked behind it too: none was asked
// for (TE), and what we cannot undo must not pass for content (RFC 9112 6.1 and 7.4).
Framing response_framing(Method method, const ResponseHead& head) noexcept;

// Reads 1*DIGIT without sign or white space. False if malformed or above 2^63 - 1.
bool parse_decimal(std::string_view text, std::uint64_t& value) noexcept;

}  // namespace encore::http
