// A connection that has closed lives until the end of its turn. The code that looks after all
// connections may still call it, and nothing happens.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"

namespace encore::server {
namespace {

using std::chrono::hours;

// All that a worker counts: requests by outcome, counters and gauges.
std::vector<std::uint64_t> counted(const ClientWorld& world) {
  const WorkerStats& stats = world.world.stats;
  std::vector<std::uint64_t> all;
  for (const Counter& each : stats.requests) all.push_back(each.get());
#define ENCORE_GET(member, name, help) all.push_back(stats.member.get());
  ENCORE_COUNTERS(ENCORE_GET)
  ENCORE_GAUGES(ENCORE_GET)
#undef ENCORE_GET
  return all;
}

void call_all(ClientConnection& closed, MonotonicTime now) {
  const ClientGone why{.outcome = Outcome::kInternal, .detail = "late"};
  closed.check_read_rate(now);
  CHECK_FALSE(closed.slow_reader());
  closed.cut_reader();
  CHECK_FALSE(closed.revoke());
  closed.cut_revoked(why);
  closed.drain();
  closed.announce_drain();
  for (int i = 0; i < 4; ++i) closed.end_if_quiet();
  closed.check_timeouts(now + hours(1000));
  closed.cut(why);
  CHECK_FALSE(closed.may_be_given_up());
}

// Cuts the client's connection, and calls it in all ways in the same turn.
void check_closed(ClientWorld& world, Client& client, std::uint64_t records) {
  ClientConnection& connection = client.connection();
  const MonotonicTime now = world.world.loop->now();
  const std::uint64_t before = world.records();
  connection.cut();
  CHECK(world.connections() == 0);
  CHECK(world.records() == before + records);
  CHECK(world.ended_as(Outcome::kDrained) == records);
  const auto then = counted(world);
  call_all(connection, now);
  CHECK((counted(world) == then));
  world.run_until([&] { return client.is_over(); });
  CHECK(world.records() == before + records);
  CHECK(world.heads.count() == 0);
}

const std::string kAsk = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\nten bytes.";

}  // namespace

TEST_CASE("a connection that has closed does nothing, whatever is wanted of it",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  SECTION("nothing has come") { check_closed(world, client, 0); }
  SECTION("a head has begun") {
    client.say(kAsk.substr(0, 20));
    world.run_until([&] { return world.heads.count() == 1; });
    check_closed(world, client, 0);
  }
  SECTION("a request waits for its origin") {
    client.say(kAsk);
    world.run_until_asked();
    check_closed(world, client, 1);
  }
  SECTION("a response is under way, and more is asked behind it") {
    client.say(kAsk + kAsk);
    world.run_until_asked();
    world.answer(kAnswer);
    world.run_until([&] { return client.heard.ends_with("ten bytes."); });
    check_closed(world, client, 1);
  }
  SECTION("content comes") {
    client.say("PUT /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100\r\n\r\nten bytes.");
    world.run_until([&] { return world.origin.asked.ends_with("ten bytes."); });
    check_closed(world, client, 1);
  }
}

TEST_CASE("a tunnel that has closed does nothing, whatever is wanted of it", "[client][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Client client(world);
  const std::string target = "127.0.0.1:" + std::to_string(world.origin.port());
  client.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n");
  world.run_until([&] { return client.heard.ends_with("\r\n\r\n"); });
  client.connection().cut();
  const std::uint64_t records = world.records();
  CHECK(records == 1);
  const auto then = counted(world);
  call_all(client.connection(), world.world.loop->now());
  CHECK((counted(world) == then));
  world.run_until([&] { return client.is_over(); });
  CHECK(world.records() == records);
}

TEST_CASE("a connection of HTTP/2 that has closed does nothing, whatever is wanted of it",
          "[client][http2]") {
  ClientWorld world;
  SECTION("nothing was asked") {
    Http2Client client(world);
    client.greet();
    world.run_until([&] { return !client.frames().empty(); });
    check_closed(world, client, 0);
  }
  SECTION("the window of a hit is shut, and another stream waits for its origin") {
    Client first(world);
    first.say(kAsk);
    world.run_until_asked();
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nhit");
    world.run_until([&] { return first.heard.ends_with("hit"); });
    Http2Client client(world);
    client.greet(h2::test::setting(h2::Setting::kInitialWindowSize, 1));
    client.ask(1, "/a");
    world.run_until([&] { return client.content(1) == "h"; });
    client.ask(3, "/b");
    world.run_until_asked();
    first.end();
    world.run_until([&] { return first.is_over(); });
    check_closed(world, client, 2);
  }
}

}  // namespace encore::server
