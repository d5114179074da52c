// Refused requests on a connection of HTTP/1, and whether another may follow.
#include "proxy/client/http1_connection.h"

#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

struct Refusing {
  Refusing()
      : world(config::Mode::kReverse,
              [](config::Config& config) { config.listen.front().deny_paths = {"/denied"}; }),
        client(world) {
    world.keep_records();
  }
  // Returns how many responses with this status were heard.
  std::size_t heard(int status) const {
    const std::string line = "HTTP/1.1 " + std::to_string(status) + " ";
    std::size_t count = 0;
    for (std::size_t at = 0; (at = client.heard.find(line, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  void answer_origin(std::string_view control) {
    world.run_until_asked();
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: " + std::string(control) +
                 "\r\nContent-Length: 2\r\n\r\nok");
  }
  void run() { world.run_turns(20); }

  ClientWorld world;
  Client client;
};

constexpr std::string_view kDenied = "GET /denied HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kOther = "OPTIONS /x HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n";

TEST_CASE("a refusal leaves a connection whose next request has a certain beginning",
          "[client][connection]") {
  struct Row {
    std::string_view request;
    int status;
    bool stays;
    std::string_view said;  // in Connection; empty: nothing
  };
  const std::string_view kept = "\r\nConnection: keep-alive\r\n";
  const std::string_view closed = "\r\nConnection: close\r\n";
  const Row row = GENERATE_COPY(values<Row>({
      {kDenied, 403, true, ""},
      {"GET /denied HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 403, false, closed},
      {"GET /denied HTTP/1.0\r\nHost: h\r\n\r\n", 403, false, closed},
      {"GET /denied HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", 403, true, kept},
      {"POST /denied HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 403, true, ""},
      {"POST /denied HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 403, false, closed},
      {"POST /denied HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 403, false,
       closed},
      {"GET /denied HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n", 403, false,
       closed},
      {"GET /other HTTP/1.1\r\n\r\n", 400, false, closed},
      {"nothing\r\n\r\n", 400, false, closed},
  }));
  const bool is_draining = GENERATE(true, false);
  CAPTURE(row.request, is_draining);
  const bool stays = row.stays && !is_draining;
  Refusing r;
  r.world.world.draining = is_draining;
  r.client.say(std::string(row.request) + std::string(kOther));
  r.world.run_until([&] { return r.client.is_over() || r.heard(204) == 1; });
  r.run();
  CHECK(r.heard(row.status) == 1);
  CHECK(r.heard(204) == (stays ? 1 : 0));
  CHECK(r.client.ended == !stays);
  const std::string head = r.client.heard.substr(0, r.client.heard.find("\r\n\r\n") + 2);
  const std::string_view said = is_draining ? closed : row.said;
  CHECK((head.find("\r\nConnection: ") == std::string::npos) == said.empty());
  CHECK(head.find(said) != std::string::npos);
  CHECK(r.world.records() == (stays ? 2 : 1));
  CHECK(r.world.record()["status"] == row.status);
  if (!stays) CHECK(r.world.record()["bytes"] == r.client.heard.size());
}

TEST_CASE("three refusals in a row leave a connection, and any answer between them begins anew",
          "[client][connection]") {
  Refusing r;
  r.client.say("GET /hit HTTP/1.1\r\nHost: h\r\n\r\n");
  r.answer_origin("max-age=60");
  r.world.run_until([&] { return r.world.records() == 1; });
  const int before = GENERATE(0, 1, 3);
  for (int i = 0; i < before; ++i) r.client.say(kDenied);
  r.world.run_until([&] { return r.heard(403) == static_cast<std::size_t>(before); });
  const std::uint64_t records = r.world.records();
  switch (GENERATE(0, 1, 2)) {
    case 0:
      r.client.say("GET /hit HTTP/1.1\r\nHost: h\r\n\r\n");
      break;
    case 1:
      r.client.say("GET /miss HTTP/1.1\r\nHost: h\r\n\r\n");
      r.answer_origin("no-store");
      break;
    default:
      r.client.say(kOther);
      break;
  }
  r.world.run_until([&] { return r.world.records() == records + 1; });
  const std::size_t denied = r.heard(403);
  for (std::size_t i = 1; i <= 3; ++i) {
    r.client.say(kDenied);
    r.world.run_until([&] { return r.heard(403) == denied + i; });
  }
  r.run();
  CHECK(r.client.heard.find("Connection: close") == std::string::npos);
  CHECK_FALSE(r.client.is_over());
  r.client.say(kDenied);
  r.world.run_until([&] { return r.client.is_over(); });
  CHECK(r.heard(403) == denied + 4);
  CHECK(r.client.heard.find("Connection: close") != std::string::npos);
  CHECK(r.client.ended);
}

}  // namespace
}  // namespace encore::server
