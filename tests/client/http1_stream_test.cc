// How a response is framed for its client, and how the client sees where it ends.
#include "proxy/client/http1_stream.h"

#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

constexpr std::string_view kChunked = "Transfer-Encoding: chunked\r\n";
constexpr std::string_view kClose = "Connection: close\r\n";

struct Answered {
  // `request` is a request line and fields, `parts` what the origin says to it, one after the
  // other. If `closes`, it then closes its connection.
  Answered(std::string_view request, const std::vector<std::string_view>& parts, bool closes)
      : client(world) {
    client.say(std::string(request) + "Host: h\r\n\r\n");
    world.run_until_asked();
    for (const std::string_view part : parts) {
      world.origin.say(part);
      world.run_turns(3);
    }
    if (closes) world.origin.close();
    world.run_until([&] { return world.records() == 1; });
    world.run_turns(20);
    const std::size_t end = client.heard.rfind("HTTP/1.1 ");
    head = client.heard.substr(end, client.heard.find("\r\n\r\n", end) + 2 - end);
    body = client.heard.substr(end + head.size() + 2);
  }
  bool says(std::string_view line) const { return head.find(line) != std::string::npos; }

  ClientWorld world;
  Client client;
  std::string head;
  std::string body;
};

TEST_CASE("a response is framed as its client's version has it", "[client][stream]") {
  enum class End : std::uint8_t { kOpen, kEnded };
  struct Row {
    const char* request;
    std::string_view response;
    bool origin_closes;
    bool chunked;
    const char* body;
    End end;
  };
  const std::string_view length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  const std::string_view open = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";
  const std::string_view chunks =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
  const char* const v11 = "GET /a HTTP/1.1\r\n";
  const char* const v10 = "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n";
  const Row row = GENERATE_COPY(values<Row>({
      {v11, length, false, false, "hello", End::kOpen},
      {v10, length, false, false, "hello", End::kOpen},
      {v11, open, true, true, "5\r\nhello\r\n0\r\n\r\n", End::kOpen},
      {v10, open, true, false, "hello", End::kEnded},
      {v11, chunks, false, true, "5\r\nhello\r\n0\r\n\r\n", End::kOpen},
      {v10, chunks, false, false, "hello", End::kEnded},
      {"GET /a HTTP/1.1\r\nTE: trailers\r\nConnection: TE\r\n", chunks, false, true,
       "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", End::kOpen},
      {"GET /a HTTP/1.1\r\nConnection: close\r\n", chunks, false, true, "5\r\nhello\r\n0\r\n\r\n",
       End::kEnded},
  }));
  CAPTURE(row.request, row.response);
  const Answered a(row.request, {row.response}, row.origin_closes);
  CHECK(a.says(kChunked) == row.chunked);
  CHECK(a.body == row.body);
  CHECK(a.client.ended == (row.end == End::kEnded));
  CHECK(a.says(kClose) == (row.end == End::kEnded));
  CHECK_FALSE(a.client.was_reset);
  CHECK(a.world.world.stats.bytes_to_clients.get() == a.client.heard.size());
  CHECK(a.world.world.stats.body_bytes() == 5);
}

TEST_CASE("interim responses go before the final one, to clients that know them",
          "[client][stream]") {
  const std::string_view hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
  const std::string_view final = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  const Answered now("GET /a HTTP/1.1\r\n", {hints, final}, false);
  CHECK(now.client.heard.starts_with(hints.substr(0, hints.find("Link"))));
  CHECK(now.client.heard.find("Link: </x>\r\n") < now.client.heard.find("HTTP/1.1 200 OK\r\n"));
  CHECK(now.body == "hello");
  const Answered old("GET /a HTTP/1.0\r\n", {hints, final}, false);
  CHECK(old.client.heard.starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("a response that breaks off never looks whole", "[client][stream]") {
  const std::string_view chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello";
  SECTION("its length shows it") {
    const Answered a("GET /a HTTP/1.1\r\n",
                     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "hello"}, true);
    CHECK(a.body == "hello");
    CHECK(a.client.ended);
    CHECK(a.world.ended_as(Outcome::kOriginAborted) == 1);
  }
  SECTION("its last chunk is missing") {
    const Answered a("GET /a HTTP/1.1\r\n", {chunks}, true);
    CHECK(a.body == "5\r\nhello\r\n");
    CHECK(a.client.ended);
    CHECK(a.world.ended_as(Outcome::kOriginAborted) == 1);
  }
  SECTION("where only the connection's end would, that is a reset") {
    const Answered a("GET /a HTTP/1.0\r\n", {chunks}, true);
    CHECK(a.body == "hello");
    CHECK(a.client.was_reset);
    CHECK(a.world.ended_as(Outcome::kOriginAborted) == 1);
  }
}

TEST_CASE("a response that is cut in its middle never looks whole", "[client][stream]") {
  struct Row {
    const char* request;
    const char* response;
    bool reset;
  };
  const char* const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello";
  const Row row = GENERATE_COPY(values<Row>({
      {"GET /a HTTP/1.1", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false},
      {"GET /a HTTP/1.1", chunks, false},
      {"GET /a HTTP/1.0", chunks, true},
  }));
  CAPTURE(row.request, row.response);
  ClientWorld world;
  Client client(world);
  client.say(std::string(row.request) + "\r\nHost: h\r\n\r\n");
  world.run_until_asked();
  world.origin.say(row.response);
  world.run_until([&] { return client.heard.find("hello") != std::string::npos; });
  client.connection().cut();
  world.run_until([&] { return client.is_over(); });
  CHECK(client.was_reset == row.reset);
  CHECK_FALSE(client.heard.ends_with("0\r\n\r\n"));
  CHECK(world.ended_as(Outcome::kDrained) == 1);
  world.run_until([&] { return world.world.fetches.empty(); });
}

TEST_CASE("what a client may not have is said in a response that ends its connection where it must",
          "[client][stream]") {
  ClientWorld world;
  Client client(world);
  SECTION("content that is no content") {
    client.say("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    world.run_until([&] { return client.is_over(); });
    CHECK(client.heard.starts_with("HTTP/1.1 400 "));
    CHECK(client.heard.find(kClose) != std::string::npos);
    CHECK(world.ended_as(Outcome::kBadRequest) == 1);
    world.run_until([&] { return world.world.fetches.empty(); });
  }
  SECTION("an origin that cannot be reached, and others follow") {
    world.origin.stop_listening();
    client.say("GET /a HTTP/1.1\r\nHost: h\r\n\r\nTRACE /a HTTP/1.1\r\nHost: h\r\n\r\n");
    world.run_until([&] { return world.records() == 2; });
    world.run_turns(10);
    CHECK(client.heard.starts_with("HTTP/1.1 502 "));
    CHECK(client.heard.find("HTTP/1.1 405 ") != std::string::npos);
    CHECK(client.heard.find(kClose) == std::string::npos);
    CHECK_FALSE(client.is_over());
  }
}

}  // namespace
}  // namespace encore::server
