#include "proxy/h2/client_session.h"

#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct Answer {
  std::string interim = {};
  std::string text = {};
  bool has_content = false;
  std::string content = {};
  bool has_ended = false;
  std::string trailers = {};
  std::optional<ErrorCode> gone = {};
  std::string fault = {};  // the fault found in it
};

class Origin final : public ClientHandler, public StreamHandler {
 public:
  explicit Origin(const Options& options = {}) : session(options, counters, *this) {}
  void on_interim(StreamId stream, const Response& response) override {
    answers[stream].interim += response.text;
  }
  void on_response(StreamId stream, const Response& response) override {
    answers[stream].text = response.text;
    answers[stream].has_content = response.has_content;
    if (!response.has_content && session.status(stream) == SendStatus::kDone) {
      session.release(stream);
    }
  }
  void on_connection_end(const ConnectionEnd& why) override { end = why; }
  void on_content(StreamId stream, std::string_view bytes) override {
    answers[stream].content += bytes;
    if (consumes) session.consume(stream, bytes.size());
  }
  void on_content_end(StreamId stream, std::string_view trailers) override {
    answers[stream].has_ended = true;
    answers[stream].trailers = trailers;
    if (session.status(stream) == SendStatus::kDone) session.release(stream);
  }
  void on_writable(StreamId) override {}
  void on_gone(StreamId stream, ErrorCode code) override {
    answers[stream].gone = code;
    answers[stream].fault = session.fault();
  }

