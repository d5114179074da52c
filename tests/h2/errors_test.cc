// Errors of clients, and what each costs them: the connection or the stream (RFC 9113).
#include <functional>

#include "proxy/h2/server_session.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

TEST_CASE("what breaks the connection's rules ends it", "[h2][rfc9113][5.4.1]") {
  struct Row {
    ErrorCode code;
    std::string bytes;
  };
  const std::string priority_self = u32(1) + "\x10";
  const std::string open = headers(1, get(), false);
  const std::string unended = frame(FrameType::kHeaders, kFlagEndStream, 1, block_of(get()));
  const auto protocol = ErrorCode::kProtocolError;
  const auto size = ErrorCode::kFrameSizeError;
  const std::vector<Row> rows = {
      {protocol, data(0, "a")},
      {protocol, data(1, "a")},
      {protocol, data(2, "a")},
      {protocol, headers(0, get())},
      {protocol, headers(2, get())},
      {protocol, headers(5, get()) + headers(3, get())},
      {ErrorCode::kStreamClosed, headers(1, get()) + rst(1) + headers(1, get())},
      {ErrorCode::kStreamClosed, open + rst(1) + data(1, "a")},
      {protocol, rst(0)},
      {protocol, rst(1)},
      {size, open + frame(FrameType::kRstStream, 0, 1, "abc")},
      {protocol, window(0, 0)},
      {protocol, window(1, 1)},
      {size, frame(FrameType::kWindowUpdate, 0, 0, "abc")},
      {ErrorCode::kFlowControlError, window(0, 0x7fffffff)},
      {protocol, frame(FrameType::kSettings, 0, 1, "")},
      {size, frame(FrameType::kSettings, kFlagAck, 0, "abcdef")},
      {size, frame(FrameType::kSettings, 0, 0, "abc")},
      {protocol, setting(Setting::kEnablePush, 2)},
      {protocol, setting(Setting::kMaxFrameSize, 16383)},
      {protocol, setting(Setting::kMaxFrameSize, 1 << 24)},
      {protocol, setting(Setting::kEnableConnectProtocol, 2)},
      {ErrorCode::kFlowControlError, setting(Setting::kInitialWindowSize, 0x80000000)},
      {ErrorCode::kFlowControlError,
       open + window(1, 0x7fffffff - 65535) + setting(Setting::kInitialWindowSize, 65536)},
      {protocol, frame(FrameType::kPing, 0, 1, "12345678")},
      {size, frame(FrameType::kPing, 0, 0, "1234567")},
      {protocol, frame(FrameType::kGoAway, 0, 1, "12345678")},
      {size, frame(FrameType::kGoAway, 0, 0, "1234567")},
      {protocol, frame(FrameType::kPushPromise, kFlagEndHeaders, 1, "12345678")},
      {protocol, frame(FrameType::kPriority, 0, 0, u32(1) + "\x10")},
      {size, frame(FrameType::kPriority, 0, 1, "1234")},
      {protocol, frame(FrameType::kPriority, 0, 1, priority_self)},
      {protocol, frame(FrameType::kHeaders, kFlagEndHeaders | kFlagPriority, 1,
                       priority_self + block_of(get()))},
      {size, frame(FrameType::kHeaders, kFlagEndHeaders | kFlagPriority, 1, "abcd")},
      {size, frame(FrameType::kHeaders, kFlagEndHeaders | kFlagPadded, 1, "")},
      {protocol, frame(FrameType::kHeaders, kFlagEndHeaders | kFlagPadded, 1, "\x05\x82")},
      {protocol, open + frame(FrameType::kData, kFlagPadded, 1, "\x03zz")},
      {size, open + frame(FrameType::kData, kFlagPadded, 1, "")},
      {size, frame(static_cast<FrameType>(200), 0, 0, std::string(16385, 'x'))},
      {protocol, frame(FrameType::kContinuation, kFlagEndHeaders, 1, block_of(get()))},
      {protocol, unended + data(1, "a")},
      {protocol, unended + headers(3, get())},
      {protocol, unended + frame(static_cast<FrameType>(200), 0, 0, "")},
      {protocol, unended + frame(FrameType::kContinuation, kFlagEndHeaders, 3, "")},
      {ErrorCode::kCompressionError,
       frame(FrameType::kHeaders, kFlagEndHeaders, 1, "\xff\xff\xff\xff\xff\xff")},
      {ErrorCode::kCompressionError, frame(FrameType::kHeaders, kFlagEndHeaders, 1, "\xbe")},
      {ErrorCode::kCompressionError,
       frame(FrameType::kHeaders, kFlagEndHeaders, 1, std::string("\0", 1))},
      {protocol, frame(FrameType::kPriorityUpdate, 0, 1, u32(1) + "u=1")},
      {protocol, frame(FrameType::kPriorityUpdate, 0, 0, u32(0) + "u=1")},
      {size, frame(FrameType::kPriorityUpdate, 0, 0, "abc")},
  };
  for (const Row& row : rows) {
    Peer peer;
    peer.greet().give(row.bytes);
    CAPTURE(row.bytes, peer.why());
    REQUIRE(peer.end);
    CHECK(to_string(peer.end->code) == to_string(row.code));
    peer.take();
    REQUIRE_FALSE(peer.sent(FrameType::kGoAway).empty());
    CHECK(peer.sent().back().code() == row.code);
    CHECK(peer.session.is_finished());
    CHECK(peer.session.stream_count() == 0);
  }
}

