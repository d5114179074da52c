#include "proxy/h2/output.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/recycled.h"

namespace encore::h2 {
namespace {

constexpr std::size_t kFramesMax = 64;

iovec part_of(const char* bytes, std::size_t size) { return {const_cast<char*>(bytes), size}; }

std::size_t take(std::size_t& bytes, std::size_t most) {
  const std::size_t taken = std::min(bytes, most);
  bytes -= taken;
  return taken;
}

// How many streams take turns from this one on.
std::size_t turns_from(const Stream& stream) {
  std::size_t turns = 0;
  for (const Stream* each = &stream; each != nullptr && each->priority == stream.priority;
       each = each->behind) {
    ++turns;
  }
  return turns;
}

// Content of open length may have ended, which needs no window.
bool may_be_at_end(const Stream& stream) {
  return stream.content_left == Stream::kOpenEnd && !stream.is_shut;
}

}  // namespace

struct Output::Frame {
  Stream* stream = nullptr;
  std::uint32_t bytes = 0;
  bool ends_stream = false;
  std::array<char, kFrameHeaderBytes> header = {};
};

struct Output::Plan {
  const Output* owner = nullptr;  // null: none is planned
  std::array<Frame, kFramesMax> frames;
  std::size_t count = 0;
  bool is_control_first = false;
  std::vector<StreamId> moved;
};

Output::Plan& Output::plan() {
  thread_local Plan plan;
  return plan;
}

Output::Output() = default;

Output::~Output() {
  if (plan().owner == this) plan().owner = nullptr;
  give_text(std::move(control_));
}

Batch Output::gather(std::span<iovec> room, std::size_t bytes_max, std::int64_t window,
                     OutputOwner& owner) {
  Plan& next = plan();
  ENCORE_CHECK(next.owner == nullptr, "a batch is sent before the next is gathered");
  ENCORE_CHECK(room.size() >= kPartsMin && bytes_max > 0, "a batch needs room");
  next.owner = this;
  next.count = 0;
  Batch batch;
  next.is_control_first = control_left() != 0;
  gather_rest(room, batch);
  const std::size_t control_at = batch.parts;
  if (next.is_control_first) {
    ++batch.parts;
    batch.bytes += control_left();
  }
  const std::size_t control_before = control_left();
  std::size_t turns = 0;
  const Stream* shortened = nullptr;  // takes more than its share: who is less urgent waits
  Stream* each = ready_.first();
  while (each != nullptr && batch.bytes < bytes_max && next.count < kFramesMax &&
         room.size() - batch.parts > kPartsMin / 2) {
    Stream& stream = *each;
    each = each->behind;
    if (shortened != nullptr && shortened->priority != stream.priority) break;
    const std::int64_t allowed = std::max<std::int64_t>(std::min(stream.send_window, window), 0);
    std::size_t most = std::min(bytes_max - batch.bytes, static_cast<std::size_t>(allowed));
    std::size_t share = most + 1;
    if (stream.priority.is_incremental) {
      if (turns == 0) turns = turns_from(stream);
      share = std::max(kTurnBytes, (bytes_max - batch.bytes) / turns--);
      most = std::min(most, share);
    }
    const bool is_in_midst = &stream == stream_ && is_in_frame();
    if (is_in_midst || (most == 0 && !may_be_at_end(stream))) continue;
    const std::size_t planned =
        gather_content(stream, room.first(room.size() - 1), most, batch, owner);
    window -= static_cast<std::int64_t>(planned);
    if (planned == share) shortened = &stream;
  }
  // Ends of streams may have been written on the way.
  if (next.is_control_first) {
    room[control_at] = part_of(control_.data() + control_sent_, control_left());
    batch.bytes += control_left() - control_before;
  } else if (control_left() != 0) {
    room[batch.parts++] = part_of(control_.data() + control_sent_, control_left());
    batch.bytes += control_left();
  }
  return batch;
}

bool Output::has_content(std::int64_t window) const {
  for (const Stream* each = ready_.first(); each != nullptr; each = each->behind) {
    if (std::min(each->send_window, window) > 0 || may_be_at_end(*each)) return true;
  }
  return false;
}

void Output::gather_rest(std::span<iovec> room, Batch& batch) const {
  if (header_left_ != 0) {
    room[batch.parts++] = part_of(header_.data() + header_.size() - header_left_, header_left_);
    batch.bytes += header_left_;
  }
  if (content_left_ == 0) return;
  room[batch.parts++] = part_of(rest_.data() + rest_.size() - content_left_, content_left_);
  batch.bytes += content_left_;
}

std::size_t Output::gather_content(Stream& stream, std::span<iovec> room, std::size_t bytes,
                                   Batch& batch, OutputOwner& owner) {
  Plan& next = plan();
  std::array<iovec, 32> seen;
  const std::size_t parts_max = std::min<std::size_t>(seen.size(), (room.size() - batch.parts) / 2);
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, stream.content_left));
  const auto peeked = stream.content->peek(
      std::span(seen).first(std::max<std::size_t>(parts_max, 2)), std::max<std::size_t>(bytes, 1));
  if (peeked.state != ContentSource::State::kReady) {
    ready_.remove(stream);
    if (peeked.state == ContentSource::State::kEnd &&
        (stream.content_left == 0 || stream.content_left == Stream::kOpenEnd)) {
      owner.on_source_end(stream);
    } else {
      stream.supply = peeked.state == ContentSource::State::kWaiting ? Stream::Supply::kWaiting
                                                                     : Stream::Supply::kBroken;
      owner.on_source_stopped(stream);
    }
    return 0;
  }
  if (bytes == 0) {
    stream.is_shut = true;
    return 0;
  }
  std::size_t planned = 0;
  std::size_t part = 0;
  std::size_t part_used = 0;
  while (planned < peeked.bytes && next.count < kFramesMax && room.size() - batch.parts >= 2) {
    Frame& frame = next.frames[next.count];
    const std::size_t header_at = batch.parts++;
    std::size_t size = 0;
    while (size < kFrameBytesMax && part < peeked.parts && batch.parts < room.size()) {
      const std::size_t piece = std::min(seen[part].iov_len - part_used, kFrameBytesMax - size);
      room[batch.parts++] =
          part_of(static_cast<const char*>(seen[part].iov_base) + part_used, piece);
      size += piece;
      part_used += piece;
      if (part_used != seen[part].iov_len) break;
      ++part;
      part_used = 0;
    }
    planned += size;
    frame.stream = &stream;
    frame.bytes = static_cast<std::uint32_t>(size);
    frame.ends_stream = planned == stream.content_left;
    write_frame_header({.length = frame.bytes,
                        .type = FrameType::kData,
                        .flags = frame.ends_stream ? kFlagEndStream : std::uint8_t{0},
                        .stream = stream.id},
                       frame.header.data());
    room[header_at] = part_of(frame.header.data(), frame.header.size());
    batch.bytes += frame.header.size() + size;
    ++next.count;
  }
  return planned;
}

