// CONNECT, from the check of its destination to the end of both sides.
#include "proxy/client/tunnel_exchange.h"

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/refused_tunnels.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

std::string connect_to(std::uint16_t port) {
  const std::string target = "127.0.0.1:" + std::to_string(port);
  return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
}

constexpr std::string_view kTunnelEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

struct Tunnelled {
  explicit Tunnelled(std::string_view first = {},
                     const std::function<void(config::Config&)>& change = {})
      : world(config::Mode::kForward, change), client(world) {
    client.say(connect_to(world.origin.port()) + std::string(first));
    world.run_until(
        [&] { return client.heard == kTunnelEstablished && world.origin.accepted == 1; });
    client.heard.clear();
  }
  ClientWorld world;
  Client client;
};

TEST_CASE("a tunnel passes bytes both ways, also those that came with its head",
          "[client][tunnel]") {
  Tunnelled t("GET / HTTP/1.1\r\n\r\n");
  t.world.run_until([&] { return t.world.origin.asked == "GET / HTTP/1.1\r\n\r\n"; });
  t.world.origin.say("hello");
  t.world.run_until([&] { return t.client.heard == "hello"; });
  t.client.say("CONNECT again");
  t.world.run_until([&] { return t.world.origin.asked == "CONNECT again"; });
  CHECK(t.world.world.stats.tunnels.get() == 1);
  CHECK(t.world.world.stats.tunnels_open.get() == 1);
  CHECK(t.world.records() == 0);
  CHECK_FALSE(t.client.connection().may_be_given_up());
}

TEST_CASE("each side of a tunnel ends by itself, and with both its record is made",
          "[client][tunnel]") {
  Tunnelled t;
  if (GENERATE(true, false)) {
    t.client.say("last");
    t.client.end();
    t.world.run_until([&] { return t.world.origin.ended; });
    CHECK(t.world.origin.asked == "last");
    CHECK(t.world.connections() == 1);
    t.world.origin.say("answer");
    t.world.run_until([&] { return t.client.heard == "answer"; });
    CHECK_FALSE(t.client.is_over());
    t.world.origin.end();
  } else {
    t.world.origin.say("answer");
    t.world.origin.end();
    t.world.run_until([&] { return t.client.ended; });
    CHECK(t.client.heard == "answer");
    CHECK(t.world.connections() == 1);
    t.client.say("last");
    t.world.run_until([&] { return t.world.origin.asked == "last"; });
    CHECK_FALSE(t.world.origin.ended);
    t.client.end();
  }
  t.world.run_until([&] { return t.world.connections() == 0; });
  t.world.run_until([&] { return t.client.ended && t.world.origin.ended; });
  CHECK_FALSE(t.client.was_reset);
  CHECK_FALSE(t.world.origin.was_reset);
  CHECK(t.world.ended_as(Outcome::kTunnel) == 1);
  CHECK(t.world.records() == 1);
  const WorkerStats& stats = t.world.world.stats;
  CHECK(stats.bytes_from_clients.get() == connect_to(t.world.origin.port()).size() + 4);
  CHECK(stats.bytes_to_origins.get() == 4);
  CHECK(stats.bytes_from_origins.get() == 6);
  CHECK(stats.bytes_to_clients.get() == kTunnelEstablished.size() + 6);
  CHECK(stats.tunnels_open.get() == 0);
}

TEST_CASE("what a client sends before its tunnel is there reaches the origin, and so does its end",
          "[client][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Client client(world);
  const std::string early = GENERATE(as<std::string>(), "", "early");
  client.say(connect_to(world.origin.port()) + early);
  client.end();
  world.run_until([&] { return world.origin.ended; });
  CHECK(world.origin.asked == early);
  world.origin.say("answer");
  world.run_until([&] { return client.heard.ends_with("answer"); });
  CHECK_FALSE(client.is_over());
}

