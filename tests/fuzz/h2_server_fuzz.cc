// Sessions of HTTP/2 with clients. However the bytes are cut and whatever they are, a reported
// request is one head and no more, only frames within the client's windows are sent, each stream
// ends once, and limits hold. The first byte chooses how the input is cut and how it is answered.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/h2/server_session.h"
#include "proxy/http/framing.h"
#include "proxy/http/parser.h"

using namespace encore;
using namespace encore::h2;

namespace {

constexpr http::Limits kHeadLimits{.head_bytes_max = 16384, .fields_max = 1000};

class Source final : public ContentSource {
 public:
  Source(std::size_t bytes, bool is_late) : left_(bytes), available_(is_late ? bytes / 2 : bytes) {}
  Peeked peek(std::span<iovec> room, std::size_t bytes_max) override {
    if (left_ == 0) return {.state = State::kEnd};
    const std::size_t bytes = std::min({left_, available_, bytes_max, kText.size()});
    if (bytes == 0) return {.state = State::kWaiting};
    room[0] = {const_cast<char*>(kText.data()), bytes};
    return {.state = State::kReady, .parts = 1, .bytes = bytes};
  }
  void advance(std::size_t bytes) override {
    ENCORE_CHECK(bytes <= left_ && bytes <= available_, "no more is taken than was shown");
    left_ -= bytes;
    available_ -= bytes;
  }
  void release() { available_ = left_; }

 private:
  static constexpr std::string_view kText = "content of a response, as long as it may be";
  std::size_t left_;
  std::size_t available_;
};

// Checks a frame of ours.
class Reader {
 public:
  void read(std::string_view bytes) {
    unread_ += bytes;
    while (unread_.size() >= kFrameHeaderBytes) {
      const FrameHeader header = read_frame_header(unread_.data());
      ENCORE_CHECK(header.length <= kFrameBytesMax, "a frame has a limit");
      if (unread_.size() < kFrameHeaderBytes + header.length) return;
      ENCORE_CHECK(!has_gone_ || header.type != FrameType::kHeaders, "GOAWAY ends what is said");
      if (header.type == FrameType::kHeaders) {
        struct Nothing final : FieldSink {
          bool on_field(std::string_view name, std::string_view) override {
            return !name.empty() && std::none_of(name.begin(), name.end(),
                                                 [](char c) { return c >= 'A' && c <= 'Z'; });
          }
        } nothing;
        const auto status =
            decoder_.decode(std::string_view(unread_).substr(kFrameHeaderBytes, header.length),
                            header.has(kFlagEndHeaders), nothing);
        ENCORE_CHECK(status == FieldDecoder::Status::kEnd, "a block of ours can be decoded");
      }
      if (header.type == FrameType::kGoAway) {
        has_gone_ = read_u32(unread_.data() + kFrameHeaderBytes + 4) != 0;
      }
      all_.append(unread_, 0, kFrameHeaderBytes + header.length);
      unread_.erase(0, kFrameHeaderBytes + header.length);
    }
  }
  const std::string& all() const { return all_; }
  bool is_between() const { return unread_.empty(); }

 private:
  FieldDecoder decoder_;
  std::string unread_;
  std::string all_;
  bool has_gone_ = false;
};

class World final : public ServerHandler, public StreamHandler {
 public:
  World(std::uint8_t character, std::size_t step)
      : character_(character), step_(step), session_(options(), counters_, *this) {}

  void run(std::string_view input) {
    give(kPreface);
    give(std::string_view("\0\0\0\4\0\0\0\0\0", 9));
    give(input);
    take();
    session_.check_timeouts(now_ + std::chrono::seconds(20));
    session_.check_timeouts(now_ + std::chrono::seconds(60));
    take();
    session_.drain();
    session_.finish_drain();
    take();
    session_.drop();
    ENCORE_CHECK(open_.empty(), "each stream ends");
    ENCORE_CHECK(session_.stream_count() == 0, "none is left");
  }

