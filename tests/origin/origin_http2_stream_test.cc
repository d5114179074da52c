// A request and its response on a connection of HTTP/2, without a socket: frames in, frames out.
#include "proxy/origin/origin_http2_stream.h"

#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "proxy/h2/field_encoder.h"
#include "proxy/origin/request_writer.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

std::string frame(h2::FrameType type, std::uint8_t flags, h2::StreamId stream,
                  std::string_view payload) {
  std::string out;
  h2::append_frame_header({.length = static_cast<std::uint32_t>(payload.size()),
                           .type = type,
                           .flags = flags,
                           .stream = stream},
                          out);
  return out.append(payload);
}

std::string head(std::string_view status, std::string_view lines, bool ends) {
  std::string block;
  std::optional<std::uint64_t> length;
  h2::append_pseudo(":status", status, block);
  h2::append_fields(lines, block, length);
  const std::uint8_t end = ends ? h2::kFlagEndStream : std::uint8_t{0};
  return frame(h2::FrameType::kHeaders, h2::kFlagEndHeaders | end, 1, block);
}

std::string content(std::string_view bytes, bool ends = false) {
  return frame(h2::FrameType::kData, ends ? h2::kFlagEndStream : std::uint8_t{0}, 1, bytes);
}

std::string reset(h2::ErrorCode code) {
  return frame(h2::FrameType::kRstStream, 0, 1, std::string("\0\0\0", 3) + static_cast<char>(code));
}

