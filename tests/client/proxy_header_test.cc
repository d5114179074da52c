// The header of the PROXY protocol in front of a client's requests.
#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

constexpr std::string_view kNamed = "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n";
constexpr std::string_view kAsks = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

struct Balanced {
  explicit Balanced(const std::function<void(config::Config&)>& change = {})
      : world(config::Mode::kReverse,
              [&](config::Config& config) {
                config.listen.front().proxy_protocol = true;
                config.listen.front().trusted_proxies = {"127.0.0.0/8"};
                if (change) change(config);
              }),
        client(world) {
    world.keep_records();
  }
  WorkerStats& stats() { return world.world.stats; }
  ClientWorld world;
  Client client;
};

TEST_CASE("a PROXY header names the client of all requests behind it", "[client][proxy-header]") {
  Balanced b;
  const auto cut = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{20}, kNamed.size());
  CHECK(b.world.heads.count() == 1);
  if (cut != 0) {
    b.client.say(kNamed.substr(0, cut));
    b.world.run_turns(5);
    CHECK(b.world.heads.count() == (cut == kNamed.size() ? 0 : 1));
    CHECK(b.world.heads.bytes() == (cut == kNamed.size() ? 0 : cut));
  }
  b.client.say(std::string(kNamed.substr(cut)) + std::string(kAsks));
  b.world.run_until_asked();
  CHECK(b.world.heads.count() == 0);
  CHECK(b.world.origin.asked.starts_with("GET /x HTTP/1.1\r\n"));
  b.world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  b.world.run_until([&] { return b.world.records() == 1; });
  CHECK(b.world.record()["client"] == "192.0.2.7");
  CHECK(b.stats().proxy_headers_bad.get() == 0);
}

TEST_CASE("a connection without its PROXY header closes, unanswered", "[client][proxy-header]") {
  Balanced b;
  SECTION("a request comes in its place") { b.client.say(kAsks); }
  SECTION("the client ends within it") {
    b.client.say(kNamed.substr(0, 10));
    b.client.end();
  }
  b.world.run_until([&] { return b.client.is_over(); });
  CHECK(b.client.heard.empty());
  CHECK(b.stats().proxy_headers_bad.get() == 1);
  CHECK(b.world.connections() == 0);
  CHECK(b.world.heads.count() == 0);
  CHECK(b.world.records() == 0);
  CHECK(b.world.origin.accepted == 0);
}

TEST_CASE("clients that a PROXY header names are counted each by itself",
          "[client][proxy-header]") {
  Balanced b([](config::Config& config) { config.limits.connections_per_client = "1"; });
  b.client.say(kNamed);
  b.world.run_until([&] { return b.world.heads.count() == 0; });
  Client again(b.world);
  again.say(kNamed);
  b.world.run_until([&] { return again.is_over(); });
  CHECK(b.stats().connections_refused.get() == 1);
  CHECK(b.world.connections() == 1);
  Client other(b.world);
  other.say("PROXY TCP4 192.0.2.8 192.0.2.1 4711 80\r\n" + std::string(kAsks));
  b.world.run_until_asked();
  CHECK(b.stats().connections_refused.get() == 1);
  CHECK_FALSE(other.is_over());
}

}  // namespace
}  // namespace encore::server
