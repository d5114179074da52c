// Another protocol in a stream of HTTP/2 (RFC 8441), to an origin that speaks HTTP/1.1.
#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/http2_tunnels.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::rst;

std::string switch_frame(h2::StreamId stream, std::string_view protocol = "websocket",
                         const h2::test::FieldList& more = {}) {
  h2::test::FieldList fields = {{":method", "CONNECT"}, {":protocol", std::string(protocol)},
                                {":scheme", "http"},    {":authority", "a.example"},
                                {":path", "/chat"},     {"sec-websocket-version", "13"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return h2::test::headers(stream, fields, false);
}

constexpr std::string_view kSwitches =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Accept: yes\r\n\r\n";

// A client whose request for another protocol the origin has.
struct AskedToSwitch {
  explicit AskedToSwitch(const std::function<void(config::Config&)>& change = {},
                         std::string_view behind = {})
      : world(config::Mode::kReverse, change), client(world) {
    world.keep_records();
    client.greet(switch_frame(1) + std::string(behind));
    world.run_until_asked();
  }
  WorkerStats& stats() { return world.world.stats; }
  std::string value(std::string_view name) {
    for (const auto& each : client.frames()) {
      if (each.header.stream != 1) continue;
      for (const auto& [field, text] : each.fields) {
        if (field == name) return text;
      }
    }
    return "none";
  }
  void open(std::string_view behind = {}) {
    opened_after = world.world.loop->now();
    world.origin.say(std::string(kSwitches) + std::string(behind));
    world.run_until([&] { return client.status(1) == "200"; });
  }
  void check_over() {
    world.run_turns(3);
    CHECK(world.records() == 1);
    CHECK(stats().upgrades_open.get() == 0);
    CHECK(stats().tunnels_open.get() == 0);
    CHECK(stats().http2_streams_open.get() == 0);
    CHECK(stats().origin_connections.get() == 0);
    CHECK(client.connection().may_be_given_up());
    CHECK_FALSE(client.is_over());
  }

  ClientWorld world;
  Http2Client client;
  MonotonicTime opened_after{};
};

// Returns the key that the origin was asked with; empty: none.
std::string key_in(std::string_view asked) {
  constexpr std::string_view kName = "\r\nsec-websocket-key: ";
  const std::size_t at = asked.find(kName);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + kName.size();
  return std::string(asked.substr(begin, asked.find("\r\n", begin) - begin));
}

TEST_CASE("an origin is asked for another protocol as HTTP/1.1 has it",
          "[client][http2][websocket]") {
  AskedToSwitch a;
  const std::string asked = a.world.origin.asked;
  CHECK(asked.starts_with("GET /chat HTTP/1.1\r\nHost: a.example\r\n"));
  CHECK(asked.find("\r\nConnection: upgrade\r\nUpgrade: websocket\r\n") != std::string::npos);
  CHECK(asked.find("\r\nsec-websocket-version: 13\r\n") != std::string::npos);
  CHECK(asked.find("Transfer-Encoding") == std::string::npos);
  // 16 bytes in base64, others each time.
  const std::string key = key_in(asked);
  REQUIRE(key.size() == 24);
  CHECK(key.ends_with("=="));
  CHECK(key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
        22);
  // 128 bits fill 21 digits, and two bits of the last.
  CHECK(std::string_view("AQgw").find(key[21]) != std::string_view::npos);
  a.open();
  a.client.say(switch_frame(3));
  a.world.run_until([&] { return a.world.origin.accepted == 2; });
  a.world.run_until_asked();
  CHECK(key_in(a.world.origin.asked).size() == 24);
  CHECK(key_in(a.world.origin.asked) != key);
}

TEST_CASE("a key is made for the protocol that wants one alone", "[client][http2][websocket]") {
  const bool is_websocket = GENERATE(true, false);
  ClientWorld world;
  Http2Client client(world);
  client.greet(switch_frame(1, is_websocket ? "WebSocket" : "raw"));
  world.run_until_asked();
  CHECK(key_in(world.origin.asked).empty() == !is_websocket);
}

TEST_CASE("a stream that has gone over to another protocol passes bytes both ways",
          "[client][http2][websocket]") {
  AskedToSwitch a;
  CHECK(a.stats().upgrades.get() == 0);
  a.open("first");
  CHECK(a.value("sec-websocket-accept") == "yes");
  CHECK(a.value("connection") == "none");
  CHECK(a.value("upgrade") == "none");
  a.world.run_until([&] { return a.client.content(1) == "first"; });
  a.client.say(data(1, "up"));
  a.world.run_until([&] { return a.world.origin.asked == "up"; });
  a.world.origin.say("down");
  a.world.run_until([&] { return a.client.content(1) == "firstdown"; });
  CHECK(a.stats().upgrades.get() == 1);
  CHECK(a.stats().upgrades_open.get() == 1);
  CHECK(a.stats().tunnels.get() == 0);
  CHECK(a.stats().tunnels_open.get() == 0);
  CHECK(a.stats().http2_streams.get() == 1);
  CHECK(a.stats().origin_connections.get() == 1);
  CHECK(a.world.records() == 0);
  CHECK_FALSE(a.client.connection().may_be_given_up());
  if (GENERATE(true, false)) {
    a.client.say(data(1, "", true));
    a.world.run_until([&] { return a.world.origin.ended; });
    CHECK_FALSE(a.client.has_end(1));
    a.world.origin.end();
    a.world.run_until([&] { return a.client.has_end(1); });
  } else {
    a.world.origin.end();
    a.world.run_until([&] { return a.client.has_end(1); });
    CHECK(a.world.records() == 0);
    a.client.say(data(1, "", true));
    a.world.run_until([&] { return a.world.origin.ended; });
  }
  a.world.run_until([&] { return a.world.records() == 1; });
  auto record = a.world.record();
  CHECK(record["outcome"] == "upgrade");
  CHECK(record["status"] == 101);
  CHECK(record["method"] == "GET");
  CHECK(record["bytes"] == a.client.bytes_of(1));
  CHECK(record["origin"] == local_target(a.world.origin.port()));
  CHECK_FALSE(a.client.was_stream_reset(1));
  a.check_over();
}

TEST_CASE("what is said before the origin has gone over reaches it behind that",
          "[client][http2][websocket]") {
  const std::string early = GENERATE(as<std::string>(), "", "early");
  const bool ends = GENERATE(true, false);
  AskedToSwitch a({}, early.empty() && !ends ? std::string() : data(1, early, ends));
  a.world.run_turns(5);
  CHECK(a.world.origin.asked.ends_with("\r\n\r\n"));
  CHECK_FALSE(a.world.origin.ended);
  a.open();
  a.world.run_until([&] { return a.world.origin.asked == early && a.world.origin.ended == ends; });
  a.world.run_turns(5);
  CHECK(a.world.origin.ended == ends);
  a.world.origin.say("answer");
  a.world.run_until([&] { return a.client.content(1) == "answer"; });
  a.world.origin.end();
  if (!ends) a.client.say(data(1, "", true));
  a.world.run_until([&] { return a.world.records() == 1; });
  CHECK(a.world.record()["outcome"] == "upgrade");
  a.check_over();
}

TEST_CASE("a record of another protocol counts what its client has sent behind the request",
          "[client][http2][websocket]") {
  AskedToSwitch a;
  a.world.answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  a.world.run_until([&] { return a.world.records() == 1; });
  a.client.say(switch_frame(3));
  a.world.run_until_asked();
  a.world.origin.say(kSwitches);
  a.world.run_until([&] { return a.client.status(3) == "200"; });
  a.client.say(data(3, "six by", true));
  a.world.run_until([&] { return a.world.origin.ended; });
  a.world.origin.end();
  a.world.run_until([&] { return a.world.records() == 2; });
  const auto bytes_of = [&](std::size_t number) {
    return a.world.record(number)["request_bytes"].get<std::uint64_t>();
  };
  CHECK(bytes_of(1) == bytes_of(0) + 6);
}

TEST_CASE("an origin that answers otherwise is passed on", "[client][http2][websocket]") {
  AskedToSwitch a({}, data(1, "for nobody"));
  a.world.run_turns(3);
  a.world.origin.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  a.world.run_until([&] { return a.client.has_end(1); });
  CHECK(a.client.status(1) == "403");
  CHECK(a.client.content(1) == "no");
  a.world.run_until([&] { return a.world.records() == 1; });
  CHECK(a.world.record()["status"] == 403);
  CHECK(a.world.record()["body_bytes"] == 2);
  CHECK(a.world.record()["bytes"] == a.client.bytes_of(1));
  a.world.run_turns(3);
  CHECK(a.stats().upgrades.get() == 0);
  CHECK(a.stats().http2_streams_open.get() == 0);
  CHECK(a.client.connection().may_be_given_up());
}

TEST_CASE("the content of a request for another protocol is taken behind another answer",
          "[client][http2][websocket]") {
  AskedToSwitch a(
      {}, h2::test::setting(h2::Setting::kInitialWindowSize, 0) + h2::test::window(0, 1 << 20));
  const std::string early = letters(60'000);
  say_data(a.world, a.client, 1, early);
  a.world.origin.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  a.world.run_until([&] { return a.client.status(1) == "403"; });
  say_data(a.world, a.client, 1, letters(100'000));
  a.world.run_until([&] { return window_opened(a.client, 1) != 0; });
  CHECK(a.client.content(1).empty());
  a.client.say(h2::test::window(1, 2));
  a.world.run_until([&] { return a.client.has_end(1); });
  CHECK(a.client.content(1) == "no");
}

TEST_CASE("a request for another protocol that ends before its answer leaves one record",
          "[client][http2][websocket]") {
  AskedToSwitch a;
  SECTION("by a reset of its client") {
    a.client.say(rst(1));
    a.world.run_until([&] { return a.world.records() == 1; });
    CHECK(a.world.record()["outcome"] == "client-aborted");
    CHECK_FALSE(a.client.was_stream_reset(1));
    a.check_over();
  }
  SECTION("by its client's end") {
    a.client.end();
    a.world.run_until([&] { return a.client.was_stream_reset(1); });
    CHECK(a.world.record()["detail"] == "unfinished-request");
  }
  SECTION("by its connection") {
    a.client.connection().cut();
    CHECK(a.world.record()["outcome"] == "drained");
    CHECK(a.world.connections() == 0);
  }
  a.world.run_turns(5);
  CHECK(a.world.records() == 1);
  CHECK(a.world.record()["status"] == 0);
  CHECK(a.stats().upgrades.get() == 0);
  CHECK(a.stats().http2_streams_open.get() == 0);
}

TEST_CASE("a stream of another protocol that breaks is reset, and its record says so",
          "[client][http2][websocket]") {
  AskedToSwitch a;
  a.open("first");
  a.world.run_until([&] { return a.client.content(1) == "first"; });
  bool by_client = false;
  SECTION("by its origin") {
    a.world.origin.reset();
    a.world.run_until([&] { return a.client.was_stream_reset(1); });
    CHECK(reset_code(a.client, 1) == h2::ErrorCode::kConnectError);
  }
  SECTION("by its origin, as a write finds") {
    const net::FailCalls broken(net::FailCalls::Call::kSend, 0, EPIPE);
    a.client.say(data(1, "up"));
    a.world.run_until([&] { return a.client.was_stream_reset(1); });
    CHECK(reset_code(a.client, 1) == h2::ErrorCode::kConnectError);
  }
  SECTION("by its client") {
    a.client.say(rst(1));
    a.world.run_until([&] { return a.world.origin.ended || a.world.origin.was_reset; });
    by_client = true;
  }
  CHECK(a.world.record()["outcome"] == (by_client ? "client-aborted" : "upgrade"));
  CHECK(a.world.record()["status"] == 101);
  CHECK(a.world.record()["bytes"] == a.client.bytes_of(1));
  a.check_over();
}

TEST_CASE("a stream of another protocol has an idle limit of its own",
          "[client][http2][websocket]") {
  using std::chrono::minutes;
  AskedToSwitch a([](config::Config& config) {
    config.timeouts.upgrade_idle = minutes(7);
    config.timeouts.tunnel_idle = minutes(3);
    config.timeouts.client_idle = Nanoseconds(0);
  });
  a.open();
  a.client.connection().check_timeouts(a.opened_after + minutes(7) - Nanoseconds(1));
  a.world.run_turns(5);
  REQUIRE_FALSE(a.client.was_stream_reset(1));
  a.client.connection().check_timeouts(a.world.world.loop->now() + minutes(7));
  a.world.run_until([&] { return a.client.was_stream_reset(1) && a.world.origin.ended; });
  CHECK(reset_code(a.client, 1) == h2::ErrorCode::kCancel);
  CHECK(a.world.record()["outcome"] == "upgrade");
  CHECK(a.world.record()["status"] == 101);
  a.check_over();
}

TEST_CASE("a stream of another protocol that a reload no longer allows is cut",
          "[client][http2][websocket]") {
  config::Config changed;
  AskedToSwitch a([&](config::Config& config) { changed = config; });
  const bool is_open = GENERATE(true, false);
  if (is_open) a.open();
  config::Rule rule;
  rule.path = {"/chat"};
  rule.deny = 403;
  changed.rule = {rule};
  a.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(a.client.connection().revoke());
  CHECK(a.client.connection().is_revoked());
  a.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  a.world.run_until([&] { return a.client.was_stream_reset(1); });
  CHECK(reset_code(a.client, 1) == h2::ErrorCode::kCancel);
  CHECK(a.world.record()["outcome"] == "denied");
  CHECK(a.world.record()["detail"] == "revoked");
  CHECK(a.world.record()["status"] == (is_open ? 101 : 0));
  CHECK_FALSE(a.client.connection().is_revoked());
  CHECK(a.stats().connections_revoked.get() == 1);
  a.check_over();
}

TEST_CASE("a request for another protocol that is not to be had is refused",
          "[client][http2][websocket]") {
  ClientWorld world(config::Mode::kReverse, [](config::Config& config) {
    config.origin.front().host = "a.example";
    config.limits.uri_bytes = 1000;
  });
  world.keep_records();
  Http2Client client(world);
  SECTION("no server is there") {
    world.origin.stop_listening();
    client.greet(switch_frame(1));
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.status(1) == "502");
    CHECK(world.record()["outcome"] == "origin-unreachable");
  }
  SECTION("no route leads there") {
    h2::test::FieldList fields = {{":method", "CONNECT"},
                                  {":protocol", "websocket"},
                                  {":scheme", "http"},
                                  {":authority", "b.example"},
                                  {":path", "/chat"}};
    client.greet(h2::test::headers(1, fields, false));
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.status(1) == "404");
    CHECK(world.record()["outcome"] == "no-route");
    CHECK(world.record()["bytes"] == client.bytes_of(1));
  }
  world.run_turns(3);
  CHECK(world.records() == 1);
  CHECK(world.world.stats.upgrades.get() == 0);
  CHECK(world.world.stats.http2_streams.get() == 1);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
  CHECK(client.connection().may_be_given_up());
}

TEST_CASE("in a drain a request for another protocol is answered, and its connection drains",
          "[client][http2][websocket]") {
  ClientWorld world;
  Http2Client client(world);
  client.greet();
  world.run_until([&] { return !client.frames().empty(); });
  world.world.draining = true;
  client.say(switch_frame(1));
  world.run_until_asked();
  world.run_until([&] {
    return std::ranges::any_of(client.frames(), [](const h2::test::SentFrame& each) {
      return each.header.type == h2::FrameType::kGoAway;
    });
  });
  world.origin.say(kSwitches);
  world.run_until([&] { return client.status(1) == "200"; });
}

}  // namespace
}  // namespace encore::server
