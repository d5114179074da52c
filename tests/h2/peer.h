// A client made of hand-written frames in front of a ServerSession, and what both have said. Takes
// no time: the clock is a number. Test-only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/h2/field_decoder.h"
#include "proxy/h2/frame.h"
#include "proxy/h2/server_session.h"

namespace encore::h2::test {

using FieldList = std::vector<std::pair<std::string, std::string>>;

// A block of literals (RFC 7541 6.2.2).
std::string block_of(const FieldList& fields);
FieldList get(std::string_view path = "/", const FieldList& more = {});

std::string frame(FrameType type, std::uint8_t flags, StreamId stream, std::string_view payload);
std::string headers(StreamId stream, const FieldList& fields, bool ends = true);
std::string data(StreamId stream, std::string_view bytes, bool ends = false);
std::string rst(StreamId stream, ErrorCode code = ErrorCode::kCancel);
std::string window(StreamId stream, std::uint32_t increment);
std::string setting(Setting setting, std::uint32_t value);
std::string u32(std::uint32_t value);
// Preface and empty SETTINGS.
std::string hello();

struct SentFrame {
  FrameHeader header;
  std::string payload;
  FieldList fields;        // in HEADERS
  ErrorCode code() const;  // in RST_STREAM, GOAWAY
};

// Content out of a string, of which `available` bytes are there; in parts of `part_bytes`.
class TextSource final : public ContentSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)), available(text_.size()) {}
  Peeked peek(std::span<iovec> room, std::size_t bytes_max) override;
  void advance(std::size_t bytes) override { at_ += bytes; }

 private:
  std::string text_;
  std::size_t at_ = 0;

 public:
  std::size_t available;
  std::size_t part_bytes = 1000;
  bool is_broken = false;
};

struct StreamSeen {
  std::string text = {};
  std::string authority = {};
  std::string protocol = {};
  bool is_connect = false;
  bool has_content = false;
  std::string content = {};
  bool has_ended = false;
  std::string trailers = {};
  int writable = 0;
  std::optional<ErrorCode> gone = {};
};

class Peer final : public ServerHandler, public StreamHandler {
 public:
  explicit Peer(const Options& options = {}) : session(options, counters, *this) {}

  // Says hello, and takes what the session has to say to that.
  Peer& greet();
  // Gives the session these bytes in one piece.
  Peer& give(std::string_view bytes);
  // Takes all that the session sends, in writes of at most `write_max` bytes.
  std::vector<SentFrame> take(std::size_t write_max = 1 << 20);
  // All that was taken.
  const std::vector<SentFrame>& sent() const { return sent_; }
  // Frames of the type, among all that was taken.
  std::vector<SentFrame> sent(FrameType type, std::optional<StreamId> stream = {}) const;
  // Content that was sent on the stream, and whether its end was.
  std::string content(StreamId stream) const;
  bool has_end(StreamId stream) const;
  // The code of the connection's end; nothing: it goes on.
  std::optional<ErrorCode> end_code() const;
  std::string why() const { return end ? std::string(end->why) : std::string(); }
  // The code of the RST_STREAM that was sent.
  std::optional<ErrorCode> reset_code(StreamId stream) const;
  void pass(Nanoseconds time) { now += time; }

  StreamHandler* on_request(StreamId stream, const Request& request) override;
  StreamHandler* on_connect(StreamId stream, const Connect& connect) override;
  void on_connection_end(const ConnectionEnd& why) override { end = why; }
  void on_content(StreamId stream, std::string_view bytes) override;
  void on_content_end(StreamId stream, std::string_view trailers) override;
  void on_writable(StreamId stream) override;
  void on_gone(StreamId stream, ErrorCode code) override { seen[stream].gone = code; }

  // Answers a request immediately by this head; empty: not.
  std::string answer;
  bool consumes = true;
  bool releases = true;  // when a response is done
  std::map<StreamId, StreamSeen> seen;
  std::optional<ConnectionEnd> end;
  MonotonicTime now = MonotonicTime(std::chrono::hours(1));
  Counters counters;
  ServerSession session;

 private:
  void read(std::string_view bytes);

  FieldDecoder decoder_;
  std::string unread_;
  std::vector<SentFrame> sent_;
};

}  // namespace encore::h2::test