// A connection without a socket, and who sends the request.
struct Line final : OriginHttp2Carrier, h2::ClientHandler, OriginHttp2Handler {
  Line() {
    stream.set_handler(this);
    give(frame(h2::FrameType::kSettings, 0, 0, ""));
  }
  ~Line() { stream.release(); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // OriginHttp2Carrier
  h2::ClientSession& session() override { return client; }
  const net::Address& peer() const override { return address; }
  std::string_view scheme() const override { return "http"; }
  std::uint64_t bytes_read() const override { return read; }
  void flush_later() override {}
  void deliver_later(OriginHttp2Stream&) override { ++deliveries; }
  StreamFailure failure() const override {
    return {.kind = StreamFailure::Kind::kLost, .why = "lost"};
  }
  void retire() override { is_retired = true; }
  void on_released(OriginHttp2Stream&) override { ++released; }
  // h2::ClientHandler
  void on_interim(h2::StreamId, const h2::Response& response) override {
    stream.on_head(response.text, false, true);
  }
  void on_response(h2::StreamId, const h2::Response& response) override {
    stream.on_head(response.text, true, response.has_content);
  }
  void on_connection_end(const h2::ConnectionEnd&) override {}
  // OriginHttp2Handler
  std::size_t on_stream_bytes(std::string_view bytes) override {
    const std::size_t used = std::min(bytes.size(), appetite);
    got += bytes.substr(0, used);
    calls_in_pauses += stream.is_reading_paused() ? 1 : 0;
    return used;
  }
  void on_stream_end(std::string_view lines) override {
    ends += 1;
    trailers = lines;
  }
  void on_stream_writable() override { ++writable; }
  void on_stream_failed(const StreamFailure& why) override { failed = why; }

  void give(const std::string& bytes) {
    read += bytes.size();
    client.receive(bytes, now);
  }
  // Takes `bytes_max` of what is to be sent.
  std::string take(std::size_t bytes_max = 1 << 20) {
    std::string all;
    std::array<iovec, 20> room;
    while (client.has_output() && all.size() < bytes_max) {
      const h2::Batch batch = client.gather(room, bytes_max - all.size());
      for (std::size_t i = 0; i < batch.parts; ++i) {
        all.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      client.sent(batch.bytes, now);
    }
    return all;
  }
  void get(std::string_view method = "GET") {
    const std::string text = std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n";
    REQUIRE(stream.send_head(text, OriginHttp2Stream::Content::kNone));
    (void)take();
  }

  net::Address address = net::Address::loopback_v4(1);
  MonotonicTime now{std::chrono::hours(1)};
  h2::Counters counters;
  h2::ClientSession client{{.has_streams_apart = true}, counters, *this};
  OriginHttp2Stream stream{*this, false};
  std::size_t appetite = SIZE_MAX;
  std::uint64_t read = 0;
  std::string got;
  std::string trailers;
  int ends = 0;
  int calls_in_pauses = 0;
  int writable = 0;
  int deliveries = 0;
  int released = 0;
  bool is_retired = false;
  std::optional<StreamFailure> failed;
};

TEST_CASE("a response is its head, its content without framing, and an end", "[origin][http2]") {
  Line line;
  line.get();
  line.give(head("103", "Link: x\r\n", false));
  line.give(head("200", "Age: 1\r\n", false) + content("hel") + content("lo"));
  CHECK(line.got ==
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nage: 1\r\ntransfer-encoding: chunked\r\n\r\nhello");
  CHECK(line.ends == 0);
  line.give(frame(h2::FrameType::kHeaders, h2::kFlagEndHeaders | h2::kFlagEndStream, 1,
                  std::string("\0\1x\1y", 5)));
  CHECK(line.ends == 1);
  CHECK(line.trailers == "x: y\r\n");
  CHECK_FALSE(line.failed);
}

TEST_CASE("a response that ends with its head has a length, where it could have content",
          "[origin][http2]") {
  struct Row {
    std::string method, status, lines, text;
  };
  const std::vector<Row> rows = {
      {"GET", "200", "", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"},
      {"POST", "404", "A: b\r\n", "HTTP/1.1 404 Not Found\r\na: b\r\ncontent-length: 0\r\n\r\n"},
      {"GET", "200", "Content-Length: 0\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"},
      {"HEAD", "200", "", "HTTP/1.1 200 OK\r\n\r\n"},
      {"HEAD", "200", "Content-Length: 7\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"},
      {"GET", "204", "", "HTTP/1.1 204 No Content\r\n\r\n"},
      {"GET", "304", "", "HTTP/1.1 304 Not Modified\r\n\r\n"}};
  for (const Row& row : rows) {
    CAPTURE(row.method, row.status, row.lines);
    Line line;
    line.get(row.method);
    line.give(head(row.status, row.lines, true));
    CHECK(line.got == row.text);
    CHECK(line.ends == 1);
  }
}

TEST_CASE("what is not used is kept, and comes again behind resume_reading()", "[origin][http2]") {
  Line line;
  line.get();
  line.give(head("200", "", false));
  line.got.clear();
  line.stream.pause_reading();
  line.give(content("abc") + content("def", true));
  CHECK(line.got.empty());
  CHECK(line.ends == 0);
  line.stream.resume_reading();
  CHECK(line.deliveries == 1);
  CHECK(line.got.empty());
  line.appetite = 4;
  line.stream.deliver();
  CHECK(line.got == "abcdef");
  CHECK(line.ends == 1);
}

TEST_CASE("however a stream is paused and its bytes are used, all comes once, and then its end",
          "[origin][http2]") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    Line line;
    line.get();
    line.give(head("200", "", false));
    line.got.clear();
    const bool fails = round % 3 == 0;
    std::string all;
    bool has_ended = false;
    const auto end = [&] {
      line.give(fails ? reset(h2::ErrorCode::kInternalError) : content("", true));
      has_ended = true;
    };
    for (int step = 0; step < 300; ++step) {
      const std::size_t before = all.size();
      switch (random() % 7) {
        case 0:
        case 1:
          if (has_ended || all.size() > 50'000) break;
          all += std::string(random() % 400 + 1, static_cast<char>('a' + step % 26));
          line.give(content(std::string_view(all).substr(before)));
          break;
        case 2:
          line.stream.pause_reading();
          break;
        case 3:
          line.stream.resume_reading();
          break;
        case 4:
          line.appetite = random() % 3 == 0 ? 0 : random() % 100;
          break;
        case 5:
          if (std::exchange(line.deliveries, 0) != 0) line.stream.deliver();
          break;
        default:
          if (step > 200 && !has_ended) end();
      }
      REQUIRE(all.starts_with(line.got));
      if (line.ends != 0 || line.failed) REQUIRE(line.got == all);
    }
    if (!has_ended) end();
    line.appetite = SIZE_MAX;
    line.stream.resume_reading();
    line.stream.deliver();
    CHECK(line.got == all);
    CHECK(line.ends == (fails ? 0 : 1));
    CHECK(line.failed.has_value() == fails);
    CHECK(line.calls_in_pauses == 0);
  }
}

TEST_CASE("a failure waits behind the content that came before it", "[origin][http2]") {
  Line line;
  line.get();
  line.give(head("200", "", false));
  line.got.clear();
  line.stream.pause_reading();
  line.give(content("abc") + reset(h2::ErrorCode::kInternalError));
  CHECK_FALSE(line.failed);
  line.stream.resume_reading();
  line.stream.deliver();
  CHECK(line.got == "abc");
  REQUIRE(line.failed);
  CHECK((line.failed->kind == StreamFailure::Kind::kReset));
}

TEST_CASE("why a stream has failed", "[origin][http2]") {
  using Kind = StreamFailure::Kind;
  struct Row {
    std::string bytes;
    Kind kind;
    std::string why;
  };
  const std::vector<Row> rows = {
      {reset(h2::ErrorCode::kRefusedStream), Kind::kRefused, "refused-stream"},
      {reset(h2::ErrorCode::kCancel), Kind::kReset, "stream-reset"},
      {frame(h2::FrameType::kGoAway, 0, 0, std::string(8, '\0')), Kind::kRefused, "refused-stream"},
      {head("20", "", true), Kind::kInvalid, std::string(to_string(h2::Malformed::kBadStatus))},
      {head("200", "Content-Length: 3\r\n", true), Kind::kInvalid,
       std::string(to_string(h2::Malformed::kLengthMismatch))},
      {content("x"), Kind::kInvalid, "DATA before the head"},
      {frame(h2::FrameType::kPushPromise, 4, 1, std::string(4, '\0')), Kind::kLost, "lost"}};
  for (const Row& row : rows) {
    CAPTURE(row.why);
    Line line;
    line.get();
    line.give(row.bytes);
    REQUIRE(line.failed);
    CHECK((line.failed->kind == row.kind));
    CHECK(line.failed->why == row.why);
  }
}

TEST_CASE("a released stream is cancelled, and calls nobody", "[origin][http2]") {
  Line line;
  line.get();
  line.stream.release();
  CHECK(line.released == 1);
  CHECK(line.take() == reset(h2::ErrorCode::kCancel));
  line.give(head("200", "", true));
  CHECK(line.got.empty());
}

TEST_CASE("a connection on which nothing came is left, another is not", "[origin][http2]") {
  Line line;
  line.get();
  line.stream.distrust_silence();
  CHECK(line.is_retired);
  Line other;
  other.get();
  other.give(frame(h2::FrameType::kPing, 0, 0, "12345678"));
  other.stream.distrust_silence();
  CHECK_FALSE(other.is_retired);
}

TEST_CASE("content is counted as sent when it has left", "[origin][http2][upload]") {
  Line line;
  RequestWriter writer(RequestWriter::Body::kExpected);
  writer.begin() = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  writer.frame(http::BodyKind::kLength);
  CHECK((writer.flush(line.stream).status == net::WriteStatus::kAll));
  CHECK(writer.waits_for_client());
  writer.upload("hello", false, "", http::BodyKind::kLength);
  CHECK((writer.flush(line.stream).status == net::WriteStatus::kBlocked));
  CHECK_FALSE(writer.accepts_upload());
  CHECK(line.take().ends_with(content("hello")));
  CHECK(line.writable != 0);
  const net::WriteResult left = writer.flush(line.stream);
  CHECK((left.status == net::WriteStatus::kAll));
  CHECK(left.bytes == 5);
  writer.upload(" there", true, "X-Sum: 1\r\n", http::BodyKind::kLength);
  (void)writer.flush(line.stream);
  CHECK_FALSE(writer.is_complete());
  const std::string rest = line.take();
  CHECK(rest.starts_with(content(" there")));
  CHECK(rest.find("x-sum") != std::string::npos);
  (void)writer.flush(line.stream);
  CHECK(writer.is_complete());
}

TEST_CASE("what a server has not worked on goes again from its first byte, if it is still here",
          "[origin][http2][upload]") {
  const bool fits = GENERATE(true, false);
  const std::size_t size = RequestWriter::kReplayBytesMax + (fits ? 0 : 1);
  const std::string first(size - 6, 'a');
  RequestWriter writer(RequestWriter::Body::kExpected);
  {
    Line line;
    line.give(frame(h2::FrameType::kSettings, 0, 0, std::string("\0\4\0\x10\0\0", 6)));
    line.give(frame(h2::FrameType::kWindowUpdate, 0, 0, std::string("\0\x10\0\0", 4)));
    writer.begin() = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";
    writer.frame(http::BodyKind::kLength);
    (void)writer.flush(line.stream);
    for (const bool is_last : {false, true}) {
      writer.upload(is_last ? "second" : first, is_last, "", http::BodyKind::kLength);
      (void)writer.flush(line.stream);
      (void)line.take();
      (void)writer.flush(line.stream);
    }
    REQUIRE(writer.is_complete());
    line.give(reset(h2::ErrorCode::kRefusedStream));
    CHECK(writer.rewind() == fits);
  }
  if (!fits) return;
  Line next;
  next.give(frame(h2::FrameType::kSettings, 0, 0, std::string("\0\4\0\x10\0\0", 6)));
  next.give(frame(h2::FrameType::kWindowUpdate, 0, 0, std::string("\0\x10\0\0", 4)));
  writer.begin() = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";
  writer.frame(http::BodyKind::kLength);
  (void)writer.flush(next.stream);
  const std::string again = next.take();
  CHECK(again.size() > size);
  CHECK(again.find("second") != std::string::npos);
  (void)writer.flush(next.stream);
  CHECK(writer.is_complete());
}

TEST_CASE("content that is offered to a released stream goes nowhere", "[origin][http2][upload]") {
  Line line;
  RequestWriter writer(RequestWriter::Body::kExpected);
  writer.begin() = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";
  writer.frame(http::BodyKind::kLength);
  (void)writer.flush(line.stream);
  (void)line.take();
  line.stream.release();
  (void)line.take();
  line.stream.offer("late");
  line.stream.offer_last("and last", "");
  CHECK(line.stream.has_sent_all());
  CHECK(line.stream.taken_bytes() == 0);
  CHECK(line.take().empty());
}

}  // namespace
}  // namespace encore::server
