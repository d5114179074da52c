// BodyFraming: the content of a response's body out of the bytes of its connection, by its framing:
// so many bytes, chunks, or all until the end; or by its stream of HTTP/2. One belongs to one
// response. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/http/chunked.h"
#include "proxy/http/framing.h"

namespace encore::server {

class BodyFraming {
 public:
  enum class Status : std::uint8_t {
    kContent,   // `content` is some of the body, a view into the input
    kNeedMore,  // all input was consumed, the body goes on
    kDone,      // the body has ended; what follows `consumed` is none of it
    kBad,       // malformed chunks
  };
  struct Step {
    Status status = Status::kNeedMore;
    std::size_t consumed = 0;
    std::string_view content = {};
  };

  BodyFraming() = default;
  // Form of the bytes: framed as the head says, or content alone, with an end of its own.
  enum class End : std::uint8_t { kFramed, kOfStream };
  // REQUIRES: not kError.
  BodyFraming(const http::Framing& framing, const http::ChunkedDecoder::Limits& limits,
              End end = End::kFramed);

  // Takes the next step. After kDone or kBad every call returns the same status.
  Step next(std::string_view input);
  // The last `bytes` of the content that the last step gave found no place: they come again.
  void give_back(std::size_t bytes);
  // The first `bytes` of a body of known length are here already, and will not come.
  void skip(std::uint64_t bytes);

  // Returns the rest of a body of known length; 0 where that is not known.
  std::uint64_t left() const { return left_; }
  bool has_length() const { return kind_ == http::BodyKind::kLength; }
  // True if the end of the connection is the end of the body.
  bool ends_with_connection() const {
    return kind_ == http::BodyKind::kUntilClose && end_ == End::kFramed;
  }
  // True if there is nothing to come at all.
  bool is_empty() const {
    return kind_ == http::BodyKind::kNone ||
           (kind_ == http::BodyKind::kLength && left_ == 0 && end_ == End::kFramed);
  }
  // Field lines of the trailer section, unchecked. REQUIRES: kDone has come.
  std::string_view trailers() const { return decoder_.trailers(); }

 private:
  http::BodyKind kind_ = http::BodyKind::kNone;
  End end_ = End::kFramed;
  std::uint64_t left_ = 0;
  http::ChunkedDecoder decoder_;
};

}  // namespace encore::server
