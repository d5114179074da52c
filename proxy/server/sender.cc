#include "proxy/server/sender.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "proxy/http/chunked.h"
#include "proxy/server/recycled.h"

namespace encore::server {
namespace {

constexpr std::size_t kPartsMax = 64;

}  // namespace

bool Sender::set_body(store::BodyRef body, std::uint64_t start) {
  body_ = std::move(body);
  cursor_ = body_->open(start);
  return cursor_.has_value();
}

void Sender::add_text(std::string text) {
  if (segment_ == segments_.size() || segments_.back().end != segments_.back().begin) {
    ENCORE_CHECK(segment_ != segments_.size() || text.size() >= text_offset_,
                 "what was sent ahead of a text is its beginning");
    segments_.emplace_back();
  }
  std::string& last = segments_.back().text;
  if (last.empty()) {
    last = std::move(text);
  } else {
    last += text;
  }
}

void Sender::add_range(std::uint64_t begin, std::uint64_t end) {
  if (segment_ == segments_.size() || segments_.back().end != segments_.back().begin) {
    segments_.emplace_back();
  }
  segments_.back().begin = begin;
  segments_.back().end = end;
}

void Sender::add_open_body(bool chunked, const std::string* trailers) {
  open_ = true;
  chunked_ = chunked;
  trailers_ = trailers;
}

Sender::Status Sender::send_ahead(net::Stream& stream, std::string_view bytes) {
  if (segment_ != segments_.size() || open_ || text_offset_ != 0) return Status::kWaiting;
  const net::WriteResult result = stream.write(bytes);
  if (result.status == net::WriteStatus::kError) return Status::kError;
  text_offset_ = result.bytes;
  sent_bytes_ += result.bytes;
  return text_offset_ != 0 ? Status::kDone : Status::kBlocked;
}

Sender::Status Sender::pump(net::Stream& stream) {
  const std::uint64_t sent_before = sent_bytes_;
  last_ = pump_turn(stream);
  if (!is_blocked()) {
    stall_since_ = {};
  } else if (sent_bytes_ != sent_before || stall_since_ == MonotonicTime{}) {
    stall_since_ = stream.loop().now();
  }
  return last_;
}

Nanoseconds Sender::stalled_for(MonotonicTime now) {
  if (!is_blocked()) return Nanoseconds(0);
  if (stall_since_ == MonotonicTime{}) stall_since_ = now;
  return now - stall_since_;
}

std::uint64_t Sender::held_bytes() const {
  std::uint64_t bytes = open_text_.size();
  for (std::size_t i = segment_; i < segments_.size(); ++i) bytes += segments_[i].text.size();
  if (cursor_) bytes += cursor_->body().held_for(cursor_->position());
  return bytes;
}

Sender::Status Sender::pump_turn(net::Stream& stream) {
  turn_bytes_ = 0;
  while (segment_ < segments_.size()) {
    if (turn_bytes_ >= kTurnBytes) return Status::kMore;
    const Status status = pump_segment(stream, kTurnBytes - turn_bytes_);
    if (status != Status::kDone) return status;
  }
  while (open_) {
    if (turn_bytes_ >= kTurnBytes) return Status::kMore;
    const Status status = pump_open(stream, kTurnBytes - turn_bytes_);
    if (status != Status::kDone) return status;
  }
  return Status::kDone;
}

Sender::Status Sender::write(net::Stream& stream, std::string& text, std::uint64_t body_bytes,
                             std::uint64_t* body_written) {
  std::array<iovec, kPartsMax> parts;
  std::size_t count = 0;
  const std::size_t text_left = text.size() - text_offset_;
  if (text_left != 0) parts[count++] = {text.data() + text_offset_, text_left};
  if (body_bytes != 0) {
    const std::span<iovec> room(parts.data() + count, kPartsMax - count);
    count += cursor_->peek(room, body_bytes).parts;
  }
  *body_written = 0;
  if (count == 0) return Status::kWaiting;
  const net::WriteResult result = stream.write(std::span(parts.data(), count));
  sent_bytes_ += result.bytes;
  turn_bytes_ += result.bytes;
  const std::size_t from_text = std::min(result.bytes, text_left);
  text_offset_ += from_text;
  if (text_offset_ == text.size()) {
    text.clear();
    text_offset_ = 0;
  }
  const std::uint64_t from_body = result.bytes - from_text;
  if (from_body != 0) {
    cursor_->advance(from_body);
    body_bytes_ += from_body;
    *body_written = from_body;
  }
  if (result.status == net::WriteStatus::kError) return Status::kError;
  if (result.status == net::WriteStatus::kBlocked) return Status::kBlocked;
  return Status::kDone;
}

// Ranges of a body that is still coming: what lies before the range is read over.
bool Sender::skip_to(std::uint64_t position) {
  if (!cursor_) return false;
  if (cursor_->position() > position) {
    // Parts in another order than the body's: only from a body that is all there.
    cursor_ = body_->open(position);
    return cursor_.has_value();
  }
  while (cursor_->position() < position) {
    std::array<iovec, kPartsMax> parts;
    const std::size_t bytes = cursor_->peek(parts, position - cursor_->position()).bytes;
    if (bytes == 0) return false;
    cursor_->advance(bytes);
  }
  return true;
}

Sender::Status Sender::pump_segment(net::Stream& stream, std::size_t budget) {
  Segment& segment = segments_[segment_];
  const bool has_range = segment.begin < segment.end;
  // The state is read before the bytes: what came before the end is then seen.
  const store::BodyState state = has_range ? body_->state() : store::BodyState::kComplete;
  const bool reached = !has_range || skip_to(segment.begin);
  if (has_range && !cursor_) return Status::kAborted;  // what it goes back to is gone
  const std::uint64_t wanted =
      reached && has_range ? std::min<std::uint64_t>(segment.end - segment.begin, budget) : 0;
  std::uint64_t written = 0;
  const Status status = write(stream, segment.text, wanted, &written);
  segment.begin += written;
  if (status == Status::kBlocked || status == Status::kError) return status;
  if (segment.text.empty() && segment.begin >= segment.end) {
    give_text(std::move(segment.text));
    ++segment_;
    return Status::kDone;
  }
  if (written == 0 && segment.text.empty()) {
    if (state == store::BodyState::kGrowing) return Status::kWaiting;
    return Status::kAborted;  // ended before the range did
  }
  return Status::kDone;
}

Sender::Status Sender::pump_open(net::Stream& stream, std::size_t budget) {
  const store::BodyState state = body_->state();
  const std::uint64_t available = body_->size() - cursor_->position();
  if (chunked_ && chunk_left_ == 0 && available != 0 && !ended_) {
    chunk_left_ = std::min<std::uint64_t>(available, budget);
    std::array<char, http::kChunkHeadMax> head;
    open_text_.append(head.data(), http::write_chunk_head(chunk_left_, head.data()));
  } else if (available == 0 && state == store::BodyState::kComplete && !ended_) {
    ended_ = true;
    if (chunked_) {
      open_text_ += http::kLastChunk;
      if (trailers_ != nullptr) open_text_ += *trailers_;
      open_text_ += http::kChunkEnd;
    }
  }
  const std::uint64_t wanted = chunked_ ? chunk_left_ : std::min<std::uint64_t>(available, budget);
  std::uint64_t written = 0;
  const Status status = write(stream, open_text_, wanted, &written);
  if (chunked_ && written != 0) {
    chunk_left_ -= written;
    // It goes out with the next head, or the end.
    if (chunk_left_ == 0) open_text_ += http::kChunkEnd;
  }
  if (status == Status::kBlocked || status == Status::kError) return status;
  if (ended_ && open_text_.empty()) {
    open_ = false;
    return Status::kDone;
  }
  if (status == Status::kWaiting && available == 0) {
    return state == store::BodyState::kAborted ? Status::kAborted : Status::kWaiting;
  }
  return Status::kDone;
}

}  // namespace encore::server