TEST_CASE("a client's end that was read behind another request reaches the origin of its tunnel",
          "[client][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Client client(world);
  const std::string early = GENERATE(as<std::string>(), "", "early");
  const std::string host = "127.0.0.1:" + std::to_string(world.origin.port());
  client.say("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n" +
             connect_to(world.origin.port()) + early);
  client.end();
  world.run_until_asked();
  world.run_turns(5);
  world.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  world.run_until([&] { return client.heard.ends_with(kTunnelEstablished); });
  world.run_until([&] { return world.origin.accepted == 2 && world.origin.ended; });
  CHECK(world.origin.asked == early);
  world.origin.end();
  world.run_until([&] { return world.connections() == 0; });
  CHECK(client.ended);
  CHECK(world.ended_as(Outcome::kTunnel) == 1);
}

TEST_CASE("a side that breaks off breaks off the other", "[client][tunnel]") {
  Tunnelled t;
  SECTION("the origin") {
    t.world.origin.reset();
    t.world.run_until([&] { return t.client.is_over(); });
    CHECK(t.client.was_reset);
  }
  SECTION("the client") {
    t.client.reset();
    t.world.run_until([&] { return t.world.origin.ended || t.world.origin.was_reset; });
    CHECK(t.world.origin.was_reset);
  }
  SECTION("neither, but both are cut") {
    t.client.connection().cut();
    t.world.run_until([&] { return t.client.is_over(); });
    CHECK(t.client.was_reset);
  }
  t.world.run_until([&] { return t.world.connections() == 0; });
  CHECK(t.world.records() == 1);
  CHECK(t.world.world.stats.tunnels_open.get() == 0);
}

// More than reaches a shallow client who does not read, and little enough to be left to the kernel.
constexpr int kUndelivered = 60'000;

// A tunnel behind the reply to another request, in one packet with it.
struct Pipelined {
  explicit Pipelined(std::size_t reply_bytes)
      : world(config::Mode::kForward), client(world, Client::Shallow{2 * kUndelivered}) {
    client.reads = false;
    const std::string host = "127.0.0.1:" + std::to_string(world.origin.port());
    client.say("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n" +
               connect_to(world.origin.port()));
    world.run_until_asked();
    world.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                 std::to_string(reply_bytes) + "\r\n\r\n" + std::string(reply_bytes, 'x'));
  }
  void run_until_open() {
    world.run_until(
        [&] { return world.world.stats.tunnels.get() == 1 && world.origin.accepted == 2; });
  }
  // Returns the reply's content and all that came behind it.
  std::string content() const { return client.heard.substr(client.heard.find("\r\n\r\n") + 4); }
  ClientWorld world;
  Client client;
};

TEST_CASE("a tunnel that breaks takes nothing of the replies in front of it", "[client][tunnel]") {
  Pipelined t(kUndelivered);
  t.run_until_open();
  if (GENERATE(true, false)) {
    t.world.origin.reset();
  } else {
    t.client.connection().cut();
  }
  t.world.run_until([&] { return t.world.connections() == 0; });
  t.client.reads = true;
  t.world.run_until([&] { return t.client.is_over(); });
  CHECK(t.client.ended);
  CHECK((t.content() == std::string(kUndelivered, 'x') + std::string(kTunnelEstablished)));
  CHECK(t.world.ended_as(Outcome::kTunnel) + t.world.ended_as(Outcome::kDrained) == 1);
  CHECK(t.world.records() == 2);
}

TEST_CASE("a tunnel that breaks when the replies in front of it have come is seen to break",
          "[client][tunnel]") {
  Pipelined t(kUndelivered);
  t.client.reads = true;
  t.run_until_open();
  t.world.run_until([&] { return t.client.heard.ends_with(kTunnelEstablished); });
  if (GENERATE(true, false)) {
    t.world.origin.reset();
  } else {
    t.client.connection().cut();
  }
  t.world.run_until([&] { return t.client.is_over(); });
  CHECK(t.client.was_reset);
}

