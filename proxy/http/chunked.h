// The chunked transfer coding (RFC 9112 7.1), read strictly and incrementally, in place, and
// written. Thread-compatible: one decoder belongs to one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace encore::http {

// Decodes a body from however it was cut into reads. Refused: bare CR or LF, white space other
// than before ';', sizes that are empty, not hexadecimal, of more than 16 digits or above
// 2^63 - 1, extensions and trailers beyond the limits, control characters in them.
//
//   while (true) {
//     const auto step = decoder.next(input);
//     input.remove_prefix(step.consumed);
//     if (step.status != ChunkedDecoder::Status::kData) break;
//     use(step.data);
//   }
class ChunkedDecoder {
 public:
  struct Limits {
    std::size_t extension_bytes_max = 16 * 1024;  // all chunk extensions of one body together
    std::size_t trailer_bytes_max = 16 * 1024;    // the trailer section with its line ends
  };
  enum class Status : std::uint8_t {
    kNeedMore,  // all input consumed, the body goes on
    kData,      // `data` is content, a view into the input
    kDone,      // the body ended; what follows `consumed` is the next message
    kBad,       // malformed: the connection is of no further use
  };
  struct Step {
    Status status = Status::kNeedMore;
    std::size_t consumed = 0;
    std::string_view data;
  };

  ChunkedDecoder() = default;
  explicit ChunkedDecoder(const Limits& limits) : limits_(limits) {}

  // Takes the next step. After kDone or kBad every call returns the same status.
  Step next(std::string_view input);
  // The last `bytes` of the content that the last step gave found no place: they come again.
  // REQUIRES: the last step was kData, of so many bytes at least.
  void give_back(std::size_t bytes) noexcept {
    chunk_left_ += bytes;
    state_ = State::kData;
  }

  bool done() const noexcept { return state_ == State::kDone; }
  // Content bytes left in the current chunk.
  std::uint64_t chunk_left() const noexcept { return chunk_left_; }
  // Field lines of the trailer section, each with its CRLF, for parse_fields(); empty if none.
  // They are bounded but otherwise unchecked.
  std::string_view trailers() const noexcept { return trailers_; }

 private:
  enum class State : std::uint8_t {
    kSizeFirst,
    kSize,
    kSizeSpace,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailerLine,
    kTrailerLf,
    kEndLf,
    kDone,
    kBad,
  };
  // One byte of anything but content. False: malformed.
  bool step(char c);
  bool step_size(char c);
  bool step_extension(char c);
  bool step_trailer(char c);

  State state_ = State::kSizeFirst;
  std::uint8_t size_digits_ = 0;
  std::uint64_t chunk_left_ = 0;
  std::size_t extension_bytes_ = 0;
  Limits limits_;
  std::string trailers_;
};

// Room for write_chunk_head: 16 digits and CRLF.
inline constexpr std::size_t kChunkHeadMax = 18;
// Writes the line in front of a chunk of `size` bytes and returns its length. After the content
// comes kChunkEnd, after the last chunk kLastChunk, the trailer lines and kChunkEnd.
// REQUIRES: size > 0, kChunkHeadMax bytes at `out`.
std::size_t write_chunk_head(std::uint64_t size, char* out) noexcept;
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n";

}  // namespace encore::http