std::span<const StreamId> Output::sent(std::size_t bytes, OutputOwner& owner) {
  Plan& now = plan();
  ENCORE_CHECK(now.owner == this, "only what was gathered is sent");
  now.owner = nullptr;
  now.moved.clear();
  if (bytes != 0 && is_in_frame()) send_rest(bytes, owner);
  if (now.is_control_first) send_control(bytes);
  for (std::size_t i = 0; i < now.count && bytes != 0; ++i) {
    send_frame(now.frames[i], bytes, owner);
  }
  if (!now.is_control_first) send_control(bytes);
  ENCORE_CHECK(bytes == 0, "no more is sent than was gathered");
  return now.moved;
}

void Output::send_rest(std::size_t& bytes, OutputOwner& owner) {
  header_left_ = static_cast<std::uint8_t>(header_left_ - take(bytes, header_left_));
  content_left_ -= static_cast<std::uint32_t>(take(bytes, content_left_));
  if (stream_ != nullptr) touch(*stream_);
  if (is_in_frame()) return;
  rest_ = {};
  if (Stream* const stream = std::exchange(stream_, nullptr); stream != nullptr) {
    owner.on_content_left(*stream, ends_stream_);
  }
}

void Output::send_control(std::size_t& bytes) {
  control_sent_ += take(bytes, control_left());
  if (control_left() != 0 || control_.empty()) return;
  give_text(std::move(control_));
  control_ = {};
  control_sent_ = 0;
}

void Output::send_frame(Frame& frame, std::size_t& bytes, OutputOwner& owner) {
  Stream& stream = *frame.stream;
  stream.is_shut = false;
  owner.on_content_begun(stream, frame.bytes);
  touch(stream);
  const std::size_t of_header = take(bytes, frame.header.size());
  const std::size_t of_content = take(bytes, frame.bytes);
  if (of_content != 0) stream.content->advance(of_content);
  if (of_content == frame.bytes) {
    owner.on_content_left(stream, frame.ends_stream);
    return;
  }
  header_ = frame.header;
  header_left_ = static_cast<std::uint8_t>(frame.header.size() - of_header);
  content_left_ = static_cast<std::uint32_t>(frame.bytes - of_content);
  ends_stream_ = frame.ends_stream;
  stream_ = &stream;
  keep_rest(stream);
}

// At most a frame's content, at each time that the socket is full.
void Output::keep_rest(Stream& stream) {
  rest_.clear();
  rest_.reserve(content_left_);
  while (rest_.size() < content_left_) {
    std::array<iovec, 8> seen;
    const auto peeked = stream.content->peek(seen, content_left_ - rest_.size());
    ENCORE_CHECK(peeked.bytes != 0, "what was gathered stays until it is sent");
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      rest_.append(static_cast<const char*>(seen[i].iov_base), seen[i].iov_len);
    }
    stream.content->advance(peeked.bytes);
  }
}

void Output::touch(const Stream& stream) {
  std::vector<StreamId>& moved = plan().moved;
  if (moved.empty() || moved.back() != stream.id) moved.push_back(stream.id);
}

void Output::forget(Stream& stream) {
  ENCORE_CHECK(plan().owner != this, "no stream ends between gathering and sending");
  ready_.remove(stream);
  if (stream_ == &stream) stream_ = nullptr;
}

}  // namespace encore::h2
