#include "proxy/h2/frame_reader.h"

#include <algorithm>

namespace encore::h2 {
namespace {

bool is_carrier(FrameType type) {
  return type == FrameType::kData || type == FrameType::kHeaders ||
         type == FrameType::kContinuation;
}

bool may_be_padded(FrameType type) {
  return type == FrameType::kData || type == FrameType::kHeaders;
}

}  // namespace

std::size_t FrameReader::read(std::string_view bytes, FrameSink& sink) {
  const std::size_t size = bytes.size();
  while (step_ != Step::kStopped) {
    if (is_between() && !bytes.empty() && !sink.wants_frame()) break;
    // A frame without payload left ends without another byte.
    if (bytes.empty() && (left_ != 0 || padding_ != 0 || step_ <= Step::kHeader)) break;
    switch (step_) {
      case Step::kBegin:
        read_preface(bytes, sink);
        break;
      case Step::kHeader:
        read_header(bytes, sink);
        break;
      case Step::kPadLength:
        read_pad_length(bytes, sink);
        break;
      case Step::kDependency:
        read_dependency(bytes, sink);
        break;
      case Step::kContent:
        read_content(bytes, sink);
        break;
      case Step::kPadding:
        padding_ -= static_cast<std::uint32_t>(take(bytes, padding_).size());
        if (padding_ == 0) end_frame(sink);
        break;
      case Step::kControl:
        read_control(bytes, sink);
        break;
      case Step::kSkip:
        left_ -= static_cast<std::uint32_t>(take(bytes, left_).size());
        if (left_ == 0) step_ = Step::kHeader;
        break;
      case Step::kStopped:
        break;
    }
  }
  return size - bytes.size();
}

std::string_view FrameReader::take(std::string_view& bytes, std::size_t most) {
  const std::string_view taken = bytes.substr(0, most);
  bytes.remove_prefix(taken.size());
  return taken;
}

void FrameReader::read_preface(std::string_view& bytes, FrameSink& sink) {
  const std::string_view part = take(bytes, kPreface.size() - have_);
  if (kPreface.substr(have_, part.size()) != part) {
    fail(ErrorCode::kProtocolError, "no preface", sink);
    return;
  }
  have_ = static_cast<std::uint8_t>(have_ + part.size());
  if (have_ != kPreface.size()) return;
  have_ = 0;
  step_ = Step::kHeader;
}

void FrameReader::read_header(std::string_view& bytes, FrameSink& sink) {
  const char* whole = bytes.data();
  if (have_ == 0 && bytes.size() >= kFrameHeaderBytes) {
    bytes.remove_prefix(kFrameHeaderBytes);
  } else {
    const std::string_view part = take(bytes, kFrameHeaderBytes - have_);
    std::copy(part.begin(), part.end(), small_.begin() + have_);
    have_ = static_cast<std::uint8_t>(have_ + part.size());
    if (have_ != kFrameHeaderBytes) return;
    whole = small_.data();
  }
  have_ = 0;
  header_ = read_frame_header(whole);
  left_ = header_.length;
  padding_ = 0;
  if (header_.length > kFrameBytesMax) {
    fail(ErrorCode::kFrameSizeError, "frame too large", sink);
    return;
  }
  begin_payload(sink);
}

void FrameReader::begin_payload(FrameSink& sink) {
  const FrameSink::Use use = sink.on_frame(header_);
  if (use == FrameSink::Use::kStop) {
    step_ = Step::kStopped;
  } else if (use == FrameSink::Use::kSkip) {
    step_ = left_ == 0 ? Step::kHeader : Step::kSkip;
  } else if (!is_carrier(header_.type)) {
    step_ = Step::kControl;
  } else if (may_be_padded(header_.type) && header_.has(kFlagPadded)) {
    step_ = Step::kPadLength;
    if (left_ == 0) fail(ErrorCode::kFrameSizeError, "no pad length", sink);
  } else if (header_.type == FrameType::kHeaders && header_.has(kFlagPriority)) {
    step_ = Step::kDependency;
    if (left_ < 5) fail(ErrorCode::kFrameSizeError, "no priority", sink);
  } else {
    step_ = Step::kContent;
  }
}

void FrameReader::read_pad_length(std::string_view& bytes, FrameSink& sink) {
  padding_ = static_cast<unsigned char>(take(bytes, 1).front());
  --left_;
  const bool has_dependency = header_.type == FrameType::kHeaders && header_.has(kFlagPriority);
  if (padding_ + (has_dependency ? 5U : 0U) > left_) {
    padding_ = 0;
    fail(ErrorCode::kProtocolError, "more padding than payload", sink);
    return;
  }
  left_ -= padding_;
  step_ = has_dependency ? Step::kDependency : Step::kContent;
}

void FrameReader::read_dependency(std::string_view& bytes, FrameSink& sink) {
  const std::string_view part = take(bytes, std::size_t{5} - have_);
  std::copy(part.begin(), part.end(), small_.begin() + have_);
  have_ = static_cast<std::uint8_t>(have_ + part.size());
  left_ -= static_cast<std::uint32_t>(part.size());
  if (have_ != 5) return;
  have_ = 0;
  go_on(sink.on_dependency(header_, read_u31(small_.data())), Step::kContent);
}

void FrameReader::read_content(std::string_view& bytes, FrameSink& sink) {
  const std::string_view part = take(bytes, left_);
  left_ -= static_cast<std::uint32_t>(part.size());
  if (!sink.on_payload(header_, part, left_ == 0)) {
    step_ = Step::kStopped;
  } else if (left_ == 0) {
    step_ = Step::kPadding;
    if (padding_ == 0) end_frame(sink);
  }
}

void FrameReader::read_control(std::string_view& bytes, FrameSink& sink) {
  const std::string_view part = take(bytes, left_);
  left_ -= static_cast<std::uint32_t>(part.size());
  const std::string_view kept = part.substr(0, kControlBytesMax - have_);
  std::copy(kept.begin(), kept.end(), small_.begin() + have_);
  have_ = static_cast<std::uint8_t>(have_ + kept.size());
  if (left_ == 0) end_frame(sink);
}

void FrameReader::end_frame(FrameSink& sink) {
  const std::string_view payload(small_.data(), have_);
  have_ = 0;
  go_on(sink.on_frame_end(header_, payload), Step::kHeader);
}

void FrameReader::fail(ErrorCode code, std::string_view why, FrameSink& sink) {
  step_ = Step::kStopped;
  sink.on_frame_error(code, why);
}

}  // namespace encore::h2