TEST_CASE("a client that is let go before its tunnel begins gets what it was sent",
          "[client][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Client client(world, Client::Shallow{});
  const std::string host = "127.0.0.1:" + std::to_string(world.origin.port());
  const std::string get = "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  const std::string body(2000, 'x');
  client.say(get);
  world.run_until_asked();
  world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
  world.run_until([&] { return client.heard.ends_with(body); });
  client.reads = false;
  // Hits that are gathered, more than the kernel takes.
  std::string many;
  for (int i = 0; i < 60; ++i) many += get;
  client.say(many + connect_to(world.origin.port()));
  world.run_turns(50);
  const std::uint64_t taken = world.ended_as(Outcome::kHit);
  REQUIRE(taken < 60);
  const std::uint64_t written = client.connection().stream().bytes_written();
  REQUIRE(written < 60 * body.size());
  client.connection().cut();
  world.run_turns(5);
  CHECK(world.ended_as(Outcome::kHit) == taken);
  REQUIRE(world.ended_as(Outcome::kDrained) == 60 - taken + 1);  // the tunnel was asked for
  client.reads = true;
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(client.heard.size() == written);
}

TEST_CASE("a tunnel in which nothing moves ends in time, one in which anything does goes on",
          "[client][tunnel]") {
  Tunnelled t;
  const Nanoseconds limit = config::Timeouts{}.tunnel_idle;
  t.world.run_turns(1);
  const MonotonicTime quiet_since = t.world.world.loop->now();
  switch (GENERATE(0, 1, 2)) {
    case 0:
      t.client.connection().check_timeouts(quiet_since + limit);
      t.world.run_until([&] { return t.client.ended; });
      CHECK(t.world.ended_as(Outcome::kTunnel) == 1);
      return;
    case 1:
      t.client.say("up");
      t.world.run_until([&] { return t.world.origin.asked == "up"; });
      break;
    default:
      t.world.origin.say("down");
      t.world.run_until([&] { return t.client.heard == "down"; });
      break;
  }
  t.client.connection().check_timeouts(quiet_since + limit);
  t.world.run_turns(10);
  CHECK_FALSE(t.client.is_over());
  CHECK(t.world.records() == 0);
}

TEST_CASE("what comes in the turn in which a tunnel ends is for nobody", "[client][tunnel]") {
  Tunnelled t;
  t.world.origin.say("too late");
  if (GENERATE(true, false)) {
    t.client.connection().check_timeouts(t.world.world.loop->now() +
                                         config::Timeouts{}.tunnel_idle);
  } else {
    t.client.connection().cut();
  }
  t.world.run_until([&] { return t.client.is_over(); });
  CHECK(t.client.heard.empty());
  CHECK(t.world.records() == 1);
}

TEST_CASE("a tunnel that is not to be had is refused, and its connection ends",
          "[client][tunnel]") {
  const RefusedTunnel row = GENERATE(from_range(kRefusedTunnels));
  CAPTURE(row.detail);
  ClientWorld world(config::Mode::kForward, [&](config::Config& config) {
    config.forward.private_destinations = row.destinations;
  });
  Client client(world);
  const auto port = static_cast<std::uint16_t>(world.origin.port() + row.port_off);
  if (!row.listens) world.origin.stop_listening();
  client.say(connect_to(port) + "GET / HTTP/1.1\r\n\r\n");
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(client.heard.starts_with("HTTP/1.1 " + std::to_string(row.status)));
  CHECK(client.heard.find(row.detail) != std::string::npos);
  CHECK(client.heard.find("Connection: close\r\n") != std::string::npos);
  CHECK(client.heard.rfind("HTTP/1.1 ") == 0);
  CHECK(world.ended_as(row.outcome) == 1);
  CHECK(world.records() == 1);
  CHECK(world.world.stats.tunnels.get() == 0);
}

// Until the kernel holds just so much of it that it takes no head behind it now.
constexpr std::size_t kFillMin = 2000;
constexpr std::size_t kFillMax = 10'000;
constexpr std::size_t kFillStep = 500;

