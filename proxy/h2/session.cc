#include "proxy/h2/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/h2/field_encoder.h"

namespace encore::h2 {
namespace {

// Frames of content as large as this are work that was done for the peer.
constexpr std::uint32_t kWorkBytes = 512;
// Windows that may open for such a frame: that of the stream and that of the connection, for each
// 2 KiB of it; and for all that were not opened yet, which is 64 MiB of content.
constexpr std::uint32_t kWindowsForFrame = 16;
constexpr std::uint32_t kWindowsDueMax = 1 << 16;

}  // namespace

Session::Session(Role role, const Options& options, Counters& counters)
    : role_(role),
      options_(options),
      counters_(counters),
      reader_(role == Role::kServer),
      allowances_(options.allowance_factor) {
  ENCORE_CHECK(options.stream_window_bytes >= kInitialWindow &&
                   options.connection_window_bytes >= kInitialWindow,
               "windows are at least what a peer begins with");
  ++counters_.sessions;
}

// --- bytes ---

std::size_t Session::receive(std::string_view bytes, MonotonicTime now) {
  now_ = now;
  if (is_ended()) return bytes.size();
  const std::size_t used = reader_.read(bytes, *this);
  settle();
  return is_ended() ? bytes.size() : used;
}

Batch Session::gather(std::span<iovec> room, std::size_t bytes_max) {
  return output_.gather(room, bytes_max, send_window_, *this);
}

void Session::sent(std::size_t bytes, MonotonicTime now) {
  now_ = now;
  for (const StreamId id : output_.sent(bytes, *this)) {
    if (std::find(changed_.begin(), changed_.end(), id) == changed_.end()) changed_.push_back(id);
    Stream* const stream = streams_.find(id);
    if (stream != nullptr && stream->is_queued && stream->priority.is_incremental) {
      output_.ready().rotate(*stream);
    }
  }
  settle();
}

bool Session::has_output() const {
  if (output_.has_control() || !changed_.empty()) return true;
  return is_ended() ? !has_settled_ : output_.has_content(send_window_);
}

void Session::check_timeouts(MonotonicTime now) {
  now_ = now;
  if (block_.purpose != Purpose::kNone && now - block_.since > options_.head_time) {
    counters_.add(Limit::kHeadTime);
    fail(ErrorCode::kEnhanceYourCalm, to_string(Limit::kHeadTime));
  }
  std::vector<StreamId> stalled;
  for (Stream* each = output_.ready().first(); each != nullptr; each = each->behind) {
    if (is_stalled(*each)) stalled.push_back(each->id);
  }
  for (const StreamId id : stalled) {
    if (is_ended()) break;
    counters_.add(Limit::kStalledStream);
    if (++stalled_streams_ == options_.stalled_streams_max) {
      counters_.add(Limit::kStalledConnection);
      fail(ErrorCode::kEnhanceYourCalm, to_string(Limit::kStalledConnection));
    } else {
      fail_stream(id, ErrorCode::kCancel, to_string(Limit::kStalledStream));
    }
  }
  settle();
}

bool Session::is_stalled(Stream& stream) {
  if (std::min(stream.send_window, send_window_) > 0) {
    stream.stalled_since = {};
    return false;
  }
  const bool is_new = stream.stalled_since == MonotonicTime{};
  if (is_new || stream.sent_bytes - stream.sent_before_stall >= kStallBytes) {
    stream.stalled_since = now_;
    stream.sent_before_stall = stream.sent_bytes;
  }
  return now_ - stream.stalled_since >= options_.stall_time;
}

// --- the connection ---

void Session::drain() {
  if (is_ended() || drain_ != Drain::kNone) return;
  drain_ = Drain::kNoticed;
  append_goaway(kStreamIdMax, ErrorCode::kNoError, {}, output_.control());
  append_ping(kDrainPing, 0, output_.control());
}

void Session::finish_drain() {
  if (is_ended() || drain_ == Drain::kFinal) return;
  drain_ = Drain::kFinal;
  append_goaway(last_peer_stream_, ErrorCode::kNoError, {}, output_.control());
}

void Session::drop() {
  if (!is_ended()) end_ = ConnectionEnd{.code = ErrorCode::kCancel, .why = "dropped"};
  has_settled_ = true;
  for (const StreamId id : streams_.ids()) {
    if (Stream* const stream = streams_.find(id); stream != nullptr) close(*stream, end_->code);
  }
}

bool Session::is_finished() const {
  if (output_.has_control()) return false;
  return is_ended() ? has_settled_ : drain_ == Drain::kFinal && streams_.empty();
}

std::size_t Session::memory_bytes() const {
  return sizeof(Session) + decoder_.memory_bytes() + streams_.memory_bytes() +
         ended_.memory_bytes() + output_.memory_bytes() + changed_.capacity() * sizeof(StreamId);
}

void Session::fail(ErrorCode code, std::string_view why) {
  if (is_ended()) return;
  end_ = ConnectionEnd{.code = code, .why = why};
  // Nothing of a stream goes behind the GOAWAY, though their handlers are notified only later.
  while (Stream* const stream = output_.ready().first()) output_.ready().remove(*stream);
  append_goaway(last_peer_stream_, code, why, output_.control());
}

void Session::use(Allowance which) {
  if (is_ended() || allowances_.use(which, now_)) return;
  ++counters_.floods[static_cast<std::size_t>(which)];
  fail(ErrorCode::kEnhanceYourCalm, to_string(which));
}

void Session::settle() {
  tell_changes();
  if (!is_ended() || has_settled_) return;
  has_settled_ = true;
  changed_ = {};
  for (const StreamId id : streams_.ids()) {
    if (Stream* const stream = streams_.find(id); stream != nullptr) close(*stream, end_->code);
  }
  on_end(*end_);
}

void Session::tell_changes() {
  while (!changed_.empty() && !is_ended()) {
    const std::vector<StreamId> changed = std::exchange(changed_, {});
    for (const StreamId id : changed) {
      Stream* const stream = streams_.find(id);
      if (stream == nullptr) continue;
      if (stream->handler != nullptr) {
        stream->handler->on_writable(id);
      } else if (stream->is_over()) {
        ended_.add_other(id);
        close(*stream, ErrorCode::kNoError);
      }
    }
  }
}

// --- one stream ---

void Session::consume(StreamId id, std::size_t bytes) {
  Stream* const stream = streams_.find(id);
  if (stream == nullptr) return;
  ENCORE_CHECK(bytes <= stream->unconsumed, "no more is consumed than has come");
  stream->unconsumed -= static_cast<std::uint32_t>(bytes);
  if (!options_.has_streams_apart) give_back(bytes);
  give_back(*stream, bytes);
}

void Session::resume(StreamId id) {
  Stream* const stream = streams_.find(id);
  if (stream == nullptr || stream->sending != Stream::Sending::kContent || is_ended()) return;
  if (stream->supply != Stream::Supply::kWaiting) return;
  stream->supply = Stream::Supply::kReady;
  output_.ready().add(*stream);
}

void Session::reset(StreamId id, ErrorCode code) {
  Stream* const stream = streams_.find(id);
  if (stream == nullptr) return;
  stream->handler = nullptr;
  if (stream->is_over()) {
    ended_.add_other(id);
  } else if (!is_ended()) {
    append_rst_stream(id, code, output_.control());
    ended_.add_reset(id);
    count_reset(stream->sending);
  }
  close(*stream, code);
}

void Session::release(StreamId id) {
  Stream* const stream = streams_.find(id);
  if (stream == nullptr) return;
  ENCORE_CHECK(stream->sending == Stream::Sending::kEnded, "a message is sent before its release");
  reset(id, ErrorCode::kNoError);
}

void Session::set_priority(StreamId id, const Priority& priority) {
  Stream* const stream = streams_.find(id);
  if (stream == nullptr || stream->priority == priority) return;
  const bool was_queued = stream->is_queued;
  output_.ready().remove(*stream);
  stream->priority = priority;
  if (was_queued) output_.ready().add(*stream);
}

SendStatus Session::status(StreamId id) const {
  const Stream* const stream = streams_.find(id);
  if (stream == nullptr) return SendStatus::kGone;
  if (stream->sending == Stream::Sending::kNothing) return SendStatus::kIdle;
  if (stream->sending == Stream::Sending::kEnded) return SendStatus::kDone;
  switch (stream->supply) {
    case Stream::Supply::kReady:
      return SendStatus::kBlocked;
    case Stream::Supply::kWaiting:
      return SendStatus::kWaiting;
    case Stream::Supply::kBroken:
      break;
  }
  return SendStatus::kBroken;
}

std::uint64_t Session::sent_bytes(StreamId id) const {
  const Stream* const stream = streams_.find(id);
  return stream == nullptr ? 0 : stream->sent_bytes;
}

bool Session::is_received(StreamId id) const {
  const Stream* const stream = streams_.find(id);
  return stream != nullptr && stream->receiving == Stream::Receiving::kEnded;
}

std::int64_t Session::send_window(StreamId id) const {
  const Stream* const stream = streams_.find(id);
  return stream == nullptr ? 0 : std::min(stream->send_window, send_window_);
}

void Session::begin(std::span<const SettingValue> settings) {
  std::string& out = output_.control();
  if (role_ == Role::kClient) out += kPreface;
  append_settings(settings, out);
  const std::int32_t more = options_.connection_window_bytes - kInitialWindow;
  if (more == 0) return;
  append_window_update(0, static_cast<std::uint32_t>(more), out);
  receive_window_ += more;
}

Stream& Session::open(StreamId id) {
  ++counters_.streams;
  allowances_.add_work();
  Stream& stream = streams_.add(id);
  stream.send_window = initial_send_window_;
  stream.receive_window = options_.stream_window_bytes;
  return stream;
}

void Session::write_table_size(std::string& block) {
  if (std::exchange(has_table_change_, false)) append_no_table(block);
}

void Session::send_content(Stream& stream, ContentSource& content, std::uint64_t length,
                           const std::string* trailers) {
  stream.content = &content;
  stream.content_left = length;
  stream.trailers = trailers;
  stream.sending = Stream::Sending::kContent;
  stream.supply = Stream::Supply::kReady;
  output_.ready().add(stream);
}

void Session::end_sending(Stream& stream) {
  output_.ready().remove(stream);
  stream.sending = Stream::Sending::kEnded;
  if (stream.is_over()) streams_.count_over();
  changed_.push_back(stream.id);
}

void Session::end_receiving(Stream& stream, std::string_view trailers) {
  if (stream.expected != Stream::kOpenEnd && stream.received != stream.expected) {
    refuse(stream.id, Malformed::kLengthMismatch);
    return;
  }
  stream.receiving = Stream::Receiving::kEnded;
  if (stream.is_over()) streams_.count_over();
  if (stream.handler != nullptr) {
    stream.handler->on_content_end(stream.id, trailers);
  } else {
    changed_.push_back(stream.id);
  }
}

void Session::refuse(StreamId id, Malformed reason) {
  ++counters_.malformed[static_cast<std::size_t>(reason)];
  fail_stream(id, ErrorCode::kProtocolError, to_string(reason));
}

void Session::fail_stream(StreamId id, ErrorCode code, std::string_view why) {
  if (is_ended()) return;
  append_rst_stream(id, code, output_.control());
  ended_.add_reset(id);
  Stream* const stream = streams_.find(id);
  count_reset(stream == nullptr ? Stream::Sending::kNothing : stream->sending);
  if (stream == nullptr) return;
  fault_ = why;
  close(*stream, code);
  fault_ = {};
}

void Session::forsake(Stream& stream, ErrorCode code) {
  ended_.add_reset(stream.id);
  close(stream, code);
}

void Session::count_reset(Stream::Sending sending) {
  // A client's own: what its users give up is no fault of the server's. A server's: what has its
  // answer, and is reset for the rest of its content, costs nobody anything.
  if (role_ == Role::kServer && sending == Stream::Sending::kEnded) return;
  ++counters_.streams_reset;
  if (role_ == Role::kClient) return;
  use(sending == Stream::Sending::kNothing ? Allowance::kResetUnanswered
                                           : Allowance::kResetAnswered);
}

void Session::close(Stream& stream, ErrorCode code) {
  const StreamId id = stream.id;
  StreamHandler* const handler = stream.handler;
  if (data_stream_ == &stream) data_stream_ = nullptr;
  output_.forget(stream);
  const std::uint32_t unconsumed = stream.unconsumed;
  streams_.erase(id);
  if (!options_.has_streams_apart) give_back(unconsumed);
  if (handler != nullptr) handler->on_gone(id, code);
}

void Session::give_back(std::size_t bytes) {
  unannounced_ += static_cast<std::uint32_t>(bytes);
  if (is_ended() ||
      unannounced_ < static_cast<std::uint32_t>(options_.connection_window_bytes) / 2) {
    return;
  }
  append_window_update(0, unannounced_, output_.control());
  receive_window_ += std::exchange(unannounced_, 0);
}

void Session::give_back(Stream& stream, std::size_t bytes) {
  stream.unannounced += static_cast<std::uint32_t>(bytes);
  if (is_ended() || stream.receiving == Stream::Receiving::kEnded) return;
  if (stream.unannounced < static_cast<std::uint32_t>(options_.stream_window_bytes) / 2) return;
  append_window_update(stream.id, stream.unannounced, output_.control());
  stream.receive_window += static_cast<std::int32_t>(std::exchange(stream.unannounced, 0));
}

// --- sending -------------------------------------------------------------------------------------

void Session::on_source_end(Stream& stream) {
  if (stream.trailers != nullptr && !stream.trailers->empty()) {
    send_headers(stream, [&stream](std::string& block) {
      std::optional<std::uint64_t> length;
      append_fields(*stream.trailers, block, length);
      return true;
    });
    return;
  }
  append_frame_header({.type = FrameType::kData, .flags = kFlagEndStream, .stream = stream.id},
                      output_.control());
  stream.sent_bytes += kFrameHeaderBytes;
  end_sending(stream);
}

void Session::on_source_stopped(Stream& stream) { changed_.push_back(stream.id); }

void Session::on_content_begun(Stream& stream, std::uint32_t bytes) {
  stream.send_window -= bytes;
  send_window_ -= bytes;
  if (stream.content_left != Stream::kOpenEnd) stream.content_left -= bytes;
  stream.sent_bytes += kFrameHeaderBytes + bytes;
  // A short frame that leaves room in the windows is a short message, as those of gRPC. One that
  // uses up a window may be short because the peer opens it by a few bytes at a time.
  if (bytes < kWorkBytes && (stream.send_window <= 0 || send_window_ <= 0)) return;
  if (bytes >= kWorkBytes) allowances_.add_work();
  windows_due_ = std::min(windows_due_ + kWindowsForFrame, kWindowsDueMax);
}

void Session::on_content_left(Stream& stream, bool ends_stream) {
  if (ends_stream) end_sending(stream);
}

}  // namespace encore::h2