  StreamId get(
      std::string_view head = "GET /x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n") {
    return session.request({.head = head, .scheme = "https"}, *this);
  }
  std::string take() {
    std::string bytes;
    std::array<iovec, 20> room;
    while (session.has_output()) {
      const Batch batch = session.gather(room, 65536);
      for (std::size_t i = 0; i < batch.parts; ++i) {
        bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      session.sent(batch.bytes, now);
    }
    return bytes;
  }
  void give(const std::string& bytes) { session.receive(bytes, now); }

  std::map<StreamId, Answer> answers;
  std::optional<ConnectionEnd> end;
  MonotonicTime now = MonotonicTime(std::chrono::hours(1));
  bool consumes = true;
  Counters counters;
  ClientSession session;
};

// Carries bytes between both until nothing moves.
void carry(Origin& origin, Peer& peer) {
  std::size_t seen = peer.sent().size();
  while (true) {
    const std::string up = origin.take();
    peer.give(up);
    peer.take();
    std::string down;
    for (; seen < peer.sent().size(); ++seen) {
      const SentFrame& each = peer.sent()[seen];
      append_frame_header(each.header, down);
      down += each.payload;
    }
    if (up.empty() && down.empty()) return;
    origin.give(down);
  }
}

const std::string kSettings = frame(FrameType::kSettings, 0, 0, "");

TEST_CASE("a request to an origin says what HTTP/1.1 says", "[h2][client]") {
  Origin origin;
  Peer peer;
  TextSource source("hello");
  const StreamId plain = origin.get();
  const StreamId post = origin.session.request(
      {.head = "POST /y?z HTTP/1.1\r\nTE: trailers\r\nConnection: TE\r\nHOST: b.example:8080\r\n"
               "Content-Length: 5\r\nX-A: b\r\n",
       .scheme = "http",
       .content = &source},
      origin);
  carry(origin, peer);
  CHECK(peer.seen[plain].text == "GET /x HTTP/1.1\r\nhost: a.example\r\naccept: */*\r\n\r\n");
  CHECK(peer.seen[post].text ==
        "POST /y?z HTTP/1.1\r\nhost: b.example:8080\r\nte: trailers\r\ncontent-length: "
        "5\r\nx-a: b\r\n\r\n");
  CHECK(peer.seen[post].content == "hello");
  CHECK(peer.seen[post].has_ended);
  CHECK(origin.session.request({.head = "nothing", .scheme = "http"}, origin) == 0);
}

TEST_CASE("a response comes as HTTP/1.1 would write it", "[h2][client]") {
  Origin origin;
  Peer peer;
  TextSource source(std::string(30000, 'x'));
  const std::string trailers = "X-Sum: 1\r\n";
  const StreamId first = origin.get();
  const StreamId second = origin.get();
  carry(origin, peer);
  peer.session.send_interim(first, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
  peer.session.respond(first, "HTTP/1.1 200 OK\r\nAge: 1\r\n", ServerSession::Framing::kOpen,
                       &source, &trailers);
  peer.session.respond(second, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n",
                       ServerSession::Framing::kNone);
  carry(origin, peer);
  const Answer& answer = origin.answers[first];
  CHECK(answer.interim == "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
  CHECK(answer.text == "HTTP/1.1 200 OK\r\nage: 1\r\ntransfer-encoding: chunked\r\n\r\n");
  CHECK(answer.content == std::string(30000, 'x'));
  CHECK(answer.has_ended);
  CHECK(answer.trailers == "x-sum: 1\r\n");
  CHECK(origin.answers[second].text == "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
  CHECK_FALSE(origin.answers[second].has_content);
  CHECK(origin.session.stream_count() == 0);
  CHECK(peer.session.stream_count() == 0);
}

TEST_CASE("another protocol is asked for where the origin takes it", "[h2][client][rfc8441]") {
  Origin origin;
  Peer peer;
  CHECK_FALSE(origin.session.takes_protocols());
  carry(origin, peer);
  REQUIRE(origin.session.takes_protocols());
  TextSource source("to there");
  const StreamId id = origin.session.request(
      {.head = "GET /chat HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n",
       .scheme = "https",
       .protocol = "websocket",
       .content = &source},
      origin);
  carry(origin, peer);
  CHECK(peer.seen[id].protocol == "websocket");
  CHECK(peer.seen[id].content == "to there");
}

TEST_CASE("what a server has not worked on may be sent again", "[h2][client][rfc9113][8.7]") {
  Origin origin;
  const StreamId first = origin.get();
  const StreamId second = origin.get();
  const StreamId third = origin.get();
  origin.give(kSettings + rst(second, ErrorCode::kRefusedStream) +
              frame(FrameType::kGoAway, 0, 0, u32(first) + u32(0)));
  CHECK_FALSE(origin.answers[first].gone);
  CHECK(origin.answers[second].gone == ErrorCode::kRefusedStream);
  CHECK(origin.answers[third].gone == ErrorCode::kRefusedStream);
  CHECK_FALSE(origin.session.can_request());
  origin.give(headers(first, {{":status", "204"}}));
  CHECK(origin.answers[first].text == "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST_CASE("a server says how many streams it takes", "[h2][client][rfc9113][5.1.2]") {
  Origin origin;
  origin.give(setting(Setting::kMaxConcurrentStreams, 2));
  origin.get();
  CHECK(origin.session.can_request());
  const StreamId second = origin.get();
  CHECK_FALSE(origin.session.can_request());
  origin.session.reset(second, ErrorCode::kCancel);
  CHECK(origin.session.can_request());
}

TEST_CASE("a malformed response ends its stream", "[h2][client][rfc9113][8.1.1]") {
  const std::vector<std::pair<Malformed, std::string>> rows = {
      {Malformed::kMissingPseudoField, headers(1, {{"a", "b"}})},
      {Malformed::kMissingPseudoField, headers(1, {})},
      {Malformed::kUnknownPseudoField, headers(1, {{":path", "/"}})},
      {Malformed::kRepeatedPseudoField, headers(1, {{":status", "200"}, {":status", "200"}})},
      {Malformed::kLatePseudoField, headers(1, {{":status", "200"}, {"a", "b"}, {":status", "1"}})},
      {Malformed::kBadStatus, headers(1, {{":status", "20"}})},
      {Malformed::kBadStatus, headers(1, {{":status", "200 OK\r\nx: y"}})},
      {Malformed::kBadStatus, headers(1, {{":status", "101"}}, false)},
      {Malformed::kBadStatus, headers(1, {{":status", "100"}})},
      {Malformed::kBadName, headers(1, {{":status", "200"}, {"A", "b"}})},
      {Malformed::kBadValue, headers(1, {{":status", "200"}, {"a", "b\r\nc: d"}})},
      {Malformed::kConnectionField, headers(1, {{":status", "200"}, {"connection", "close"}})},
      {Malformed::kBadLength, headers(1, {{":status", "200"}, {"content-length", "x"}})},
      {Malformed::kLengthMismatch, headers(1, {{":status", "200"}, {"content-length", "1"}})},
      {Malformed::kLengthMismatch,
       headers(1, {{":status", "200"}, {"content-length", "1"}}, false) + data(1, "ab")},
      {Malformed::kLengthMismatch, headers(1, {{":status", "204"}}, false) + data(1, "ab")},
      {Malformed::kNoTrailers,
       headers(1, {{":status", "200"}}, false) + headers(1, {{"a", "b"}}, false)},
  };
  for (const auto& [reason, bytes] : rows) {
    Origin origin;
    REQUIRE(origin.get() == 1);
    origin.give(kSettings + bytes);
    CAPTURE(to_string(reason));
    CHECK(origin.counters.of(reason) == 1);
    CHECK(origin.answers[1].gone == ErrorCode::kProtocolError);
    CHECK(origin.answers[1].fault == to_string(reason));
    CHECK_FALSE(origin.end);
    CHECK(origin.session.can_request());
  }
}

TEST_CASE("a server that breaks the connection's rules is left", "[h2][client][rfc9113][5.4.1]") {
  for (const std::string& bytes :
       {headers(2, {{":status", "200"}}), headers(3, {{":status", "200"}}), data(3, "a"),
        frame(FrameType::kPushPromise, kFlagEndHeaders, 1, u32(2)),
        setting(Setting::kEnablePush, 1),
        frame(FrameType::kPriorityUpdate, 0, 0, u32(1) + "u=1")}) {
    Origin origin;
    origin.get();
    origin.give(kSettings + bytes);
    CHECK(origin.end);
    CHECK(origin.answers[1].gone == ErrorCode::kProtocolError);
  }
  Origin early;
  early.get();
  early.give(kSettings + data(1, "content without a head"));
  CHECK(early.answers[1].gone == ErrorCode::kProtocolError);
  CHECK_FALSE(early.end);
}

TEST_CASE("a stream that nobody takes leaves the connection's window to others, if they are apart",
          "[h2][client][rfc9113][5.2]") {
  const bool apart = GENERATE(false, true);
  Options options;
  options.has_streams_apart = apart;
  options.stream_window_bytes = options.connection_window_bytes = 1 << 16;
  Origin origin(options);
  origin.consumes = false;
  const StreamId id = origin.get();
  origin.give(kSettings + headers(id, {{":status", "200"}}, false));
  origin.take();
  for (int i = 0; i < 4; ++i) origin.give(data(id, std::string(10000, 'x')));
  const std::string said = origin.take();
  const std::string opened = window(0, 40000);
  CHECK((said.find(opened) != std::string::npos) == apart);
  // The stream's own window stays shut, and opens when its content is used.
  CHECK(said.find(window(id, 40000)) == std::string::npos);
  origin.session.consume(id, 40000);
  CHECK(origin.take().find(window(id, 40000)) != std::string::npos);
  CHECK_FALSE(origin.end);
}

TEST_CASE("a stream's end by its server is no fault that was found here", "[h2][client]") {
  Origin origin;
  const StreamId id = origin.get();
  origin.give(kSettings + rst(id, ErrorCode::kProtocolError));
  CHECK(origin.answers[id].gone == ErrorCode::kProtocolError);
  CHECK(origin.answers[id].fault.empty());
}

TEST_CASE("allowances of a server are as many times larger as was said", "[h2][client][flood]") {
  const std::uint32_t factor = GENERATE(1U, 10U);
  Options options;
  options.allowance_factor = factor;
  Origin origin(options);
  origin.give(kSettings);
  const std::string ping = frame(FrameType::kPing, 0, 0, "12345678");
  std::uint32_t sent = 0;
  while (!origin.end && sent < 100'000) {
    origin.give(ping);
    (void)origin.take();
    ++sent;
  }
  CHECK(sent == factor * limit_of(Allowance::kPing).burst + 1);
}

TEST_CASE("what our clients give up is no fault of the server's", "[h2][client]") {
  Origin origin;
  origin.give(kSettings);
  for (int i = 0; i < 500; ++i) origin.session.reset(origin.get(), ErrorCode::kCancel);
  origin.take();
  CHECK_FALSE(origin.end);
  CHECK(origin.counters.streams_reset == 500);
}

}  // namespace
}  // namespace encore::h2
