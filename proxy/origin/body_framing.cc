#include "proxy/origin/body_framing.h"

#include <algorithm>

#include "base/check.h"

namespace encore::server {

BodyFraming::BodyFraming(const http::Framing& framing, const http::ChunkedDecoder::Limits& limits,
                         End end)
    : kind_(framing.kind),
      end_(end),
      left_(framing.kind == http::BodyKind::kLength ? framing.length : 0),
      decoder_(limits) {
  ENCORE_CHECK(kind_ != http::BodyKind::kError, "what is framed badly is not read");
  // The stream's frames were the chunks.
  if (end == End::kOfStream && kind_ == http::BodyKind::kChunked) {
    kind_ = http::BodyKind::kUntilClose;
  }
}

BodyFraming::Step BodyFraming::next(std::string_view input) {
  switch (kind_) {
    case http::BodyKind::kNone:
    case http::BodyKind::kError:
      return {.status = Status::kDone};
    case http::BodyKind::kLength: {
      if (left_ == 0 && end_ == End::kFramed) return {.status = Status::kDone};
      if (input.empty()) return {};
      const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), left_));
      left_ -= taken;
      return {.status = Status::kContent, .consumed = taken, .content = input.substr(0, taken)};
    }
    // RFC 9112 6.3: such a body ends with its connection, which Fetch::on_eof() hears of.
    case http::BodyKind::kUntilClose:
      if (input.empty()) return {};
      return {.status = Status::kContent, .consumed = input.size(), .content = input};
    case http::BodyKind::kChunked:
      break;
  }
  const auto step = decoder_.next(input);
  switch (step.status) {
    case http::ChunkedDecoder::Status::kData:
      return {.status = Status::kContent, .consumed = step.consumed, .content = step.data};
    case http::ChunkedDecoder::Status::kNeedMore:
      return {.status = Status::kNeedMore, .consumed = step.consumed};
    case http::ChunkedDecoder::Status::kDone:
      return {.status = Status::kDone, .consumed = step.consumed};
    case http::ChunkedDecoder::Status::kBad:
      break;
  }
  return {.status = Status::kBad, .consumed = step.consumed};
}

void BodyFraming::give_back(std::size_t bytes) {
  if (bytes == 0) return;
  ENCORE_CHECK(kind_ != http::BodyKind::kNone, "what had content has a body");
  // Bytes without a place in memory come again, and are counted again.
  if (kind_ == http::BodyKind::kLength) left_ += bytes;
  if (kind_ == http::BodyKind::kChunked) decoder_.give_back(bytes);
}

void BodyFraming::skip(std::uint64_t bytes) {
  ENCORE_CHECK(kind_ == http::BodyKind::kLength && bytes <= left_,
               "what is here already is a part of what was announced");
  left_ -= bytes;
}

}  // namespace encore::server
