#include "proxy/origin/request_writer.h"

#include <sys/socket.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "proxy/net/loop.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// A connection whose far end the test reads.
struct Connection {
  // `buffer`: bytes that the kernel takes at least before the far end reads; 0: as it likes.
  explicit Connection(int buffer = 0) {
    auto made = net::Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    if (buffer != 0) {
      REQUIRE(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) == 0);
    }
    far = net::Socket(ends[1]);
    stream = std::make_unique<net::Stream>(*loop, net::Socket(ends[0]),
                                           *net::Address::parse_ip("127.0.0.1", 1), nullptr);
  }
  // Returns the bytes that have arrived so far.
  std::string arrived() {
    std::string text;
    char room[4096];
    for (ssize_t got = 0; (got = ::recv(far.get(), room, sizeof(room), 0)) > 0;) {
      text.append(room, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::unique_ptr<net::Loop> loop;
  net::Socket far;
  std::unique_ptr<net::Stream> stream;
};

TEST_CASE("a request without a body is complete once it is sent", "[origin][writer]") {
  Connection connection;
  RequestWriter writer(RequestWriter::Body::kNone);
  writer.begin() = "GET / HTTP/1.1\r\n\r\n";
  CHECK_FALSE(writer.is_complete());
  CHECK_FALSE(writer.has_begun());
  CHECK((writer.flush(*connection.stream).status == net::WriteStatus::kAll));
  CHECK(writer.has_begun());
  CHECK(writer.is_complete());
  CHECK_FALSE(writer.waits_for_client());
  CHECK(connection.arrived() == "GET / HTTP/1.1\r\n\r\n");
  // On another connection it is sent again, from its beginning.
  Connection next;
  writer.begin() = "GET / HTTP/1.1\r\n\r\n";
  CHECK_FALSE(writer.is_complete());
  CHECK_FALSE(writer.has_begun());
  (void)writer.flush(*next.stream);
  CHECK(next.arrived() == "GET / HTTP/1.1\r\n\r\n");
}

TEST_CASE("a body goes behind its head, in chunks where it is framed so", "[origin][writer]") {
  for (const auto framing : {http::BodyKind::kLength, http::BodyKind::kChunked}) {
    Connection connection;
    RequestWriter writer(RequestWriter::Body::kExpected);
    writer.begin() = "head\r\n\r\n";
    CHECK_FALSE(writer.accepts_upload());
    (void)writer.flush(*connection.stream);
    CHECK(writer.accepts_upload());
    CHECK(writer.waits_for_client());
    CHECK_FALSE(writer.is_complete());
    CHECK_FALSE(writer.has_taken_body());
    writer.upload("abc", false, "", framing);
    CHECK(writer.has_taken_body());
    CHECK_FALSE(writer.accepts_upload());
    CHECK_FALSE(writer.waits_for_client());
    (void)writer.flush(*connection.stream);
    CHECK(writer.waits_for_client());
    writer.upload("", true, "T: x\r\n", framing);
    CHECK_FALSE(writer.expects_upload());
    (void)writer.flush(*connection.stream);
    CHECK(writer.is_complete());
    CHECK(connection.arrived() == (framing == http::BodyKind::kChunked
                                       ? "head\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n"
                                       : "head\r\n\r\nabc"));
  }
}

TEST_CASE("what the connection does not take stays, and is sent in order", "[origin][writer]") {
  Connection connection;
  RequestWriter writer(RequestWriter::Body::kExpected);
  writer.begin() = "head";
  (void)writer.flush(*connection.stream);
  std::string content(3U << 20U, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 23);
  writer.upload(content, true, "", http::BodyKind::kLength);
  std::string arrived;
  while (!writer.is_flushed()) {
    const auto result = writer.flush(*connection.stream);
    REQUIRE((result.status != net::WriteStatus::kError));
    if (result.status == net::WriteStatus::kBlocked) CHECK_FALSE(writer.is_complete());
    arrived += connection.arrived();
  }
  arrived += connection.arrived();
  CHECK(arrived == "head" + content);
  CHECK(writer.is_complete());
}

TEST_CASE("however content is gathered, brought and taken, each byte is sent and counted once",
          "[origin][writer]") {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const bool is_chunked = round % 2 == 0;
    const auto framing = is_chunked ? http::BodyKind::kChunked : http::BodyKind::kLength;
    const bool has_trailers = round % 3 == 0;
    const std::string trailers = has_trailers ? "T: x\r\n" : "";
    CAPTURE(round);
    Connection connection(1);
    RequestWriter writer(RequestWriter::Body::kExpected);
    std::string content;
    std::string framed;
    bool has_ended = false;
    const auto piece = [&] {
      return std::string(random() % 4 == 0 ? 0 : 1 + random() % 9000,
                         static_cast<char>('a' + content.size() % 23));
    };
    const auto add_framed = [&](const std::string& text) {
      content += text;
      if (!is_chunked) {
        framed += text;
      } else if (!text.empty()) {
        char size[32];
        (void)std::snprintf(size, sizeof size, "%zx\r\n", text.size());
        framed += size + text + "\r\n";
      }
      if (has_ended && is_chunked) framed += "0\r\n" + trailers + "\r\n";
    };
    // Some of it, or all, comes before there is a connection.
    std::string gathered;
    const auto pieces = random() % 4;
    for (unsigned i = 0; i < pieces && !has_ended; ++i) {
      has_ended = random() % 4 == 0;
      const std::string some = piece();
      writer.gather(some, has_ended, has_ended ? trailers : "");
      gathered += some;
      REQUIRE(writer.gathered_bytes() == gathered.size());
      REQUIRE(writer.has_gathered_all() == has_ended);
    }
    if (pieces != 0) add_framed(gathered);
    const std::string head = "PUT / HTTP/1.1\r\n\r\n";
    writer.begin() = head;
    writer.frame(framing);
    std::string arrived;
    std::uint64_t counted = 0;
    for (int step = 0; step < 20'000 && !writer.is_complete(); ++step) {
      if (writer.accepts_upload() && writer.is_flushed()) {
        REQUIRE_FALSE(has_ended);
        CHECK(writer.waits_for_client());
        has_ended = random() % 5 == 0;
        const std::string some = piece();
        writer.upload(some, has_ended, has_ended ? trailers : "", framing);
        add_framed(some);
      }
      REQUIRE(writer.expects_upload() == !has_ended);
      const net::WriteResult result = writer.flush(*connection.stream);
      REQUIRE(result.status != net::WriteStatus::kError);
      counted += result.bytes;
      CHECK((result.status == net::WriteStatus::kAll) == writer.is_flushed());
      if (random() % 3 == 0) arrived += connection.arrived();
    }
    arrived += connection.arrived();
    REQUIRE(writer.is_complete());
    CHECK(has_ended);
    CHECK((arrived == head + framed));
    CHECK(counted == arrived.size());
  }
}

TEST_CASE("a broken connection takes no more, and the request is not complete",
          "[origin][writer]") {
  Connection connection;
  RequestWriter writer(RequestWriter::Body::kExpected);
  writer.begin() = "head";
  (void)writer.flush(*connection.stream);
  writer.upload("abc", true, "", http::BodyKind::kLength);
  connection.far = net::Socket();
  CHECK((writer.flush(*connection.stream).status == net::WriteStatus::kError));
  CHECK(writer.is_broken());
  CHECK_FALSE(writer.is_complete());
  CHECK_FALSE(writer.accepts_upload());
  CHECK_FALSE(writer.waits_for_client());
}

TEST_CASE("what is gathered before there is a connection goes behind the head",
          "[origin][writer]") {
  for (const auto framing : {http::BodyKind::kLength, http::BodyKind::kChunked}) {
    RequestWriter writer(RequestWriter::Body::kExpected);
    writer.gather("abc", false, "");
    CHECK(writer.has_taken_body());
    writer.gather("de", true, "T: x\r\n");
    CHECK_FALSE(writer.expects_upload());
    CHECK(writer.gathered_bytes() == 5);
    CHECK(writer.has_gathered_all());
    // A connection that takes nothing leaves it for another one, which may want it otherwise.
    writer.begin() = "head\r\n\r\n";
    writer.frame(http::BodyKind::kChunked);
    Connection connection;
    writer.begin() = "head\r\n\r\n";
    writer.frame(framing);
    CHECK_FALSE(writer.has_begun());
    (void)writer.flush(*connection.stream);
    CHECK(writer.is_complete());
    CHECK(connection.arrived() == (framing == http::BodyKind::kChunked
                                       ? "head\r\n\r\n5\r\nabcde\r\n0\r\nT: x\r\n\r\n"
                                       : "head\r\n\r\nabcde"));
  }
}

TEST_CASE("what is gathered may go on from there in chunks", "[origin][writer]") {
  RequestWriter writer(RequestWriter::Body::kExpected);
  writer.gather("abc", false, "");
  CHECK_FALSE(writer.has_gathered_all());
  Connection connection;
  writer.begin() = "head\r\n\r\n";
  writer.frame(http::BodyKind::kChunked);
  (void)writer.flush(*connection.stream);
  writer.upload("de", true, "", http::BodyKind::kChunked);
  (void)writer.flush(*connection.stream);
  CHECK(connection.arrived() == "head\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  CHECK(writer.is_complete());
}

}  // namespace
}  // namespace encore::server
