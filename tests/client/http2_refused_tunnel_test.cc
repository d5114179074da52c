// Tunnels in streams that are not to be had: the answer, and the connection that goes on.
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/http2_tunnels.h"
#include "tests/client/refused_tunnels.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::headers;
using h2::test::rst;
using h2::test::setting;
using h2::test::window;

// A name server that says nothing, or that there is no such name.
class SilentNameServer {
 public:
  SilentNameServer() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    socklen_t size = sizeof name;
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    address = local_target(ntohs(name.sin_port));
  }
  // Answers what has come; how much that was.
  int deny() {
    char question[512];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    int denied = 0;
    for (;;) {
      const ssize_t got = ::recvfrom(socket_.get(), question, sizeof question, 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 4) return denied;
      question[2] = '\x81';  // a response, by a server that recurses: no such name
      question[3] = '\x83';
      REQUIRE(::sendto(socket_.get(), question, static_cast<std::size_t>(got), 0,
                       reinterpret_cast<const sockaddr*>(&from), size) == got);
      ++denied;
    }
  }

  std::string address;

 private:
  net::Socket socket_;
};

std::string connect_to_name(h2::StreamId stream, std::uint16_t port) {
  return headers(stream,
                 {{":method", "CONNECT"}, {":authority", "no.example:" + std::to_string(port)}},
                 false);
}

TEST_CASE("a tunnel in a stream that is not to be had is refused, and its connection goes on",
          "[client][http2][tunnel]") {
  const RefusedTunnel row = GENERATE(from_range(kRefusedTunnels));
  CAPTURE(row.detail);
  ClientWorld world(config::Mode::kForward, [&](config::Config& config) {
    config.forward.private_destinations = row.destinations;
  });
  world.keep_records();
  Http2Client client(world);
  if (!row.listens) world.origin.stop_listening();
  const auto port = static_cast<std::uint16_t>(world.origin.port() + row.port_off);
  client.greet(connect_frame(1, port));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == std::to_string(row.status));
  CHECK(client.content(1).find("\nencore: " + std::string(row.detail)) != std::string::npos);
  CHECK_FALSE(client.is_over());
  auto record = world.record();
  CHECK(record["outcome"] == to_string(row.outcome));
  CHECK(record["status"] == row.status);
  CHECK(record["detail"] == row.detail);
  CHECK(record["body_bytes"] == client.content(1).size());
  CHECK(record["bytes"] == client.bytes_of(1));
  CHECK_FALSE(record.contains("origin"));
  CHECK(world.records() == 1);
  CHECK(world.world.stats.tunnels.get() == 0);
  CHECK(world.world.stats.tunnels_open.get() == 0);
  // The rest of what the client might have said is refused with the stream.
  world.run_turns(3);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
  CHECK(client.connection().may_be_given_up());
}

TEST_CASE("a CONNECT that comes in a circle is refused", "[client][http2][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  world.keep_records();
  Http2Client client(world);
  client.greet(connect_frame(1, world.origin.port(),
                             {{"via", "1.1 " + std::string(world.world.runtime->pseudonym)}}));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == "508");
  CHECK(world.record()["outcome"] == "loop");
  CHECK(world.record()["detail"] == "loop");
  CHECK(world.record()["status"] == 508);
  CHECK(world.origin.accepted == 0);
}

