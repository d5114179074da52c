#include "proxy/http/chunked.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "proxy/http/list.h"
#include "proxy/http/scan.h"

namespace encore::http {
namespace {

constexpr std::uint8_t kSizeDigitsMax = 16;
constexpr std::uint64_t kChunkMax = std::uint64_t{1} << 63;  // exclusive

// The value of a hexadecimal digit, or -1.
int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

bool ChunkedDecoder::step_size(char c) {
  if (const int digit = hex_value(c); digit >= 0 && state_ != State::kSizeSpace) {
    chunk_left_ = chunk_left_ << 4 | static_cast<std::uint64_t>(digit);
    state_ = State::kSize;
    return ++size_digits_ <= kSizeDigitsMax && chunk_left_ < kChunkMax;
  }
  if (state_ == State::kSizeFirst) return false;
  if (c == ';') {
    state_ = State::kExtension;
    return ++extension_bytes_ <= limits_.extension_bytes_max;
  }
  if (is_ows(c)) {
    state_ = State::kSizeSpace;
    return ++extension_bytes_ <= limits_.extension_bytes_max;
  }
  // White space may stand before an extension only.
  if (c != '\r' || state_ == State::kSizeSpace) return false;
  state_ = State::kSizeLf;
  return true;
}

bool ChunkedDecoder::step_extension(char c) {
  if (c == '\r') {
    state_ = State::kSizeLf;
    return true;
  }
  return !scan::Control::matches(c) && ++extension_bytes_ <= limits_.extension_bytes_max;
}

bool ChunkedDecoder::step_trailer(char c) {
  if (state_ == State::kTrailerStart && c == '\r') {
    state_ = State::kEndLf;
    return true;
  }
  if (trailers_.size() >= limits_.trailer_bytes_max) return false;
  trailers_.push_back(c);
  if (state_ == State::kTrailerLf) {
    state_ = State::kTrailerStart;
    return c == '\n';
  }
  state_ = c == '\r' ? State::kTrailerLf : State::kTrailerLine;
  return c == '\r' || !scan::Control::matches(c);
}

bool ChunkedDecoder::step(char c) {
  switch (state_) {
    case State::kSizeFirst:
    case State::kSize:
    case State::kSizeSpace:
      return step_size(c);
    case State::kExtension:
      return step_extension(c);
    case State::kSizeLf:
      state_ = chunk_left_ > 0 ? State::kData : State::kTrailerStart;
      return c == '\n';
    case State::kDataCr:
      state_ = State::kDataLf;
      return c == '\r';
    case State::kDataLf:
      state_ = State::kSizeFirst;
      size_digits_ = 0;
      return c == '\n';
    case State::kTrailerStart:
    case State::kTrailerLine:
    case State::kTrailerLf:
      return step_trailer(c);
    case State::kEndLf:
      state_ = State::kDone;
      return c == '\n';
    case State::kData:
    case State::kDone:
    case State::kBad:
      break;
  }
  return false;
}

ChunkedDecoder::Step ChunkedDecoder::next(std::string_view input) {
  std::size_t at = 0;
  while (state_ != State::kDone && state_ != State::kBad) {
    if (at == input.size()) return {Status::kNeedMore, at, {}};
    if (state_ == State::kData) {
      const std::size_t size =
          static_cast<std::size_t>(std::min<std::uint64_t>(chunk_left_, input.size() - at));
      chunk_left_ -= size;
      if (chunk_left_ == 0) state_ = State::kDataCr;
      return {Status::kData, at + size, input.substr(at, size)};
    }
    if (!step(input[at])) state_ = State::kBad;
    ++at;
  }
  return {state_ == State::kDone ? Status::kDone : Status::kBad, at, {}};
}

std::size_t write_chunk_head(std::uint64_t size, char* out) noexcept {
  char* end = std::to_chars(out, out + kChunkHeadMax - 2, size, 16).ptr;
  end = std::ranges::copy(kChunkEnd, end).out;
  return static_cast<std::size_t>(end - out);
}

}  // namespace encore::http