TEST_CASE("a connection begins with the preface and SETTINGS", "[h2][rfc9113][3.4]") {
  const std::string preface(kPreface);
  std::vector<std::string> rows;
  rows.emplace_back("GET / HTTP/1.1\r\n");
  rows.push_back(preface.substr(0, 20) + "xxxx");
  rows.push_back(preface + frame(FrameType::kPing, 0, 0, "12345678"));
  rows.push_back(preface + frame(FrameType::kSettings, kFlagAck, 0, ""));
  for (const std::string& bytes : rows) {
    Peer peer;
    peer.give(bytes);
    CAPTURE(bytes);
    CHECK(peer.end_code() == ErrorCode::kProtocolError);
  }
}

TEST_CASE("what breaks a stream's rules ends the stream", "[h2][rfc9113][5.4.2]") {
  struct Row {
    ErrorCode code;
    std::string bytes;
  };
  const std::string open = headers(1, get(), false);
  const std::vector<Row> rows = {
      {ErrorCode::kStreamClosed, headers(1, get()) + data(1, "a")},
      {ErrorCode::kStreamClosed, headers(1, get()) + headers(1, {{"a", "b"}})},
      {ErrorCode::kProtocolError, open + headers(1, {{"a", "b"}}, false)},
      {ErrorCode::kProtocolError, open + headers(1, {{":path", "/"}})},
      {ErrorCode::kProtocolError, open + headers(1, {{"A", "b"}})},
      {ErrorCode::kProtocolError, open + window(1, 0)},
      {ErrorCode::kFlowControlError, open + window(1, 0x7fffffff)},
      {ErrorCode::kProtocolError, headers(1, get("/", {{"Upper", "x"}}))},
      {ErrorCode::kProtocolError, headers(1, get("/", {{"content-length", "3"}}))},
      {ErrorCode::kProtocolError,
       headers(1, get("/", {{"content-length", "3"}}), false) + data(1, "ab", true)},
      {ErrorCode::kProtocolError,
       headers(1, get("/", {{"content-length", "3"}}), false) + data(1, "abcd", true)},
      {ErrorCode::kProtocolError, headers(1, get("/", {{"content-length", "3"}}), false) +
                                      data(1, "ab") + headers(1, {{"a", "b"}})},
  };
  for (const Row& row : rows) {
    Peer peer;
    peer.greet().give(row.bytes);
    peer.take();
    CAPTURE(row.bytes, peer.why());
    CHECK_FALSE(peer.end);
    REQUIRE(peer.reset_code(1));
    CHECK(to_string(*peer.reset_code(1)) == to_string(row.code));
    CHECK(peer.session.stream_count() == 0);
    if (peer.seen.contains(1)) CHECK(peer.seen[1].gone == row.code);
    // Others go on, and what is late is nothing.
    peer.give(data(1, "late") + rst(1) + headers(3, get("/after")));
    CHECK_FALSE(peer.end);
    CHECK(peer.seen.contains(3));
  }
}

TEST_CASE("a malformed request is told to nobody, and counted by its reason",
          "[h2][rfc9113][8.1.1]") {
  Peer peer;
  peer.greet().give(headers(1, get("/", {{"connection", "close"}})));
  CHECK_FALSE(peer.seen.contains(1));
  CHECK(peer.counters.of(Malformed::kConnectionField) == 1);
  CHECK(peer.counters.streams == 0);
}

TEST_CASE("what is not known is passed over", "[h2][rfc9113][5.5]") {
  Peer peer;
  peer.greet().give(frame(static_cast<FrameType>(0xbb), 0xff, 7, std::string(300, 'x')) +
                    setting(static_cast<Setting>(0x1234), 5) +
                    frame(FrameType::kGoAway, 0, 0, u32(0) + u32(0) + std::string(400, 'd')) +
                    frame(FrameType::kPriority, 0, 9, u32(3) + "\x10"));
  peer.give(headers(1, get()));
  CHECK_FALSE(peer.end);
  CHECK(peer.seen.contains(1));
  CHECK(peer.session.is_peer_draining());
}

TEST_CASE("reserved bits and unknown flags are passed over", "[h2][rfc9113][4.1]") {
  Peer peer;
  std::string bytes = headers(1, get());
  bytes[4] = static_cast<char>(bytes[4] | 0x52);
  bytes[5] = static_cast<char>(0x80);
  peer.greet().give(bytes);
  CHECK(peer.seen.contains(1));
}

TEST_CASE("settings are taken in their order", "[h2][rfc9113][6.5.3]") {
  Peer peer;
  TextSource source(std::string(100, 'x'));
  const std::string two = setting(Setting::kInitialWindowSize, 100).substr(9) +
                          setting(Setting::kInitialWindowSize, 1).substr(9);
  peer.greet().give(frame(FrameType::kSettings, 0, 0, two) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", ServerSession::Framing::kOpen, &source);
  peer.take();
  CHECK(peer.content(1) == "x");
}

TEST_CASE("a ping is answered with what it brings", "[h2][rfc9113][6.7]") {
  Peer peer;
  peer.greet().give(frame(FrameType::kPing, 0, 0, "12345678") +
                    frame(FrameType::kPing, kFlagAck, 0, "87654321"));
  const auto sent = peer.take();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].payload == "12345678");
  CHECK(sent[0].header.has(kFlagAck));
}

}  // namespace
}  // namespace encore::h2
