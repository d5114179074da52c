#include "proxy/h2/server_session.h"

#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Framing = ServerSession::Framing;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nServer: encore\r\nX-A: B\r\n\r\n";

TEST_CASE("a session says its settings first", "[h2][rfc9113][3.4]") {
  Peer peer;
  const auto sent = peer.take();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].header.type == FrameType::kSettings);
  CHECK(sent[0].payload == setting(Setting::kMaxConcurrentStreams, 100).substr(9) +
                               setting(Setting::kInitialWindowSize, 262144).substr(9) +
                               setting(Setting::kMaxHeaderListSize, 32768).substr(9) +
                               setting(Setting::kNoRfc7540Priorities, 1).substr(9) +
                               setting(Setting::kEnableConnectProtocol, 1).substr(9));
  CHECK(sent[1].header.type == FrameType::kWindowUpdate);
  CHECK(read_u32(sent[1].payload.data()) == 1048576 - 65535);
  peer.give(hello());
  const auto answer = peer.take();
  REQUIRE(answer.size() == 1);
  CHECK(answer[0].header.has(kFlagAck));
}

TEST_CASE("a request is told, and answered by its head alone", "[h2]") {
  Peer peer;
  peer.greet().give(headers(1, get("/x", {{"accept", "*/*"}})));
  REQUIRE(peer.seen.contains(1));
  CHECK(peer.seen[1].text == "GET /x HTTP/1.1\r\nhost: a.example\r\naccept: */*\r\n\r\n");
  CHECK(peer.seen[1].authority == "a.example");
  CHECK_FALSE(peer.seen[1].has_content);
  CHECK(peer.session.stream_count() == 1);
  CHECK(peer.session.status(1) == SendStatus::kIdle);
  peer.session.respond(1, kOk, Framing::kNone);
  CHECK(peer.session.status(1) == SendStatus::kDone);
  peer.take();
  const auto heads = peer.sent(FrameType::kHeaders, 1);
  REQUIRE(heads.size() == 1);
  CHECK(heads[0].fields == FieldList{{":status", "200"}, {"server", "encore"}, {"x-a", "B"}});
  CHECK(peer.has_end(1));
  CHECK(peer.seen[1].writable == 1);
  CHECK(peer.session.stream_count() == 0);
  CHECK(peer.session.status(1) == SendStatus::kGone);
}

TEST_CASE("fields of a connection end here", "[h2][rfc9113][8.2.2]") {
  Peer peer;
  peer.greet().give(headers(1, get()));
  peer.session.respond(
      1,
      "HTTP/1.1 301 Moved\r\nConnection: close\r\nKeep-Alive: x\r\nUpgrade: "
      "h2c\r\nTransfer-Encoding: chunked\r\nProxy-Connection: x\r\nLocation: /y\r\n"
      "Set-Cookie: a=b\r\nAge:  5 \r\n",
      Framing::kNone);
  peer.take();
  CHECK(peer.sent(FrameType::kHeaders, 1).at(0).fields ==
        FieldList{{":status", "301"}, {"location", "/y"}, {"set-cookie", "a=b"}, {"age", "5"}});
}

TEST_CASE("content of known length ends with its last frame", "[h2][rfc9113][8.1]") {
  Peer peer;
  TextSource source(std::string(40000, 'x'));
  peer.greet().give(headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n", Framing::kLength,
                       &source);
  CHECK(peer.session.status(1) == SendStatus::kBlocked);
  peer.take();
  CHECK(peer.content(1) == std::string(40000, 'x'));
  const auto frames = peer.sent(FrameType::kData, 1);
  REQUIRE(frames.size() >= 3);
  CHECK(frames[0].payload.size() <= kFrameBytesMax);
  CHECK(frames.back().header.has(kFlagEndStream));
  CHECK_FALSE(frames.back().payload.empty());
  CHECK(peer.session.stream_count() == 0);
}

