#include "proxy/client/http1_request_body.h"

#include <algorithm>

#include "base/check.h"

namespace encore::server {

Http1RequestBody::Http1RequestBody(const http::Framing& framing,
                                   const http::ChunkedDecoder::Limits& limits)
    : left_(framing.length), decoder_(limits) {
  if (framing.kind == http::BodyKind::kChunked) state_ = State::kChunked;
  if (framing.kind == http::BodyKind::kLength && left_ != 0) state_ = State::kLength;
}

Http1RequestBody::Step Http1RequestBody::next(std::string_view input) {
  ENCORE_CHECK(!is_done() && !input.empty(), "there is content to be read, and input");
  if (state_ == State::kLength) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), left_));
    left_ -= taken;
    if (left_ == 0) state_ = State::kDone;
    return {What::kContent, taken, input.substr(0, taken)};
  }
  const auto step = decoder_.next(input);
  switch (step.status) {
    case http::ChunkedDecoder::Status::kNeedMore:
      return {What::kNothing, step.consumed};
    case http::ChunkedDecoder::Status::kData:
      return {What::kContent, step.consumed, step.data};
    case http::ChunkedDecoder::Status::kDone:
      state_ = State::kDone;
      return {What::kEnd, step.consumed};
    case http::ChunkedDecoder::Status::kBad:
      break;
  }
  return {What::kBad, input.size()};
}

}  // namespace encore::server
