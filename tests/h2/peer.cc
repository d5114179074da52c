#include "tests/h2/peer.h"

#include <algorithm>

#include "tests/catch.h"

namespace encore::h2::test {
namespace {

void append_text(std::string_view text, std::string& out) {
  std::size_t size = text.size();
  if (size < 127) {
    out += static_cast<char>(size);
  } else {
    out += '\x7f';
    for (size -= 127; size >= 128; size >>= 7U) out += static_cast<char>(size % 128 + 128);
    out += static_cast<char>(size);
  }
  out += text;
}

class Collected final : public FieldSink {
 public:
  bool on_field(std::string_view name, std::string_view value) override {
    fields.emplace_back(name, value);
    return true;
  }
  FieldList fields;
};

}  // namespace

std::string block_of(const FieldList& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    append_text(name, block);
    append_text(value, block);
  }
  return block;
}

FieldList get(std::string_view path, const FieldList& more) {
  FieldList fields = {{":method", "GET"},
                      {":scheme", "http"},
                      {":authority", "a.example"},
                      {":path", std::string(path)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

std::string frame(FrameType type, std::uint8_t flags, StreamId stream, std::string_view payload) {
  std::string out;
  append_frame_header({.length = static_cast<std::uint32_t>(payload.size()),
                       .type = type,
                       .flags = flags,
                       .stream = stream},
                      out);
  return out += payload;
}

std::string headers(StreamId stream, const FieldList& fields, bool ends) {
  const auto flags = static_cast<std::uint8_t>(kFlagEndHeaders | (ends ? kFlagEndStream : 0));
  return frame(FrameType::kHeaders, flags, stream, block_of(fields));
}

std::string data(StreamId stream, std::string_view bytes, bool ends) {
  return frame(FrameType::kData, ends ? kFlagEndStream : std::uint8_t{0}, stream, bytes);
}

std::string u32(std::uint32_t value) {
  std::string out;
  append_u32(value, out);
  return out;
}

std::string rst(StreamId stream, ErrorCode code) {
  return frame(FrameType::kRstStream, 0, stream, u32(static_cast<std::uint32_t>(code)));
}

std::string window(StreamId stream, std::uint32_t increment) {
  return frame(FrameType::kWindowUpdate, 0, stream, u32(increment));
}

std::string setting(Setting setting, std::uint32_t value) {
  std::string out;
  const SettingValue one = {setting, value};
  append_settings(std::span(&one, 1), out);
  return out;
}

std::string hello() { return std::string(kPreface) + frame(FrameType::kSettings, 0, 0, ""); }

ErrorCode SentFrame::code() const {
  return static_cast<ErrorCode>(
      read_u32(payload.data() + (header.type == FrameType::kGoAway ? 4 : 0)));
}

ContentSource::Peeked TextSource::peek(std::span<iovec> room, std::size_t bytes_max) {
  if (is_broken) return {.state = State::kBroken};
  if (at_ == text_.size()) return {.state = State::kEnd};
  Peeked peeked = {.state = at_ < available ? State::kReady : State::kWaiting};
  std::size_t left = std::min(available > at_ ? available - at_ : 0, bytes_max);
  for (std::size_t at = at_; left != 0 && peeked.parts < room.size();) {
    const std::size_t size = std::min(left, part_bytes);
    room[peeked.parts++] = {text_.data() + at, size};
    peeked.bytes += size;
    left -= size;
    at += size;
  }
  return peeked;
}

Peer& Peer::greet() {
  give(hello());
  take();
  return *this;
}

Peer& Peer::give(std::string_view bytes) {
  // A copy in its own memory, so that a look behind its end is seen.
  const std::string copy(bytes);
  std::string_view left = copy;
  while (!left.empty()) {
    const std::size_t used = session.receive(left, now);
    left.remove_prefix(used);
    if (!left.empty()) {
      REQUIRE(session.is_paused());
      take();
    }
  }
  return *this;
}

std::vector<SentFrame> Peer::take(std::size_t write_max) {
  const std::size_t before = sent_.size();
  std::array<iovec, 24> room;
  while (session.has_output()) {
    const Batch batch = session.gather(room, 64 * 1024);
    std::string bytes;
    for (std::size_t i = 0; i < batch.parts; ++i) {
      REQUIRE(room[i].iov_len != 0);
      bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    REQUIRE(bytes.size() == batch.bytes);
    bytes.resize(std::min(bytes.size(), write_max));
    session.sent(bytes.size(), now);
    read(bytes);
  }
  return {sent_.begin() + static_cast<std::ptrdiff_t>(before), sent_.end()};
}

void Peer::read(std::string_view bytes) {
  unread_ += bytes;
  while (unread_.size() >= kFrameHeaderBytes) {
    const FrameHeader header = read_frame_header(unread_.data());
    if (unread_.size() < kFrameHeaderBytes + header.length) return;
    SentFrame frame = {header, unread_.substr(kFrameHeaderBytes, header.length), {}};
    unread_.erase(0, kFrameHeaderBytes + header.length);
    if (header.type == FrameType::kHeaders || header.type == FrameType::kContinuation) {
      Collected collected;
      const auto status = decoder_.decode(frame.payload, header.has(kFlagEndHeaders), collected);
      REQUIRE(status != FieldDecoder::Status::kBroken);
      frame.fields = collected.fields;
    }
    sent_.push_back(std::move(frame));
  }
}

std::vector<SentFrame> Peer::sent(FrameType type, std::optional<StreamId> stream) const {
  std::vector<SentFrame> found;
  for (const SentFrame& each : sent_) {
    if (each.header.type == type && (!stream || each.header.stream == *stream)) {
      found.push_back(each);
    }
  }
  return found;
}

std::string Peer::content(StreamId stream) const {
  std::string bytes;
  for (const SentFrame& each : sent(FrameType::kData, stream)) bytes += each.payload;
  return bytes;
}

bool Peer::has_end(StreamId stream) const {
  return std::any_of(sent_.begin(), sent_.end(), [stream](const SentFrame& each) {
    const bool may_end =
        each.header.type == FrameType::kData || each.header.type == FrameType::kHeaders;
    return each.header.stream == stream && may_end && each.header.has(kFlagEndStream);
  });
}

std::optional<ErrorCode> Peer::end_code() const {
  if (!end) return {};
  return end->code;
}

std::optional<ErrorCode> Peer::reset_code(StreamId stream) const {
  const auto resets = sent(FrameType::kRstStream, stream);
  if (resets.empty()) return {};
  return resets.front().code();
}

StreamHandler* Peer::on_request(StreamId stream, const Request& request) {
  seen[stream] = {.text = request.text,
                  .authority = std::string(request.authority),
                  .has_content = request.has_content};
  if (answer.empty()) return this;
  session.respond(stream, answer, ServerSession::Framing::kNone);
  return nullptr;
}

StreamHandler* Peer::on_connect(StreamId stream, const Connect& connect) {
  seen[stream] = {.text = connect.text,
                  .authority = std::string(connect.authority),
                  .protocol = std::string(connect.protocol),
                  .is_connect = true,
                  .has_content = connect.has_content};
  return this;
}

void Peer::on_content(StreamId stream, std::string_view bytes) {
  seen[stream].content += bytes;
  if (consumes) session.consume(stream, bytes.size());
}

void Peer::on_content_end(StreamId stream, std::string_view trailers) {
  seen[stream].has_ended = true;
  seen[stream].trailers = trailers;
}

void Peer::on_writable(StreamId stream) {
  ++seen[stream].writable;
  if (releases && session.status(stream) == SendStatus::kDone) session.release(stream);
}

}  // namespace encore::h2::test
