// The frames that a session receives.
#include <algorithm>

#include "proxy/h2/session.h"

namespace encore::h2 {
namespace {

constexpr std::uint32_t kTinyBytes = 16;
constexpr std::size_t kPriorityBytes = 5;

}  // namespace

FrameSink::Use Session::on_frame(const FrameHeader& header) {
  if (!has_peer_settings_ && (header.type != FrameType::kSettings || header.has(kFlagAck))) {
    fail(ErrorCode::kProtocolError, "no SETTINGS at first");
    return Use::kStop;
  }
  if (block_.purpose != Purpose::kNone && header.type != FrameType::kContinuation) {
    fail(ErrorCode::kProtocolError, "frame within a header block");
    return Use::kStop;
  }
  switch (header.type) {
    case FrameType::kData:
      return on_data(header);
    case FrameType::kHeaders:
      return on_headers(header);
    case FrameType::kContinuation:
      return on_continuation(header);
    case FrameType::kPushPromise:
      fail(ErrorCode::kProtocolError, "PUSH_PROMISE");
      return Use::kStop;
    case FrameType::kPriority:
    case FrameType::kRstStream:
    case FrameType::kSettings:
    case FrameType::kPing:
    case FrameType::kGoAway:
    case FrameType::kWindowUpdate:
    case FrameType::kPriorityUpdate:
      return Use::kRead;
  }
  use(Allowance::kUnknown);
  return going_on(Use::kSkip);
}

FrameSink::Use Session::on_data(const FrameHeader& header) {
  if (header.stream == 0 || is_idle(header.stream)) {
    fail(ErrorCode::kProtocolError, "DATA on no stream");
    return Use::kStop;
  }
  if (header.length > receive_window_) {
    fail(ErrorCode::kFlowControlError, "more DATA than the connection's window");
    return Use::kStop;
  }
  receive_window_ -= header.length;
  data_bytes_ = 0;
  data_stream_ = streams_.find(header.stream);
  const bool is_known = data_stream_ != nullptr || ended_.was_reset(header.stream) ||
                        (is_refusing() && header.stream > last_peer_stream_);
  if (!is_known || (data_stream_ != nullptr && data_stream_->is_over())) {
    fail(ErrorCode::kStreamClosed, "DATA on a closed stream");
    return Use::kStop;
  }
  if (data_stream_ != nullptr && data_stream_->receiving == Stream::Receiving::kEnded) {
    fail_stream(header.stream, ErrorCode::kStreamClosed, "DATA behind the end");
  } else if (data_stream_ != nullptr && role_ == Role::kClient && !data_stream_->has_response) {
    fail_stream(header.stream, ErrorCode::kProtocolError, "DATA before the head");
  } else if (data_stream_ != nullptr &&
             static_cast<std::int64_t>(header.length) > data_stream_->receive_window) {
    fail_stream(header.stream, ErrorCode::kFlowControlError, "more DATA than the window");
  } else if (data_stream_ != nullptr) {
    data_stream_->receive_window -= static_cast<std::int32_t>(header.length);
    return Use::kRead;
  }
  if (header.length < kTinyBytes) use(Allowance::kEmpty);
  give_back(header.length);
  return going_on(Use::kSkip);
}

FrameSink::Use Session::on_headers(const FrameHeader& header) {
  if (header.stream == 0) {
    fail(ErrorCode::kProtocolError, "HEADERS on no stream");
    return Use::kStop;
  }
  block_ = {.stream = header.stream,
            .ends_stream = header.has(kFlagEndStream),
            .bytes_left = 2 * options_.head_bytes_max,
            .since = now_};
  Purpose purpose = Purpose::kDiscard;
  Stream* const stream = streams_.find(header.stream);
  if (stream == nullptr) {
    purpose = on_new_stream(header);
  } else if (stream->is_over()) {
    fail(ErrorCode::kStreamClosed, "HEADERS on a closed stream");
  } else if (stream->receiving == Stream::Receiving::kEnded) {
    fail_stream(header.stream, ErrorCode::kStreamClosed, "HEADERS behind the end");
  } else {
    purpose = on_further_headers(header, *stream);
  }
  if (is_ended() || purpose == Purpose::kNone) return Use::kStop;
  block_.purpose = purpose;
  fields_ = &begin_block(purpose);
  return Use::kRead;
}

FrameSink::Use Session::on_continuation(const FrameHeader& header) {
  if (block_.purpose == Purpose::kNone || header.stream != block_.stream) {
    fail(ErrorCode::kProtocolError, "CONTINUATION of no header block");
  } else if (++block_.continuations > options_.continuations_max) {
    counters_.add(Limit::kContinuations);
    fail(ErrorCode::kEnhanceYourCalm, to_string(Limit::kContinuations));
  } else if (header.length == 0 && !header.has(kFlagEndHeaders)) {
    use(Allowance::kEmpty);
  }
  return going_on(Use::kRead);
}

bool Session::on_dependency(const FrameHeader& header, StreamId parent) {
  if (parent == header.stream) fail(ErrorCode::kProtocolError, "stream that depends on itself");
  return !is_ended();
}

bool Session::on_payload(const FrameHeader& header, std::string_view bytes, bool is_last) {
  if (header.type != FrameType::kData) {
    on_fragment(header, bytes, is_last);
    return !is_ended();
  }
  if (bytes.empty()) return true;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  data_bytes_ += size;
  if (data_stream_ != nullptr && data_stream_->expected - data_stream_->received < size) {
    refuse(header.stream, Malformed::kLengthMismatch);
  }
  if (data_stream_ == nullptr) {
    give_back(size);
    return !is_ended();
  }
  data_stream_->received += size;
  data_stream_->unconsumed += size;
  if (options_.has_streams_apart) give_back(size);
  if (data_stream_->handler != nullptr) {
    data_stream_->handler->on_content(header.stream, bytes);
  } else {
    consume(header.stream, size);
  }
  return !is_ended();
}

void Session::on_fragment(const FrameHeader& header, std::string_view bytes, bool is_last) {
  if (bytes.size() > block_.bytes_left) {
    counters_.add(Limit::kHeadBytes);
    fail(ErrorCode::kEnhanceYourCalm, to_string(Limit::kHeadBytes));
    return;
  }
  block_.bytes_left -= bytes.size();
  switch (decoder_.decode(bytes, is_last && header.has(kFlagEndHeaders), *fields_)) {
    case FieldDecoder::Status::kMore:
    case FieldDecoder::Status::kEnd:
      break;
    case FieldDecoder::Status::kStopped: {
      const Limit limit = fields_->is_out_of_fields() ? Limit::kHeadFields : Limit::kHeadBytes;
      counters_.add(limit);
      fail(ErrorCode::kEnhanceYourCalm, to_string(limit));
      break;
    }
    case FieldDecoder::Status::kBroken:
      fail(ErrorCode::kCompressionError, "header block that cannot be decoded");
      break;
  }
}

bool Session::on_frame_end(const FrameHeader& header, std::string_view payload) {
  switch (header.type) {
    case FrameType::kData:
      on_data_end(header);
      break;
    case FrameType::kHeaders:
    case FrameType::kContinuation:
      if (header.has(kFlagEndHeaders)) {
        Block block = block_;
        block_.purpose = Purpose::kNone;
        on_block(block);
      }
      break;
    default:
      on_control(header, payload);
      break;
  }
  // Not at the end of all that is read: how bytes are cut would show.
  tell_changes();
  return !is_ended();
}

void Session::on_data_end(const FrameHeader& header) {
  const std::uint32_t padding = header.length - data_bytes_;
  if (padding != 0) {
    give_back(padding);
    if (data_stream_ != nullptr) give_back(*data_stream_, padding);
  }
  if (header.has(kFlagEndStream)) {
    Stream* const stream = std::exchange(data_stream_, nullptr);
    if (stream != nullptr) end_receiving(*stream, {});
    return;
  }
  data_stream_ = nullptr;
  if (data_bytes_ == 0) {
    use(Allowance::kEmpty);
  } else if (data_bytes_ < kTinyBytes) {
    use(Allowance::kTiny);
  }
}

void Session::on_control(const FrameHeader& header, std::string_view payload) {
  switch (header.type) {
    case FrameType::kPriority:
      use(Allowance::kPriority);
      if (header.stream == 0) {
        fail(ErrorCode::kProtocolError, "PRIORITY on no stream");
      } else if (header.length != kPriorityBytes) {
        fail(ErrorCode::kFrameSizeError, "PRIORITY");
      } else if (read_u31(payload.data()) == header.stream) {
        fail(ErrorCode::kProtocolError, "stream that depends on itself");
      }
      break;
    case FrameType::kRstStream:
      on_rst_stream(header, payload);
      break;
    case FrameType::kSettings:
      on_settings(header, payload);
      break;
    case FrameType::kPing:
      if (header.stream != 0) {
        fail(ErrorCode::kProtocolError, "PING on a stream");
      } else if (header.length != kPingBytes) {
        fail(ErrorCode::kFrameSizeError, "PING");
      } else {
        on_ping(header, payload);
      }
      break;
    case FrameType::kGoAway:
      if (header.stream != 0) {
        fail(ErrorCode::kProtocolError, "GOAWAY on a stream");
      } else if (header.length < 8) {
        fail(ErrorCode::kFrameSizeError, "GOAWAY");
      } else {
        is_peer_draining_ = true;
        on_goaway(read_u31(payload.data()), static_cast<ErrorCode>(read_u32(payload.data() + 4)));
      }
      break;
    case FrameType::kWindowUpdate:
      on_window_update(header, payload);
      break;
    case FrameType::kPriorityUpdate:
      use(Allowance::kPriority);
      if (header.stream != 0) {
        fail(ErrorCode::kProtocolError, "PRIORITY_UPDATE on a stream");
      } else if (header.length < 4) {
        fail(ErrorCode::kFrameSizeError, "PRIORITY_UPDATE");
      } else if (!is_ended()) {
        on_priority_update(read_u31(payload.data()), payload.substr(4));
      }
      break;
    default:
      break;
  }
}

void Session::on_ping(const FrameHeader& header, std::string_view payload) {
  if (header.has(kFlagAck)) {
    if (drain_ == Drain::kNoticed && payload == kDrainPing) finish_drain();
    return;
  }
  use(Allowance::kPing);
  if (!is_ended()) append_ping(payload, kFlagAck, output_.control());
}

void Session::on_rst_stream(const FrameHeader& header, std::string_view payload) {
  if (header.stream == 0 || is_idle(header.stream)) {
    fail(ErrorCode::kProtocolError, "RST_STREAM on no stream");
    return;
  }
  if (header.length != 4) {
    fail(ErrorCode::kFrameSizeError, "RST_STREAM");
    return;
  }
  Stream* const stream = streams_.find(header.stream);
  if (stream == nullptr || stream->is_over()) {
    use(Allowance::kResetAnswered);
    return;
  }
  count_reset(stream->sending);
  ended_.add_other(header.stream);
  close(*stream, static_cast<ErrorCode>(read_u32(payload.data())));
}

void Session::on_settings(const FrameHeader& header, std::string_view payload) {
  if (header.stream != 0) {
    fail(ErrorCode::kProtocolError, "SETTINGS on a stream");
    return;
  }
  if (header.has(kFlagAck)) {
    if (header.length != 0) fail(ErrorCode::kFrameSizeError, "SETTINGS");
    return;
  }
  if (header.length % kSettingBytes != 0) {
    fail(ErrorCode::kFrameSizeError, "SETTINGS");
    return;
  }
  if (header.length > FrameReader::kControlBytesMax) {
    counters_.add(Limit::kSettingsInFrame);
    fail(ErrorCode::kEnhanceYourCalm, to_string(Limit::kSettingsInFrame));
    return;
  }
  use(Allowance::kSettings);
  has_peer_settings_ = true;
  for (std::size_t at = 0; at < payload.size() && !is_ended(); at += kSettingBytes) {
    on_setting_value(static_cast<Setting>(read_u16(payload.data() + at)),
                     read_u32(payload.data() + at + 2));
  }
  if (!is_ended()) append_settings_ack(output_.control());
}

void Session::on_setting_value(Setting setting, std::uint32_t value) {
  switch (setting) {
    case Setting::kHeaderTableSize:
      has_table_change_ = true;
      break;
    case Setting::kEnablePush:
      if (value > (role_ == Role::kServer ? 1U : 0U)) {
        fail(ErrorCode::kProtocolError, "ENABLE_PUSH");
      }
      break;
    case Setting::kInitialWindowSize:
      set_initial_window(value);
      break;
    case Setting::kMaxFrameSize:
      // No larger frames are sent than every peer takes.
      if (value < kFrameBytesMax || value > 0xffffff) {
        fail(ErrorCode::kProtocolError, "MAX_FRAME_SIZE");
      }
      break;
    case Setting::kEnableConnectProtocol:
    case Setting::kNoRfc7540Priorities:
      if (value > 1) fail(ErrorCode::kProtocolError, "setting that is neither 0 nor 1");
      break;
    case Setting::kMaxConcurrentStreams:
    case Setting::kMaxHeaderListSize:
      break;
  }
  if (!is_ended()) on_setting(setting, value);
}

void Session::set_initial_window(std::uint32_t value) {
  if (value > kWindowMax) {
    fail(ErrorCode::kFlowControlError, "INITIAL_WINDOW_SIZE");
    return;
  }
  const std::int64_t change = std::int64_t{value} - initial_send_window_;
  initial_send_window_ = static_cast<std::int32_t>(value);
  for (const auto& each : streams_) {
    each->send_window += change;
    if (each->send_window > kWindowMax) {
      fail(ErrorCode::kFlowControlError, "INITIAL_WINDOW_SIZE");
      return;
    }
  }
}

void Session::on_window_update(const FrameHeader& header, std::string_view payload) {
  if (windows_due_ != 0) {
    --windows_due_;
  } else {
    use(Allowance::kWindow);
  }
  if (header.length != 4) {
    fail(ErrorCode::kFrameSizeError, "WINDOW_UPDATE");
    return;
  }
  const std::uint32_t increment = read_u31(payload.data());
  if (header.stream == 0) {
    send_window_ += increment;
    if (increment == 0) fail(ErrorCode::kProtocolError, "WINDOW_UPDATE of nothing");
    if (send_window_ > kWindowMax) fail(ErrorCode::kFlowControlError, "WINDOW_UPDATE");
    return;
  }
  if (is_idle(header.stream)) {
    fail(ErrorCode::kProtocolError, "WINDOW_UPDATE on no stream");
    return;
  }
  Stream* const stream = streams_.find(header.stream);
  if (stream == nullptr || stream->is_over()) return;
  stream->send_window += increment;
  if (increment == 0) {
    fail_stream(header.stream, ErrorCode::kProtocolError, "WINDOW_UPDATE of nothing");
  } else if (stream->send_window > kWindowMax) {
    fail_stream(header.stream, ErrorCode::kFlowControlError, "WINDOW_UPDATE");
  }
}

}  // namespace encore::h2
