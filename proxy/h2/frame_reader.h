// FrameReader: cuts the bytes of one direction of a connection into frames, however they come. It
// knows lengths and padding, and nothing of streams. Holds at most a frame header and the payload
// of a small frame; what carries content is passed on as it comes. Confined to its session's
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/h2/frame.h"

namespace encore::h2 {

// Told of frames in their order. None of these calls the reader.
class FrameSink {
 public:
  enum class Use : std::uint8_t { kRead, kSkip, kStop };

  // True if the next frame is wanted now. Asked before each.
  virtual bool wants_frame() = 0;
  // A frame begins. kSkip: its payload is skipped, and no further call concerns it.
  virtual Use on_frame(const FrameHeader& header) = 0;
  // Content of DATA, and of HEADERS and CONTINUATION, without padding; `is_last` of the frame,
  // which comes once for each, if only with no bytes. False: stop.
  virtual bool on_payload(const FrameHeader& header, std::string_view bytes, bool is_last) = 0;
  // The frame has ended; DATA, after its padding. `payload` is the beginning of frames that are no
  // carriers, of at most kControlBytesMax. False: stop.
  virtual bool on_frame_end(const FrameHeader& header, std::string_view payload) = 0;
  // HEADERS names the stream that it depends on (RFC 7540 6.2). False: stop.
  virtual bool on_dependency(const FrameHeader& header, StreamId parent) = 0;
  // No frame can be read from here on.
  virtual void on_frame_error(ErrorCode code, std::string_view why) = 0;

 protected:
  ~FrameSink() = default;
};

class FrameReader {
 public:
  // Payload of a small frame that the sink receives: 32 settings.
  static constexpr std::size_t kControlBytesMax = 32 * kSettingBytes;

  // `expects_preface`: the peer is a client.
  explicit FrameReader(bool expects_preface)
      : step_(expects_preface ? Step::kBegin : Step::kHeader) {}

  // Returns how many bytes were read: all, unless the sink wants no frame now or has said stop.
  std::size_t read(std::string_view bytes, FrameSink& sink);

  // True if it is between two frames.
  bool is_between() const { return step_ == Step::kHeader && have_ == 0; }

 private:
  enum class Step : std::uint8_t {
    kBegin,
    kHeader,
    kPadLength,
    kDependency,
    kContent,
    kPadding,
    kControl,
    kSkip,
    kStopped,
  };

  std::string_view take(std::string_view& bytes, std::size_t most);
  void read_preface(std::string_view& bytes, FrameSink& sink);
  void read_header(std::string_view& bytes, FrameSink& sink);
  void begin_payload(FrameSink& sink);
  void read_pad_length(std::string_view& bytes, FrameSink& sink);
  void read_dependency(std::string_view& bytes, FrameSink& sink);
  void read_content(std::string_view& bytes, FrameSink& sink);
  void read_control(std::string_view& bytes, FrameSink& sink);
  void end_frame(FrameSink& sink);
  void fail(ErrorCode code, std::string_view why, FrameSink& sink);
  void go_on(bool goes_on, Step next) { step_ = goes_on ? next : Step::kStopped; }

  std::array<char, kControlBytesMax> small_ = {};  // a header, or a small payload
  FrameHeader header_;
  std::uint32_t left_ = 0;     // payload, without padding
  std::uint32_t padding_ = 0;  // left of it
  std::uint8_t have_ = 0;      // bytes in small_
  Step step_;
};

}  // namespace encore::h2