  StreamHandler* on_request(StreamId stream, const Request& request) override {
    check_head(request.text, request.has_content);
    note(stream, request.text);
    switch ((stream / 2 + character_) % 6) {
      case 0:
        session_.respond(stream, "HTTP/1.1 200 OK\r\nAge: 1\r\n", ServerSession::Framing::kNone);
        return nullptr;
      case 1:
        session_.reset(stream, ErrorCode::kInternalError);
        return nullptr;
      case 2:
        break;
      case 3:
        answer(stream, ServerSession::Framing::kLength, 70);
        break;
      case 4:
        session_.send_interim(stream, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
        answer(stream, ServerSession::Framing::kOpen, 30000);
        break;
      default:
        break;
    }
    open_.emplace(stream, 0);
    return this;
  }
  StreamHandler* on_connect(StreamId stream, const Connect& connect) override {
    http::RequestHead head;
    http::ParseError error;
    const auto status = http::parse_request(connect.text, kHeadLimits, head, error);
    ENCORE_CHECK(status != http::ParseStatus::kIncomplete, "what is told is a whole head");
    ENCORE_CHECK(status == http::ParseStatus::kBad || head.head_size == connect.text.size(),
                 "and no more");
    note(stream, connect.text);
    answer(stream, ServerSession::Framing::kOpen, 100);
    open_.emplace(stream, 0);
    return this;
  }
  void on_connection_end(const ConnectionEnd& end) override { events_ += end.why; }
  void on_content(StreamId stream, std::string_view bytes) override {
    ENCORE_CHECK(open_.contains(stream), "content comes on open streams");
    contents_[stream] += bytes;
    if (character_ % 2 == 0) session_.consume(stream, bytes.size());
  }
  void on_content_end(StreamId stream, std::string_view trailers) override {
    ENCORE_CHECK(open_.contains(stream), "ends come on open streams");
    http::Fields fields;
    http::ParseError error;
    (void)http::parse_fields(trailers, kHeadLimits, fields, error);
    note(stream, "ended");
    note(stream, trailers);
    if (session_.status(stream) == SendStatus::kIdle) {
      session_.respond(stream, "HTTP/1.1 204 No Content\r\n", ServerSession::Framing::kNone);
    }
  }
  void on_writable(StreamId stream) override {
    ENCORE_CHECK(open_.contains(stream), "events come on open streams");
    switch (session_.status(stream)) {
      case SendStatus::kDone:
        session_.release(stream);
        forget(stream);
        break;
      case SendStatus::kWaiting:
        sources_.at(stream)->release();
        session_.resume(stream);
        break;
      case SendStatus::kBroken:
        ENCORE_CHECK(false, "no source breaks");
        break;
      default:
        break;
    }
  }
  void on_gone(StreamId stream, ErrorCode code) override {
    ENCORE_CHECK(open_.contains(stream), "a stream goes once");
    is_cut_ = is_cut_ || code == ErrorCode::kProtocolError;
    if (!contents_[stream].empty() && code == ErrorCode::kProtocolError) contents_[stream].clear();
    forget(stream);
  }

  std::string description() const {
    std::string text = events_;
    for (const auto& [stream, content] : contents_) text += content + "|";
    return text + reader_.all();
  }

 private:
  Options options() const {
    Options options;
    options.streams_max = 10;
    options.head_bytes_max = 4096;
    options.fields_max = 50;
    options.stream_window_bytes = 70000;
    options.connection_window_bytes = 80000;
    options.has_absolute_form = character_ % 4 >= 2;
    return options;
  }
  static void check_head(const std::string& text, bool has_content) {
    http::RequestHead head;
    http::ParseError error;
    const auto status = http::parse_request(text, kHeadLimits, head, error);
    ENCORE_CHECK(status != http::ParseStatus::kIncomplete, "what is told is a whole head");
    if (status == http::ParseStatus::kBad) return;
    ENCORE_CHECK(head.head_size == text.size(), "and no more");
    const http::Framing framing = http::request_framing(head);
    ENCORE_CHECK(framing.kind != http::BodyKind::kError, "its framing is sound");
    ENCORE_CHECK(has_content || framing.kind == http::BodyKind::kNone || framing.length == 0,
                 "content is announced where there is some");
    ENCORE_CHECK(!has_content || framing.kind != http::BodyKind::kNone, "and there alone");
  }
  void answer(StreamId stream, ServerSession::Framing framing, std::size_t bytes) {
    auto& source = sources_[stream];
    source = std::make_unique<Source>(bytes, stream % 4 == 1);
    session_.respond(
        stream, "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n",
        framing, source.get(), &kTrailers);
  }
  void note(StreamId stream, std::string_view what) {
    events_ += std::to_string(stream) + " " + std::string(what) + "\n";
  }
  void forget(StreamId stream) {
    open_.erase(stream);
    sources_.erase(stream);
  }
  void give(std::string_view bytes) {
    while (!bytes.empty()) {
      // A copy in its own memory, so that a look behind its end is seen.
      const std::string part(bytes.substr(0, step_));
      const std::size_t used = session_.receive(part, now_);
      ENCORE_CHECK(used == part.size() || session_.is_paused(), "all is read");
      ENCORE_CHECK(session_.stream_count() <= 10, "streams have a limit");
      if (session_.is_paused()) take();
      bytes.remove_prefix(used);
    }
    ENCORE_CHECK(session_.memory_bytes() < 200000, "memory has a limit");
  }
  void take() {
    std::array<iovec, 16> room;
    for (int i = 0; session_.has_output(); ++i) {
      ENCORE_CHECK(i < 100000, "what is to be sent comes to an end");
      const Batch batch = session_.gather(room, 5000);
      std::string bytes;
      for (std::size_t part = 0; part < batch.parts; ++part) {
        bytes.append(static_cast<const char*>(room[part].iov_base), room[part].iov_len);
      }
      ENCORE_CHECK(bytes.size() == batch.bytes, "a batch is as long as it says");
      if (character_ >= 128) bytes.resize(std::min<std::size_t>(bytes.size(), 700));
      session_.sent(bytes.size(), now_);
      reader_.read(bytes);
    }
    ENCORE_CHECK(reader_.is_between(), "frames are sent whole");
  }

  static inline const std::string kTrailers = "X-Sum: 1\r\n";

  const std::uint8_t character_;
  const std::size_t step_;
  const MonotonicTime now_ = MonotonicTime(std::chrono::hours(1));
  Counters counters_;
  std::map<StreamId, int> open_;
  std::map<StreamId, std::unique_ptr<Source>> sources_;
  std::map<StreamId, std::string> contents_;
  std::string events_;
  bool is_cut_ = false;
  Reader reader_;
  ServerSession session_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 65536) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  World whole(data[0], SIZE_MAX);
  whole.run(input);
  World cut(data[0], 1 + data[0] % 16);
  cut.run(input);
  ENCORE_CHECK(whole.description() == cut.description(), "cuts change nothing");
  return 0;
}
