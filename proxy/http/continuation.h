// Continuation: a request for the rest of a body whose beginning a client has already, and the
// check that an answer is just that rest (RFC 9110 13.1.5, 15.3.7). Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/http/date.h"
#include "proxy/http/message.h"
#include "proxy/http/range.h"

namespace encore::http {

struct Continuation {
  ByteRange range;                      // that is missing
  bool to_end = false;                  // the range ends with the representation, wherever that is
  std::optional<std::uint64_t> length;  // length of the representation; nothing: not known
  std::uint64_t length_min = 0;         // bytes of it that have been seen
  // A strong entity tag, or else a Last-Modified that is as good as one; the other is empty.
  std::string etag;
  std::string last_modified;
  std::string coding;  // Content-Encoding as it came

  const std::string& validator() const { return etag.empty() ? last_modified : etag; }
  // The value of a Range field for it.
  std::string range_value() const;
};

// The part of a body that a client lacks.
struct MissingPart {
  ByteRange range;
  bool to_end = false;                  // then range.end counts for nothing
  std::optional<std::uint64_t> length;  // length of the whole
  std::uint64_t length_min = 0;
};

// Returns the request for the rest of an interrupted `response`. Returns nothing if the rest could
// not be distinguished from that of another version: without a strong entity tag, or an equally
// strong date and a length. Also if the origin says that it serves no ranges.
std::optional<Continuation> continue_response(const ResponseHead& response,
                                              const MissingPart& missing, UnixSeconds now);

// True if an answer with a body of `body_bytes` is that rest, and nothing else.
bool continues(const Continuation& wanted, const ResponseHead& answer,
               std::optional<std::uint64_t> body_bytes);

}  // namespace encore::http