TEST_CASE("an answer to a refused tunnel waits for its window, and takes what the client says",
          "[client][http2][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  world.keep_records();
  Http2Client client(world);
  const auto port = static_cast<std::uint16_t>(world.origin.port() + 1);
  client.greet(setting(h2::Setting::kInitialWindowSize, 0) + window(0, 1 << 20) +
               connect_frame(1, port));
  world.run_until([&] { return client.status(1) == "403"; });
  CHECK(world.records() == 1);
  CHECK(client.content(1).empty());
  SECTION("it comes") {
    say_data(world, client, 1, letters(200'000));
    world.run_until([&] { return window_opened(client, 1) != 0; });
    client.say(window(1, 1000));
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.content(1).starts_with("403 Forbidden\nencore: connect-port"));
  }
  SECTION("the client resets it") {
    client.say(rst(1));
    world.run_turns(5);
    CHECK_FALSE(client.was_stream_reset(1));
  }
  SECTION("its time means nothing") {
    client.connection().check_timeouts(world.world.loop->now() + std::chrono::seconds(20));
    world.run_turns(5);
    CHECK_FALSE(client.was_stream_reset(1));
    client.say(rst(1));
    world.run_turns(5);
  }
  SECTION("the client ends its side") {
    client.end();
    world.run_until([&] { return client.was_stream_reset(1); });
    CHECK(reset_code(client, 1) == h2::ErrorCode::kCancel);
    world.run_until([&] { return world.connections() == 0; });
  }
  world.run_turns(3);
  CHECK(world.records() == 1);
  CHECK(world.ended_as(Outcome::kDenied) == 1);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
  CHECK(world.transfer_memory.bytes() == 0);
}

TEST_CASE("a tunnel in a stream that ends before it is there leaves one record",
          "[client][http2][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  world.keep_records();
  Http2Client client(world);
  const std::string open = connect_frame(1, world.origin.port());
  std::string outcome = "client-aborted";
  SECTION("by its client") { client.greet(open + rst(1)); }
  SECTION("by its connection") {
    client.greet(open);
    while (world.world.stats.http2_streams.get() == 0) world.world.run_turn();
    REQUIRE(world.records() == 0);
    client.connection().cut();
    outcome = "drained";
  }
  world.run_until([&] { return world.records() == 1; });
  world.run_turns(20);
  CHECK(world.record()["outcome"] == outcome);
  CHECK(world.record()["status"] == 0);
  CHECK(world.record()["bytes"] == 0);
  CHECK_FALSE(world.record().contains("origin"));
  CHECK(world.records() == 1);
  CHECK(world.world.stats.tunnels.get() == 0);
  CHECK(world.world.stats.tunnels_open.get() == 0);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
}

TEST_CASE("a tunnel whose name nobody answers for is refused in time", "[client][http2][tunnel]") {
  SilentNameServer names;
  ClientWorld world(config::Mode::kForward, [&](config::Config& config) {
    config.upstream.nameservers = {names.address};
    config.timeouts.dns = std::chrono::milliseconds(900);
  });
  world.keep_records();
  Http2Client client(world);
  client.greet();
  world.run_until([&] { return !client.frames().empty(); });
  const MonotonicTime before = world.world.loop->now();
  client.say(connect_to_name(1, world.origin.port()));
  while (world.world.stats.http2_streams.get() == 0) world.world.run_turn();
  client.connection().check_timeouts(before + std::chrono::milliseconds(900) - Nanoseconds(1));
  world.run_turns(3);
  REQUIRE(client.status(1).empty());
  client.connection().check_timeouts(world.world.loop->now() + std::chrono::milliseconds(900));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == "504");
  CHECK(world.record()["outcome"] == "origin-timeout");
  CHECK(world.record()["detail"] == "dns-timeout");
  CHECK(world.record()["status"] == 504);
  // An answer that comes now is for nobody.
  CHECK(names.deny() != 0);
  world.run_turns(20);
  CHECK(world.records() == 1);
}

TEST_CASE("a tunnel to a name that is none is refused", "[client][http2][tunnel]") {
  SilentNameServer names;
  ClientWorld world(config::Mode::kForward,
                    [&](config::Config& config) { config.upstream.nameservers = {names.address}; });
  world.keep_records();
  Http2Client client(world);
  client.greet(connect_to_name(1, world.origin.port()));
  world.run_until([&] {
    (void)names.deny();
    return client.has_end(1);
  });
  CHECK(client.status(1) == "502");
  CHECK(world.record()["outcome"] == "origin-unreachable");
  CHECK(world.record()["detail"] == "dns-not-found");
  CHECK(world.record()["status"] == 502);
  CHECK(world.ended_as(Outcome::kOriginUnreachable) == 1);
}

// Another proxy is asked for the tunnel: the origin of these tests plays it.
TEST_CASE("a tunnel goes by way of a parent", "[client][http2][tunnel]") {
  std::uint16_t port = 0;
  ClientWorld world(config::Mode::kForward, [&](config::Config& config) {
    port = static_cast<std::uint16_t>(config.forward.connect_ports.front());
    config.forward.parent = "http://" + local_target(port);
  });
  world.keep_records();
  Http2Client client(world);
  client.greet(connect_to_name(1, port));
  world.run_until_asked();
  const std::string target = "no.example:" + std::to_string(port);
  CHECK(world.origin.asked ==
        "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nVia: 2.0 encore-test\r\n\r\n");
  CHECK(client.status(1).empty());
  SECTION("that opens it") {
    world.origin.say("HTTP/1.1 200 OK\r\n\r\nfirst");
    world.run_until([&] { return client.content(1) == "first"; });
    CHECK(client.status(1) == "200");
    client.say(data(1, "up"));
    world.run_until([&] { return world.origin.asked == "up"; });
    CHECK(world.world.stats.tunnels_open.get() == 1);
  }
  SECTION("that it comes back from") {
    world.origin.say("HTTP/1.1 508 Loop Detected\r\n\r\n");
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.status(1) == "508");
    CHECK(world.record()["outcome"] == "loop");
    CHECK(world.record()["detail"] == "loop");
    CHECK(world.record()["status"] == 508);
    CHECK(world.world.stats.tunnels.get() == 0);
  }
  SECTION("that refuses it") {
    world.origin.say("HTTP/1.1 403 Forbidden\r\n\r\n");
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.status(1) == "502");
    CHECK(world.record()["outcome"] == "origin-unreachable");
    CHECK(world.record()["status"] == 502);
    CHECK(world.world.stats.tunnels.get() == 0);
  }
}

TEST_CASE("a reverse listener opens no tunnel in a stream", "[client][http2][tunnel]") {
  ClientWorld world;
  world.keep_records();
  Http2Client client(world);
  client.greet(connect_frame(1, world.origin.port()));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == "405");
  CHECK(world.record()["outcome"] == "denied");
  CHECK(world.record()["status"] == 405);
  CHECK(world.record()["bytes"] == client.bytes_of(1));
  CHECK(world.origin.accepted == 0);
  CHECK_FALSE(client.is_over());
}

}  // namespace
}  // namespace encore::server