TEST_CASE("content of open length ends with trailers, or an empty frame", "[h2][rfc9113][8.1]") {
  Peer peer;
  TextSource first("abc");
  TextSource second("def");
  const std::string trailers = "Grpc-Status: 0\r\nConnection: x\r\n";
  peer.greet().give(headers(1, get()) + headers(3, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &first, &trailers);
  peer.session.respond(3, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &second);
  peer.take();
  CHECK(peer.content(1) == "abc");
  CHECK(peer.content(3) == "def");
  const auto heads = peer.sent(FrameType::kHeaders, 1);
  REQUIRE(heads.size() == 2);
  CHECK(heads[1].fields == FieldList{{"grpc-status", "0"}});
  CHECK(heads[1].header.has(kFlagEndStream));
  CHECK(peer.has_end(3));
}

TEST_CASE("what has no content gets none", "[h2][rfc9110][9.3.2]") {
  Peer peer;
  TextSource source("abc");
  FieldList head = get();
  head[0].second = "HEAD";
  peer.greet().give(headers(1, head) + headers(3, get()) + headers(5, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", Framing::kLength, &source);
  peer.session.respond(3, "HTTP/1.1 304 Not Modified\r\n", Framing::kOpen, &source);
  peer.session.respond(5, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", Framing::kLength, &source);
  peer.take();
  for (const StreamId id : {1U, 3U, 5U}) {
    CHECK(peer.content(id).empty());
    CHECK(peer.has_end(id));
  }
  CHECK(peer.sent(FrameType::kHeaders, 1).at(0).fields.back() ==
        std::pair<std::string, std::string>{"content-length", "3"});
}

TEST_CASE("interim responses go ahead, but no 101", "[h2][rfc9113][8.6]") {
  Peer peer;
  peer.greet().give(headers(1, get()));
  peer.session.send_interim(1, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  peer.session.send_interim(1, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
  peer.session.respond(1, kOk, Framing::kNone);
  peer.take();
  const auto heads = peer.sent(FrameType::kHeaders, 1);
  REQUIRE(heads.size() == 2);
  CHECK(heads[0].fields == FieldList{{":status", "103"}, {"link", "</a>"}});
  CHECK_FALSE(heads[0].header.has(kFlagEndStream));
}

TEST_CASE("a large head is continued", "[h2][rfc9113][6.10]") {
  Peer peer;
  const std::string value(20000, 'v');
  peer.greet().give(headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\nA: " + value + "\r\nB: " + value + "\r\n",
                       Framing::kNone);
  peer.take();
  REQUIRE(peer.sent(FrameType::kContinuation, 1).size() == 2);
  CHECK(peer.sent(FrameType::kContinuation, 1).back().fields.back() ==
        std::pair<std::string, std::string>{"b", value});
}

TEST_CASE("content of a request comes with its trailers", "[h2][rfc9113][8.1]") {
  Peer peer;
  peer.greet().give(headers(1, get("/", {{"content-length", "6"}}), false));
  CHECK(peer.seen[1].has_content);
  peer.give(data(1, "abc") + data(1, "def"));
  peer.give(headers(1, {{"x-sum", "1"}}));
  CHECK(peer.seen[1].content == "abcdef");
  CHECK(peer.seen[1].has_ended);
  CHECK(peer.seen[1].trailers == "x-sum: 1\r\n");
}

TEST_CASE("padding is no content, and costs window", "[h2][rfc9113][6.1]") {
  Peer peer(Options{.stream_window_bytes = 65535, .connection_window_bytes = 65535});
  peer.greet().give(headers(1, get(), false));
  const std::string padded = "\xff" + std::string(300, 'a') + std::string(255, '\0');
  for (int i = 0; i < 100; ++i) {
    peer.give(frame(FrameType::kData, kFlagPadded, 1, padded));
    peer.take();
  }
  CHECK(peer.seen[1].content == std::string(30000, 'a'));
  std::uint32_t given = 0;
  for (const auto& each : peer.sent(FrameType::kWindowUpdate, 0)) {
    given += read_u32(each.payload.data());
  }
  CHECK(given >= 100 * padded.size() - 65535 / 2);
  CHECK_FALSE(peer.end);
}

TEST_CASE("windows open as content is consumed", "[h2][rfc9113][5.2]") {
  Peer peer(Options{.stream_window_bytes = 65535, .connection_window_bytes = 65535});
  peer.consumes = false;
  peer.greet().give(headers(1, get(), false));
  const std::string part(16000, 'x');
  for (int i = 0; i < 4; ++i) peer.give(data(1, part));
  peer.take();
  CHECK(peer.sent(FrameType::kWindowUpdate).empty());
  peer.session.consume(1, 40000);
  peer.take();
  REQUIRE(peer.sent(FrameType::kWindowUpdate, 0).size() == 1);
  REQUIRE(peer.sent(FrameType::kWindowUpdate, 1).size() == 1);
  CHECK(read_u32(peer.sent(FrameType::kWindowUpdate, 1)[0].payload.data()) == 40000);
  peer.give(data(1, part) + data(1, part));
  CHECK_FALSE(peer.end);
  CHECK_FALSE(peer.seen[1].gone);
}

TEST_CASE("content beyond a window is an error", "[h2][rfc9113][6.9.1]") {
  Peer peer(Options{.stream_window_bytes = 65535, .connection_window_bytes = 200000});
  peer.consumes = false;
  peer.greet().give(headers(1, get(), false) + headers(3, get(), false));
  const std::string part(16000, 'x');
  for (int i = 0; i < 5; ++i) peer.give(data(1, part));
  CHECK(peer.take().back().code() == ErrorCode::kFlowControlError);
  CHECK(peer.seen[1].gone == ErrorCode::kFlowControlError);
  CHECK_FALSE(peer.end);
  // Bytes that the stream had not consumed are the connection's again.
  for (int round = 0; round < 20; ++round) {
    const StreamId id = static_cast<StreamId>(5 + 2 * round);
    peer.give(headers(id, get(), false) + data(id, part) + data(id, part) + rst(id));
    peer.take();
  }
  CHECK_FALSE(peer.end);
}

TEST_CASE("content beyond the connection's window ends the connection", "[h2][rfc9113][6.9.1]") {
  Peer peer(Options{.stream_window_bytes = 65535, .connection_window_bytes = 65535});
  peer.consumes = false;
  peer.greet();
  const std::string part(16000, 'x');
  for (StreamId id = 1; id < 11; id += 2) peer.give(headers(id, get(), false) + data(id, part));
  CHECK(peer.end_code() == ErrorCode::kFlowControlError);
  CHECK(peer.seen[1].gone == ErrorCode::kFlowControlError);
  peer.take();
  CHECK(peer.sent().back().header.type == FrameType::kGoAway);
  CHECK(peer.session.is_finished());
}

TEST_CASE("content waits for the client's window", "[h2][rfc9113][6.9]") {
  Peer peer;
  TextSource source(std::string(100, 'x'));
  peer.greet().give(setting(Setting::kInitialWindowSize, 10) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n", Framing::kLength, &source);
  peer.take();
  CHECK(peer.content(1).size() == 10);
  peer.give(window(1, 5));
  peer.take();
  CHECK(peer.content(1).size() == 15);
  // The used part of the change counts: the window is 2 - 15, and below zero.
  peer.give(setting(Setting::kInitialWindowSize, 2) + window(1, 7));
  peer.take();
  CHECK(peer.content(1).size() == 15);
  peer.give(window(1, 1));
  peer.take();
  CHECK(peer.content(1).size() == 15);
  peer.give(setting(Setting::kInitialWindowSize, 1000));
  peer.take();
  CHECK(peer.content(1).size() == 100);
}

TEST_CASE("content waits for the connection's window", "[h2][rfc9113][6.9]") {
  Peer peer;
  TextSource source(std::string(100000, 'x'));
  peer.greet().give(setting(Setting::kInitialWindowSize, 1 << 20) + headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.take();
  CHECK(peer.content(1).size() == 65535);
  CHECK(peer.session.send_window(1) == 0);
  peer.give(window(0, 34465));
  peer.take();
  CHECK(peer.content(1).size() == 100000);
  CHECK(peer.has_end(1));
}

TEST_CASE("content that has come to its end needs no window for that", "[h2][rfc9113][6.9]") {
  Peer peer;
  TextSource source(std::string(65535, 'x'));
  peer.greet().give(headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.take();
  CHECK(peer.has_end(1));
}

TEST_CASE("content that is late is asked for again", "[h2]") {
  Peer peer;
  TextSource source("abcdef");
  source.available = 3;
  peer.greet().give(headers(1, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.take();
  CHECK(peer.content(1) == "abc");
  CHECK(peer.session.status(1) == SendStatus::kWaiting);
  source.available = 6;
  peer.take();
  CHECK(peer.content(1) == "abc");
  peer.session.resume(1);
  peer.take();
  CHECK(peer.content(1) == "abcdef");
  CHECK(peer.has_end(1));
}

TEST_CASE("content that breaks off resets its stream", "[h2]") {
  Peer peer;
  TextSource source("abcdef");
  source.available = 3;
  peer.greet().give(headers(1, get()) + headers(3, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n", Framing::kLength, &source);
  peer.take();
  source.is_broken = true;
  peer.session.resume(1);
  peer.take();
  CHECK(peer.session.status(1) == SendStatus::kBroken);
  peer.session.reset(1, ErrorCode::kInternalError);
  peer.take();
  CHECK(peer.reset_code(1) == ErrorCode::kInternalError);
  CHECK_FALSE(peer.seen[1].gone);
  // One that is shorter than it says is broken, too.
  TextSource less("abc");
  peer.session.respond(3, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n", Framing::kLength, &less);
  peer.take();
  CHECK(peer.session.status(3) == SendStatus::kBroken);
}

TEST_CASE("a frame that has left in part is finished when its stream ends", "[h2]") {
  for (const std::size_t cut : {3U, 9U, 12U, 500U}) {
    Peer peer;
    auto source = std::make_unique<TextSource>(std::string(1000, 'x'));
    peer.greet().give(headers(1, get()));
    peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n", Framing::kLength,
                         source.get());
    std::array<iovec, 16> room;
    peer.session.gather(room, 65536);
    // The head first.
    const std::size_t head = room[0].iov_len;
    std::string bytes(static_cast<const char*>(room[0].iov_base), head);
    bytes.append(static_cast<const char*>(room[1].iov_base), std::min<std::size_t>(cut, 9));
    if (cut > 9) bytes.append(cut - 9, 'x');
    peer.session.sent(head + cut, peer.now);
    peer.session.reset(1, ErrorCode::kCancel);
    source.reset();
    const Batch rest = peer.session.gather(room, 65536);
    for (std::size_t i = 0; i < rest.parts; ++i) {
      bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    peer.session.sent(rest.bytes, peer.now);
    CAPTURE(cut);
    const FrameHeader frame = read_frame_header(bytes.data() + head);
    CHECK(frame.length == 1000);
    CHECK(bytes.substr(head + 9, 1000) == std::string(1000, 'x'));
    CHECK(bytes.substr(head + 1009) == rst(1, ErrorCode::kCancel));
  }
}

// Sends a frame of 1,000 bytes but for the last 400, whose content is lost then.
struct LostContent {
  explicit LostContent(Framing framing) {
    peer.greet().give(headers(1, get()));
    peer.session.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n", framing, &source);
    const Batch batch = peer.session.gather(room, 65536);
    peer.session.sent(batch.bytes - 400, peer.now);
    source.is_broken = true;
  }
  std::string rest() {
    const Batch batch = peer.session.gather(room, 65536);
    std::string bytes;
    for (std::size_t i = 0; i < batch.parts; ++i) {
      bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
    }
    peer.session.sent(batch.bytes, peer.now);
    return bytes;
  }
  Peer peer;
  TextSource source = TextSource(std::string(1000, 'x'));
  std::array<iovec, 16> room;
};

TEST_CASE("a frame that has begun has its own content, though that breaks off", "[h2]") {
  LostContent lost(Framing::kOpen);
  CHECK(lost.rest() == std::string(400, 'x'));
  (void)lost.rest();
  CHECK(lost.peer.session.status(1) == SendStatus::kBroken);
  LostContent reset(Framing::kOpen);
  reset.peer.session.reset(1, ErrorCode::kInternalError);
  CHECK(reset.rest() == std::string(400, 'x') + rst(1, ErrorCode::kInternalError));
  CHECK_FALSE(reset.peer.end);
}

TEST_CASE("a stream whose last frame has begun is whole, though its content is lost then", "[h2]") {
  for (const bool is_reset : {false, true}) {
    LostContent lost(Framing::kLength);
    if (is_reset) lost.peer.session.reset(1, ErrorCode::kInternalError);
    CHECK(lost.peer.session.has_output());
    CHECK(lost.rest().starts_with(std::string(400, 'x')));
    CHECK_FALSE(lost.peer.end);
  }
}

TEST_CASE("streams that take no turns go by their ids, whichever is answered first",
          "[h2][rfc9218][10]") {
  Peer peer;
  peer.greet();
  std::map<StreamId, TextSource> sources;
  for (const StreamId id : {1U, 3U, 5U}) peer.give(headers(id, get("/", {{"priority", "u=3"}})));
  for (const StreamId id : {5U, 1U, 3U}) {
    auto& source = sources.emplace(id, TextSource("abc")).first->second;
    peer.session.respond(id, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", Framing::kLength, &source);
  }
  peer.take();
  std::vector<StreamId> order;
  for (const auto& each : peer.sent(FrameType::kData)) order.push_back(each.header.stream);
  CHECK(order == std::vector<StreamId>{1, 3, 5});
}

TEST_CASE("a stream that is answered early is released with its rest refused",
          "[h2][rfc9113][8.1]") {
  Peer peer;
  peer.greet().give(headers(1, get(), false) + data(1, "abc"));
  peer.session.respond(1, kOk, Framing::kNone);
  peer.take();
  CHECK(peer.reset_code(1) == ErrorCode::kNoError);
  // Nothing was on its way.
  peer.give(data(1, "def") + data(1, "", true) + window(1, 5) + headers(1, {{"a", "b"}}));
  CHECK_FALSE(peer.end);
  CHECK(peer.seen[1].content == "abc");
  CHECK(peer.counters.streams_reset == 0);
}

TEST_CASE("content that is refused by nobody is still taken behind the response", "[h2]") {
  Peer peer;
  peer.releases = false;
  peer.greet().give(headers(1, get(), false) + data(1, "abc"));
  peer.session.respond(1, kOk, Framing::kNone);
  peer.take();
  peer.give(data(1, "def", true));
  CHECK(peer.seen[1].content == "abcdef");
  CHECK(peer.seen[1].has_ended);
  CHECK(peer.session.stream_count() == 0);
  CHECK(peer.session.status(1) == SendStatus::kDone);
  peer.session.release(1);
  peer.take();
  CHECK_FALSE(peer.reset_code(1));
  CHECK(peer.session.status(1) == SendStatus::kGone);
}

TEST_CASE("a client that resets a stream has its handler told", "[h2][rfc9113][5.4.2]") {
  Peer peer;
  TextSource source("abc");
  source.available = 1;
  peer.greet().give(headers(1, get()) + headers(3, get()));
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.take();
  peer.give(rst(1, ErrorCode::kCancel) + rst(3, ErrorCode::kRefusedStream));
  CHECK(peer.seen[1].gone == ErrorCode::kCancel);
  CHECK(peer.seen[3].gone == ErrorCode::kRefusedStream);
  CHECK(peer.session.stream_count() == 0);
  peer.session.resume(1);
  peer.session.respond(3, kOk, Framing::kNone);
  CHECK(peer.take().empty());
}

TEST_CASE("CONNECT and other protocols are told as tunnels", "[h2][rfc9113][8.5][rfc8441]") {
  Peer peer;
  FieldList extended = get("/chat", {{"sec-websocket-version", "13"}});
  extended[0].second = "CONNECT";
  extended.insert(extended.begin(), {":protocol", "websocket"});
  peer.greet().give(headers(1, {{":method", "CONNECT"}, {":authority", "b.example:443"}}, false) +
                    headers(3, extended, false));
  REQUIRE(peer.seen[1].is_connect);
  CHECK(peer.seen[1].authority == "b.example:443");
  CHECK(peer.seen[1].protocol.empty());
  CHECK(peer.seen[1].text == "CONNECT b.example:443 HTTP/1.1\r\nhost: b.example:443\r\n\r\n");
  REQUIRE(peer.seen[3].is_connect);
  CHECK(peer.seen[3].protocol == "websocket");
  TextSource source("from there");
  source.available = 4;
  peer.session.respond(1, "HTTP/1.1 200 OK\r\n", Framing::kOpen, &source);
  peer.give(data(1, "to there"));
  peer.take();
  CHECK(peer.seen[1].content == "to there");
  CHECK(peer.content(1) == "from");
  peer.give(data(1, "", true));
  CHECK(peer.seen[1].has_ended);
  source.available = 10;
  peer.session.resume(1);
  peer.take();
  CHECK(peer.content(1) == "from there");
  CHECK(peer.has_end(1));
}

TEST_CASE("urgent streams go first, then those that take no turns, then turns",
          "[h2][rfc9218][10]") {
  Peer peer;
  peer.greet().give(window(0, 1 << 20) + setting(Setting::kInitialWindowSize, 1 << 20));
  const std::vector<std::pair<StreamId, std::string>> wanted = {
      {1, "u=5"}, {3, "u=3, i"}, {5, "u=3, i"}, {7, "u=3"}, {9, "u=1"}, {11, "u=3"}};
  std::map<StreamId, TextSource> sources;
  for (const auto& [id, priority] : wanted) {
    peer.give(headers(id, get("/", {{"priority", priority}})));
    auto& source = sources.emplace(id, TextSource(std::string(40000, 'x'))).first->second;
    source.part_bytes = 40000;
    peer.session.respond(id, "HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n", Framing::kLength,
                         &source);
  }
  peer.take();
  std::vector<StreamId> order;
  for (const auto& each : peer.sent(FrameType::kData)) {
    if (order.empty() || order.back() != each.header.stream) order.push_back(each.header.stream);
  }
  CHECK(order == std::vector<StreamId>{9, 7, 11, 3, 5, 3, 5, 1});
}

TEST_CASE("a client changes its mind by PRIORITY_UPDATE, for streams to come, too",
          "[h2][rfc9218][7.1]") {
  Peer peer;
  const auto update = [](StreamId id, std::string_view value) {
    return frame(FrameType::kPriorityUpdate, 0, 0, u32(id) + std::string(value));
  };
  peer.greet().give(setting(Setting::kInitialWindowSize, 0));
  peer.give(headers(1, get()) + update(3, "u=0") + headers(3, get()) + headers(5, get()));
  std::map<StreamId, TextSource> sources;
  for (const StreamId id : {1U, 3U, 5U}) {
    auto& source = sources.emplace(id, TextSource("abc")).first->second;
    peer.session.respond(id, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", Framing::kLength, &source);
  }
  peer.take();
  peer.give(update(1, "u=7") + setting(Setting::kInitialWindowSize, 100));
  peer.take();
  std::vector<StreamId> order;
  for (const auto& each : peer.sent(FrameType::kData)) order.push_back(each.header.stream);
  CHECK(order == std::vector<StreamId>{3, 5, 1});
}

TEST_CASE("a drain loses no request", "[h2][rfc9113][6.8]") {
  Peer peer;
  peer.greet().give(headers(1, get()));
  peer.session.drain();
  const auto notice = peer.take();
  REQUIRE(notice.size() == 2);
  CHECK(read_u31(notice[0].payload.data()) == kStreamIdMax);
  CHECK(notice[0].code() == ErrorCode::kNoError);
  // In flight when the client is notified.
  peer.give(headers(3, get()));
  CHECK(peer.seen.contains(3));
  peer.give(frame(FrameType::kPing, kFlagAck, 0, notice[1].payload));
  const auto last = peer.take();
  REQUIRE(last.size() == 1);
  CHECK(read_u31(last[0].payload.data()) == 3);
  peer.give(headers(5, get(), false) + data(5, "abc"));
  CHECK_FALSE(peer.seen.contains(5));
  CHECK_FALSE(peer.end);
  CHECK_FALSE(peer.session.is_finished());
  peer.session.respond(1, kOk, Framing::kNone);
  peer.session.respond(3, kOk, Framing::kNone);
  peer.take();
  CHECK(peer.session.is_finished());
  CHECK_FALSE(peer.reset_code(5));
}

TEST_CASE("a connection that is dropped takes its streams along", "[h2]") {
  Peer peer;
  peer.greet().give(headers(1, get()) + headers(3, get(), false));
  peer.session.drop();
  CHECK(peer.seen[1].gone);
  CHECK(peer.seen[3].gone);
  CHECK(peer.session.stream_count() == 0);
  CHECK_FALSE(peer.end);
  peer.give(headers(5, get()));
  CHECK_FALSE(peer.seen.contains(5));
}

TEST_CASE("the first block says that no table is used, and the one behind each change",
          "[h2][rfc7541][4.2]") {
  Peer peer;
  peer.answer = "HTTP/1.1 200 OK\r\n";
  peer.greet().give(headers(1, get()) + headers(3, get()));
  peer.take();
  CHECK(peer.sent(FrameType::kHeaders, 1).at(0).payload == "\x20\x88");
  CHECK(peer.sent(FrameType::kHeaders, 3).at(0).payload == "\x88");
  peer.give(setting(Setting::kHeaderTableSize, 0) + headers(5, get()));
  peer.take();
  CHECK(peer.sent(FrameType::kHeaders, 5).at(0).payload == "\x20\x88");
}

TEST_CASE("an idle session is small, also where its client fills the table", "[h2]") {
  Peer peer;
  peer.answer = std::string(kOk);
  peer.greet();
  CHECK(peer.session.memory_bytes() < 3000);
  for (StreamId id = 1; id < 20; id += 2) peer.give(headers(id, get()));
  peer.take();
  CHECK(peer.session.memory_bytes() < 4000);
  // Entries as small as may be.
  std::string block = block_of(get());
  for (int i = 0; i < 120; ++i) block += "\x40\x01x\x01v";
  peer.give(frame(FrameType::kHeaders, kFlagEndHeaders | kFlagEndStream, 21, block));
  peer.take();
  CHECK(peer.seen.contains(21));
  CHECK(peer.session.memory_bytes() > 20000);
  CHECK(peer.session.memory_bytes() < 28000);
}

}  // namespace
}  // namespace encore::h2
