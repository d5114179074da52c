// Another protocol over HTTP/1.1: the origin's 101, and all that follows it.
#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

using std::chrono::minutes;

constexpr std::string_view kAsksSwitch =
    "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n";

// A client whose connection has gone over.
struct Switched {
  explicit Switched(std::string_view behind = {}, std::string_view answered = {},
                    const std::function<void(config::Config&)>& change = {})
      : world(config::Mode::kReverse, change), client(world) {
    world.keep_records();
    client.say(std::string(kAsksSwitch) + std::string(behind));
    world.run_until_asked();
    asked = world.origin.asked;
    opened_after = world.world.loop->now();
    world.origin.say("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: raw\r\nX-Own: 1\r\n\r\n" +
                     std::string(answered));
    world.run_until([&] { return client.heard.find("\r\n\r\n") != std::string::npos; });
    head = client.heard.substr(0, client.heard.find("\r\n\r\n") + 4);
  }
  WorkerStats& stats() { return world.world.stats; }
  void check_over(std::string_view outcome) {
    world.run_until([&] { return world.connections() == 0; });
    CHECK(world.records() == 1);
    CHECK(world.record()["outcome"] == outcome);
    CHECK(world.record()["status"] == 101);
    CHECK(world.record()["bytes"] == client.heard.size());
    world.run_turns(2);
    CHECK(stats().upgrades.get() == 1);
    CHECK(stats().upgrades_open.get() == 0);
    CHECK(stats().tunnels_open.get() == 0);
    CHECK(stats().origin_connections.get() == 0);
  }

  ClientWorld world;
  Client client;
  std::string asked;
  std::string head;
  MonotonicTime opened_after{};
};

TEST_CASE("a connection that goes over to another protocol passes bytes both ways",
          "[client][upgrade]") {
  Switched s("early", "first");
  CHECK(s.asked.ends_with("\r\n\r\n"));
  CHECK(s.asked.find("\r\nConnection: upgrade\r\nUpgrade: raw\r\n") != std::string::npos);
  CHECK(
      s.head.starts_with("HTTP/1.1 101 Go\r\nX-Own: 1\r\nConnection: upgrade\r\n"
                         "Upgrade: raw\r\nVia: 1.1 "));
  s.world.run_until([&] { return s.client.heard == s.head + "first"; });
  s.world.run_until([&] { return s.world.origin.asked == "early"; });
  CHECK(s.stats().upgrades.get() == 1);
  CHECK(s.stats().upgrades_open.get() == 1);
  CHECK(s.stats().tunnels.get() == 0);
  CHECK(s.stats().tunnels_open.get() == 0);
  CHECK(s.stats().origin_connections.get() == 1);
  CHECK(s.client.connection().is_tunnel());
  CHECK(s.world.records() == 0);
  s.client.say("up");
  s.world.run_until([&] { return s.world.origin.asked == "earlyup"; });
  if (GENERATE(true, false)) {
    s.client.end();
    s.world.run_until([&] { return s.world.origin.ended; });
    s.world.origin.end();
    s.world.run_until([&] { return s.client.ended; });
  } else {
    s.world.origin.end();
    s.world.run_until([&] { return s.client.ended; });
    s.client.end();
    s.world.run_until([&] { return s.world.origin.ended; });
  }
  s.check_over("upgrade");
}

TEST_CASE("a connection of another protocol that is cut is recorded so", "[client][upgrade]") {
  Switched s;
  s.client.connection().cut();
  s.world.run_until([&] { return s.client.is_over(); });
  s.check_over("drained");
}

TEST_CASE("a connection of another protocol has an idle limit of its own", "[client][upgrade]") {
  Switched s({}, {}, [](config::Config& config) {
    config.timeouts.upgrade_idle = minutes(7);
    config.timeouts.tunnel_idle = minutes(3);
  });
  s.client.connection().check_timeouts(s.opened_after + minutes(7) - Nanoseconds(1));
  s.world.run_turns(5);
  REQUIRE_FALSE(s.client.is_over());
  CHECK(s.stats().upgrades_open.get() == 1);
  s.client.connection().check_timeouts(s.world.world.loop->now() + minutes(7));
  s.world.run_until([&] { return s.client.is_over(); });
  s.check_over("upgrade");
}

TEST_CASE("an origin that answers otherwise leaves the connection to requests",
          "[client][upgrade]") {
  ClientWorld world;
  Client client(world);
  client.say(kAsksSwitch);
  world.run_until_asked();
  world.answer("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
  world.run_until([&] { return client.heard.ends_with("\r\n\r\nno"); });
  CHECK(world.world.stats.upgrades.get() == 0);
  CHECK_FALSE(client.connection().is_tunnel());
  client.say("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  world.run_until_asked();
  CHECK(world.origin.asked.starts_with("GET /next HTTP/1.1\r\n"));
}

}  // namespace
}  // namespace encore::server
