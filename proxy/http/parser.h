// Parser of HTTP/1 heads (RFC 9112 2 to 5), strict: what two parsers could read differently is
// refused. No bare CR or LF, no obs-fold, no white space before the colon or in front of the first
// field, no control characters but HTAB in values, no empty names, no empty or ambiguous targets.
// Pure functions over the caller's bytes; nothing is copied. Thread-compatible. Why the parser is
// our own: docs/decisions/0031.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace encore::http {

struct Limits {
  std::size_t head_bytes_max = 32 * 1024;    // whole head with its empty line: 431 (response: 502)
  std::size_t target_bytes_max = 16 * 1024;  // request target: 414
  std::size_t fields_max = 128;              // field lines: 431 (response: 502)
  bool raw_targets = false;                  // a request target may have bytes beyond ASCII
};

enum class ParseStatus : std::uint8_t { kComplete, kIncomplete, kBad };

// Why a head was refused; goes to log and counters.
#define ENCORE_HTTP_PARSE_REASONS(X)            \
  X(kNone, "none")                              \
  X(kBadMethod, "bad-method")                   \
  X(kBadTarget, "bad-target")                   \
  X(kTargetTooLong, "target-too-long")          \
  X(kBadVersion, "bad-version")                 \
  X(kUnsupportedVersion, "unsupported-version") \
  X(kBadStatusLine, "bad-status-line")          \
  X(kBareLf, "bare-lf")                         \
  X(kBareCr, "bare-cr")                         \
  X(kControlCharacter, "control-character")     \
  X(kObsFold, "obs-fold")                       \
  X(kLeadingSpace, "leading-space")             \
  X(kSpaceBeforeColon, "space-before-colon")    \
  X(kEmptyName, "empty-name")                   \
  X(kBadName, "bad-name")                       \
  X(kNoColon, "no-colon")                       \
  X(kHeadTooLarge, "head-too-large")            \
  X(kTooManyFields, "too-many-fields")

enum class ParseReason : std::uint8_t {
#define ENCORE_HTTP_REASON(id, name) id,
  ENCORE_HTTP_PARSE_REASONS(ENCORE_HTTP_REASON)
#undef ENCORE_HTTP_REASON
};
std::string_view to_string(ParseReason reason) noexcept;

struct ParseError {
  std::uint16_t status = 0;  // sent to the client: 400, 414, 431, 505; 502 for responses
  ParseReason reason = ParseReason::kNone;
};

// Progress of a connection with a partial head, so that each further read costs only its own bytes.
// Zero-initialised (or reset by `= {}`) for every new head. The bytes may move between calls; they
// must not change.
struct ParseProgress {
  std::size_t scanned = 0;
};

// Parses the request head at the start of `bytes`. At most one empty line (CRLF) before it is
// skipped (RFC 9112 2.2) and counted in head_size.
//   kComplete    `head` is filled, its views point into `bytes`.
//   kIncomplete  more bytes are needed; `head` is unspecified, `progress` is updated.
//   kBad         `error` says what to answer; the connection is then closed.
ParseStatus parse_request(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                          RequestHead& head, ParseError& error);

// The same for a response head, every error being 502. No empty line may precede it.
ParseStatus parse_response(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                           ResponseHead& head, ParseError& error);

// As parse_request(), but bytes beyond ASCII in the target are taken as percent-encoded, as their
// client should have sent them (RFC 3986 2.1). If there are some, `encoded` receives the corrected
// head, within the same limits, and `head` points into that; head_size is the received size.
// Otherwise it is empty. REQUIRES: `encoded` is empty.
ParseStatus parse_lax_request(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                              RequestHead& head, ParseError& error, std::string& encoded);

// For a head that is wholly there (a stored one, a test): no progress is kept.
inline ParseStatus parse_request(std::string_view bytes, const Limits& limits, RequestHead& head,
                                 ParseError& error) {
  ParseProgress progress;
  return parse_request(bytes, limits, progress, head, error);
}
inline ParseStatus parse_response(std::string_view bytes, const Limits& limits, ResponseHead& head,
                                  ParseError& error) {
  ParseProgress progress;
  return parse_response(bytes, limits, progress, head, error);
}

// Parses field lines that end with the end of `bytes` or an empty line: trailers, or the fields
// of a stored head. `fields` is cleared first. False if malformed or over the limits.
bool parse_fields(std::string_view bytes, const Limits& limits, Fields& fields, ParseError& error);

}  // namespace encore::http
