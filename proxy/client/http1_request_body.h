// Http1RequestBody: the framing of a request's content on an HTTP/1 connection: bytes go in,
// content and its end come out. Pure, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/http/chunked.h"
#include "proxy/http/framing.h"

namespace encore::server {

class Http1RequestBody {
 public:
  Http1RequestBody(const http::Framing& framing, const http::ChunkedDecoder::Limits& limits);

  // There is none, or all of it was read: what follows is another request.
  bool is_done() const { return state_ == State::kDone; }

  enum class What : std::uint8_t {
    kNothing,  // all input is used, and more has to come
    kContent,  // `content`, a view into the input
    kEnd,      // for chunked content: see trailers()
    kBad,      // it is malformed: the connection is of no further use
  };
  struct Step {
    What what = What::kNothing;
    std::size_t used = 0;  // bytes of the input
    std::string_view content = {};
  };
  // REQUIRES: !is_done(), `input` is not empty, kBad did not come.
  Step next(std::string_view input);
  // The lines of the trailer section, as they came. REQUIRES: kEnd came.
  std::string_view trailers() const { return decoder_.trailers(); }

 private:
  enum class State : std::uint8_t { kLength, kChunked, kDone };

  State state_ = State::kDone;
  std::uint64_t left_ = 0;
  http::ChunkedDecoder decoder_;
};

}  // namespace encore::server