TEST_CASE(
    "an answer to CONNECT for which the client's socket has no room yet comes whole, behind "
    "the replies in front of it",
    "[client][tunnel]") {
  const bool opens = GENERATE(true, false);
  std::size_t waited = 0;
  for (std::size_t fill = kFillMin; fill <= kFillMax; fill += kFillStep) {
    ClientWorld world(config::Mode::kForward);
    Client client(world, Client::Narrow{});
    client.reads = false;
    const std::string host = "127.0.0.1:" + std::to_string(world.origin.port());
    const auto port = static_cast<std::uint16_t>(world.origin.port() + (opens ? 0 : 1));
    client.say("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n" +
               connect_to(port));
    world.run_until_asked();
    world.origin.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                     std::to_string(fill) + "\r\n\r\n" + std::string(fill, 'x'));
    world.run_turns(20);
    if (world.world.stats.tunnels.get() == 0) ++waited;
    client.reads = true;
    if (opens) {
      world.run_until([&] { return world.world.stats.tunnels.get() == 1; });
      world.origin.say("hello");
      world.run_until([&] { return client.heard.ends_with("hello"); });
    } else {
      world.run_until([&] { return client.is_over(); });
    }
    const std::string rest = client.heard.substr(client.heard.find("\r\n\r\n") + 4 + fill);
    CAPTURE(fill, rest);
    if (opens) {
      REQUIRE(rest == std::string(kTunnelEstablished) + "hello");
    } else {
      REQUIRE(rest.starts_with("HTTP/1.1 403 "));
      REQUIRE(rest.find("encore: connect-port") != std::string::npos);
    }
    REQUIRE(world.ended_as(Outcome::kClientAborted) == 0);
  }
  CHECK(waited != 0);
}

TEST_CASE("a client that takes nothing of the answer to its CONNECT is let go in time",
          "[client][tunnel]") {
  std::size_t let_go = 0;
  for (std::size_t fill = kFillMin; fill <= kFillMax && let_go == 0; fill += kFillStep) {
    ClientWorld world(config::Mode::kForward);
    Client client(world, Client::Narrow{});
    client.reads = false;
    const std::string host = "127.0.0.1:" + std::to_string(world.origin.port());
    client.say("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n" +
               connect_to(world.origin.port()));
    world.run_until_asked();
    world.origin.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                     std::to_string(fill) + "\r\n\r\n" + std::string(fill, 'x'));
    world.run_until([&] { return world.origin.accepted == 2 || world.connections() == 0; });
    world.run_turns(20);
    // If it waits behind the reply itself, the reply's time counts.
    if (world.world.stats.tunnels.get() != 0 || world.records() != 1) continue;
    const MonotonicTime late = world.world.loop->now() + config::Timeouts{}.client_write;
    client.connection().check_timeouts(late);
    world.run_turns(5);
    CHECK(world.connections() == 0);
    CHECK(world.ended_as(Outcome::kClientAborted) == 1);
    ++let_go;
  }
  CHECK(let_go == 1);
}

TEST_CASE("a client that goes before its tunnel is there leaves one record", "[client][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Client client(world);
  client.say(connect_to(world.origin.port()));
  // The name and the connection take turns of their own.
  for (int i = GENERATE(1, 2); i > 0; --i) world.world.run_turn();
  REQUIRE(world.records() == 0);
  client.connection().cut();
  world.run_turns(20);
  CHECK(world.ended_as(Outcome::kDrained) == 1);
  CHECK(world.records() == 1);
  CHECK(world.world.stats.tunnels_open.get() == 0);
}

TEST_CASE("a reverse listener opens no tunnel", "[client][tunnel]") {
  ClientWorld world(config::Mode::kReverse);
  Client client(world);
  client.say(connect_to(world.origin.port()));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.heard.starts_with("HTTP/1.1 405 "));
  CHECK(world.ended_as(Outcome::kDenied) == 1);
  CHECK(world.origin.accepted == 0);
}

}  // namespace
}  // namespace encore::server
