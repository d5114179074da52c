// CONNECT in a stream of HTTP/2, from its 200 to the end of both sides.
#include "proxy/client/http2_tunnel.h"

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/http2_tunnels.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::rst;
using h2::test::setting;
using h2::test::window;

constexpr std::uint32_t kWideWindow = 1 << 24;
constexpr std::uint64_t kHeldBytesMax = 64 * 1024;

std::string first_window(std::uint32_t bytes) {
  return setting(h2::Setting::kInitialWindowSize, bytes) + window(0, kWideWindow);
}

TEST_CASE("a tunnel in a stream passes bytes both ways", "[client][http2][tunnel]") {
  Http2Tunnelled t;
  CHECK(t.client.content(1).empty());
  t.client.say(data(1, "up"));
  t.world.run_until([&] { return t.world.origin.asked == "up"; });
  t.world.origin.say("hello");
  t.world.run_until([&] { return t.client.content(1) == "hello"; });
  t.client.say(data(1, "more"));
  t.world.run_until([&] { return t.world.origin.asked == "more"; });
  CHECK(t.stats().tunnels.get() == 1);
  CHECK(t.stats().tunnels_open.get() == 1);
  CHECK(t.stats().upgrades.get() == 0);
  CHECK(t.stats().http2_streams.get() == 1);
  CHECK(t.stats().http2_streams_open.get() == 1);
  CHECK(t.stats().bytes_to_origins.get() == 6);
  CHECK(t.stats().bytes_from_origins.get() == 5);
  CHECK(t.world.records() == 0);
  CHECK_FALSE(t.client.connection().may_be_given_up());
  CHECK_FALSE(t.client.has_end(1));
}

TEST_CASE("each side of a tunnel in a stream ends by itself, and with both its record is made",
          "[client][http2][tunnel]") {
  Http2Tunnelled t;
  if (GENERATE(true, false)) {
    t.client.say(data(1, "last", true));
    t.world.run_until([&] { return t.world.origin.ended; });
    CHECK(t.world.origin.asked == "last");
    t.world.origin.say("answer");
    t.world.run_until([&] { return t.client.content(1) == "answer"; });
    CHECK_FALSE(t.client.has_end(1));
    CHECK(t.world.records() == 0);
    t.world.origin.end();
  } else {
    t.world.origin.say("answer");
    t.world.origin.end();
    t.world.run_until([&] { return t.client.has_end(1); });
    CHECK(t.client.content(1) == "answer");
    CHECK(t.world.records() == 0);
    t.client.say(data(1, "last"));
    t.world.run_until([&] { return t.world.origin.asked == "last"; });
    CHECK_FALSE(t.world.origin.ended);
    t.client.say(data(1, "", true));
  }
  t.world.run_until([&] { return t.world.records() == 1; });
  t.world.run_until([&] { return t.world.origin.ended && t.client.has_end(1); });
  CHECK_FALSE(t.world.origin.was_reset);
  CHECK_FALSE(t.client.was_stream_reset(1));
  auto record = t.world.record();
  CHECK(record["outcome"] == "tunnel");
  CHECK(record["method"] == "CONNECT");
  CHECK(record["version"] == "HTTP/2");
  CHECK(record["status"] == 200);
  CHECK(record["bytes"] == t.client.bytes_of(1));
  CHECK(record["body_bytes"] == 0);
  CHECK(record["origin"] == local_target(t.world.origin.port()));
  CHECK(record.contains("connect_us"));
  CHECK(record.contains("first_byte_us"));
  CHECK(t.stats().bytes_to_clients.get() == t.client.bytes_of(1));
  t.check_over();
}

TEST_CASE("a tunnel's record counts what its client has sent into it", "[client][http2][tunnel]") {
  Http2Tunnelled t;
  t.client.say(data(1, "", true));
  t.world.run_until([&] { return t.world.origin.ended; });
  t.world.origin.end();
  t.world.run_until([&] { return t.world.records() == 1; });
  t.client.say(connect_frame(3, t.world.origin.port()));
  t.world.run_until([&] { return t.client.status(3) == "200" && t.world.origin.accepted == 2; });
  t.client.say(data(3, "six by", true));
  t.world.run_until([&] { return t.world.origin.ended; });
  t.world.origin.end();
  t.world.run_until([&] { return t.world.records() == 2; });
  const auto bytes_of = [&](std::size_t number) {
    return t.world.record(number)["request_bytes"].get<std::uint64_t>();
  };
  CHECK(bytes_of(1) == bytes_of(0) + 6);
}

TEST_CASE("what a client sends before its tunnel in a stream is there reaches the origin",
          "[client][http2][tunnel]") {
  ClientWorld world(config::Mode::kForward);
  Http2Client client(world);
  const std::string early = GENERATE(as<std::string>(), "", "early");
  const bool ends = GENERATE(true, false);
  if (early.empty() && !ends) return;
  client.greet(connect_frame(1, world.origin.port()) + data(1, early, ends));
  world.run_until([&] {
    return world.origin.accepted == 1 && world.origin.asked == early && world.origin.ended == ends;
  });
  world.origin.say("answer");
  world.run_until([&] { return client.content(1) == "answer"; });
  world.run_turns(3);
  CHECK(world.origin.ended == ends);
  CHECK_FALSE(client.has_end(1));
}

TEST_CASE("a tunnel in a stream that its client resets ends at the origin",
          "[client][http2][tunnel]") {
  Http2Tunnelled t;
  const bool has_content = GENERATE(true, false);
  if (has_content) {
    t.world.origin.say("hello");
    t.world.run_until([&] { return t.client.content(1) == "hello"; });
  }
  t.client.say(rst(1));
  t.world.run_until([&] { return t.world.origin.ended || t.world.origin.was_reset; });
  auto record = t.world.record();
  CHECK(record["outcome"] == "client-aborted");
  CHECK(record["detail"] == "reset");
  CHECK(record["status"] == 200);
  CHECK(record["bytes"] == t.client.bytes_of(1));
  CHECK_FALSE(t.client.was_stream_reset(1));
  CHECK(t.stats().http2_streams_reset.get() == 1);
  t.check_over();
}

TEST_CASE("a tunnel in a stream whose origin breaks off is reset as RFC 9113 has it",
          "[client][http2][tunnel]") {
  Http2Tunnelled t;
  SECTION("by a reset") { t.world.origin.reset(); }
  SECTION("by an error of a write") {
    const net::FailCalls broken(net::FailCalls::Call::kSend, 0, EPIPE);
    t.client.say(data(1, "up"));
    t.world.run_until([&] { return broken.failed(); });
  }
  t.world.run_until([&] { return t.client.was_stream_reset(1); });
  CHECK(reset_code(t.client, 1) == h2::ErrorCode::kConnectError);
  CHECK(t.world.record()["outcome"] == "tunnel");
  CHECK(t.world.record()["status"] == 200);
  CHECK(t.world.record()["bytes"] == t.client.bytes_of(1));
  CHECK(t.stats().bytes_to_origins.get() == 0);
  t.check_over();
}

TEST_CASE("an origin whose socket takes nothing now gets it later", "[client][http2][tunnel]") {
  Http2Tunnelled t;
  const bool ends = GENERATE(true, false);
  {
    const net::FailCalls full(net::FailCalls::Call::kSend, 0, EAGAIN);
    t.client.say(data(1, "up", ends));
    t.world.run_until([&] { return full.failed(); });
  }
  t.world.run_until([&] { return t.world.origin.asked == "up" && t.world.origin.ended == ends; });
  t.world.run_turns(3);
  CHECK(t.world.origin.ended == ends);
  CHECK(t.stats().bytes_to_origins.get() == 2);
  CHECK(t.world.records() == 0);
}

TEST_CASE("a window that shuts holds a tunnel's bytes until it opens again",
          "[client][http2][tunnel]") {
  Http2Tunnelled t({}, first_window(100));
  const std::string text = letters(300);
  t.world.origin.say(text);
  t.world.run_until([&] { return t.client.content(1).size() == 100; });
  t.world.run_turns(3);
  CHECK(t.client.content(1) == text.substr(0, 100));
  CHECK(t.world.transfer_memory.bytes() == 200);
  t.client.say(window(1, 150));
  t.world.run_until([&] { return t.client.content(1).size() == 250; });
  t.world.run_turns(3);
  CHECK(t.client.content(1) == text.substr(0, 250));
  CHECK(t.world.transfer_memory.bytes() == 50);
  SECTION("it opens wide") {
    t.client.say(window(1, 1000));
    t.world.run_until([&] { return t.client.content(1) == text; });
    t.world.run_turns(3);
    CHECK(t.world.transfer_memory.bytes() == 0);
    t.world.origin.say("more");
    t.world.run_until([&] { return t.client.content(1) == text + "more"; });
  }
  SECTION("the origin's end comes behind them") {
    t.world.origin.end();
    t.client.say(data(1, "", true));
    t.world.run_until([&] { return t.world.origin.ended; });
    t.world.run_turns(3);
    CHECK_FALSE(t.client.has_end(1));
    CHECK(t.world.records() == 0);
    t.client.say(window(1, 1000));
    t.world.run_until([&] { return t.client.has_end(1); });
    CHECK(t.client.content(1) == text);
    CHECK(t.world.record()["bytes"] == t.client.bytes_of(1));
    t.check_over();
  }
  SECTION("the client resets the stream, and they are free") {
    t.client.say(rst(1));
    t.world.run_until([&] { return t.world.records() == 1; });
    CHECK(t.world.record()["bytes"] == t.client.bytes_of(1));
    t.check_over();
  }
}

TEST_CASE("a tunnel reads no more of its origin than it may hold", "[client][http2][tunnel]") {
  Http2Tunnelled t({}, first_window(0));
  const std::string text = letters(200'000);
  std::string_view left = text;
  for (int i = 0; i < 20 && !left.empty(); ++i) {
    left.remove_prefix(t.world.origin.offer(left));
    t.world.run_turns(3);
  }
  CHECK(t.stats().bytes_from_origins.get() == kHeldBytesMax);
  CHECK(t.world.transfer_memory.bytes() == kHeldBytesMax);
  t.client.say(window(1, 1000));
  t.world.run_until([&] { return t.stats().bytes_from_origins.get() == kHeldBytesMax + 1000; });
  t.client.say(window(1, kWideWindow));
  t.world.run_until([&] {
    left.remove_prefix(t.world.origin.offer(left));
    return t.client.content(1).size() == text.size();
  });
  CHECK((t.client.content(1) == text));
  CHECK(t.stats().bytes_from_origins.get() == text.size());
}

TEST_CASE("what a tunnel has passed to its origin opens its client's window",
          "[client][http2][tunnel]") {
  Http2Tunnelled t;
  const std::string text = letters(200'000);
  std::string heard;
  const auto take = [&] { heard += std::exchange(t.world.origin.asked, {}); };
  say_data(t.world, t.client, 1, text);
  t.world.run_until([&] {
    take();
    return heard.size() == text.size();
  });
  CHECK((heard == text));
  t.world.run_until([&] { return window_opened(t.client, 1) != 0; });
  say_data(t.world, t.client, 1, text);
  t.world.run_until([&] {
    take();
    return heard.size() == 2 * text.size();
  });
  CHECK((heard == text + text));
  CHECK(t.stats().bytes_to_origins.get() == 2 * text.size());
  CHECK_FALSE(t.client.was_stream_reset(1));
}

TEST_CASE("a tunnel in a stream in which nothing moves ends in time", "[client][http2][tunnel]") {
  const Nanoseconds limit = config::Timeouts{}.tunnel_idle;
  Http2Tunnelled t([](config::Config& config) { config.timeouts.client_idle = Nanoseconds(0); });
  t.client.connection().check_timeouts(t.opened_after + limit - Nanoseconds(1));
  t.world.run_turns(5);
  REQUIRE_FALSE(t.client.was_stream_reset(1));
  CHECK(t.world.records() == 0);
  const MonotonicTime quiet_since = t.world.world.loop->now();
  SECTION("a client that speaks keeps it") {
    t.client.say(data(1, "up"));
    t.world.run_until([&] { return t.world.origin.asked == "up"; });
    t.client.connection().check_timeouts(quiet_since + limit - Nanoseconds(1));
    t.world.run_turns(5);
    CHECK_FALSE(t.client.was_stream_reset(1));
  }
  SECTION("and nobody does") {
    t.client.connection().check_timeouts(quiet_since + limit);
    t.world.run_until([&] { return t.client.was_stream_reset(1) && t.world.origin.ended; });
    CHECK(reset_code(t.client, 1) == h2::ErrorCode::kCancel);
    CHECK(t.world.record()["outcome"] == "tunnel");
    CHECK(t.world.record()["status"] == 200);
    t.check_over();
  }
}

TEST_CASE("without such a limit a tunnel in a stream may be idle", "[client][http2][tunnel]") {
  Http2Tunnelled t([](config::Config& config) { config.timeouts.tunnel_idle = Nanoseconds(0); });
  t.client.connection().check_timeouts(t.world.world.loop->now() + std::chrono::hours(1000));
  t.world.run_turns(5);
  CHECK_FALSE(t.client.was_stream_reset(1));
  CHECK(t.stats().tunnels_open.get() == 1);
}

TEST_CASE("a tunnel whose client takes nothing is cut in time", "[client][http2][tunnel]") {
  Http2Tunnelled t({}, first_window(0));
  t.world.origin.say("held");
  t.world.run_until([&] { return t.world.transfer_memory.bytes() == 4; });
  const MonotonicTime now = t.world.world.loop->now();
  const Nanoseconds limit = config::Timeouts{}.client_write;
  t.client.connection().check_read_rate(now);
  t.client.connection().check_read_rate(now + limit - Nanoseconds(1));
  t.world.run_turns(3);
  REQUIRE_FALSE(t.client.was_stream_reset(1));
  t.client.connection().check_read_rate(now + limit);
  t.world.run_until([&] { return t.client.was_stream_reset(1) && t.world.origin.ended; });
  CHECK(reset_code(t.client, 1) == h2::ErrorCode::kCancel);
  CHECK(t.world.record()["outcome"] == "slow-reader");
  CHECK(t.world.record()["status"] == 200);
  t.check_over();
}

TEST_CASE("a tunnel in a stream that a reload no longer allows is cut, and others go on",
          "[client][http2][tunnel]") {
  config::Config changed;
  Http2Tunnelled t([&](config::Config& config) { changed = config; });
  t.client.say(h2::test::headers(3, {{":method", "GET"},
                                     {":scheme", "http"},
                                     {":authority", local_target(t.world.origin.port())},
                                     {":path", "/"}}));
  t.world.run_until_asked();
  CHECK_FALSE(t.client.connection().revoke());
  changed.forward.connect_ports = {443};
  t.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(t.client.connection().revoke());
  CHECK(t.client.connection().revoke());
  CHECK(t.client.connection().is_revoked());
  CHECK(t.stats().connections_revoked.get() == 1);
  t.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  t.world.run_until([&] { return t.client.was_stream_reset(1); });
  CHECK(reset_code(t.client, 1) == h2::ErrorCode::kCancel);
  CHECK(t.world.record()["outcome"] == "denied");
  CHECK(t.world.record()["detail"] == "revoked");
  CHECK(t.world.record()["status"] == 200);
  CHECK(t.stats().tunnels_open.get() == 0);
  CHECK_FALSE(t.client.connection().is_revoked());
  t.world.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrest");
  t.world.run_until([&] { return t.client.has_end(3); });
  CHECK(t.client.content(3) == "rest");
  CHECK(t.world.records() == 2);
}

TEST_CASE("a tunnel that a reload still allows by its address goes on", "[client][http2][tunnel]") {
  config::Config changed;
  Http2Tunnelled t([&](config::Config& config) { changed = config; });
  changed.forward.private_destinations =
      GENERATE(config::PrivateDestinations::kAlways, config::PrivateDestinations::kNever);
  const bool is_allowed =
      changed.forward.private_destinations == config::PrivateDestinations::kAlways;
  t.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(t.client.connection().revoke() == !is_allowed);
  CHECK(t.stats().connections_revoked.get() == (is_allowed ? 0 : 1));
  t.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  CHECK(t.world.records() == (is_allowed ? 0 : 1));
  if (is_allowed) {
    t.world.run_turns(5);
    CHECK_FALSE(t.client.was_stream_reset(1));
    CHECK(t.stats().tunnels_open.get() == 1);
  } else {
    t.world.run_until([&] { return t.client.was_stream_reset(1); });
  }
}

TEST_CASE("a tunnel ends with its connection", "[client][http2][tunnel]") {
  Http2Tunnelled t;
  t.world.origin.say("hello");
  t.world.run_until([&] { return t.client.content(1) == "hello"; });
  SECTION("that is cut") {
    t.client.connection().cut();
    CHECK(t.world.record()["outcome"] == "drained");
  }
  SECTION("that breaks") {
    t.client.reset();
    t.world.run_until([&] { return t.world.records() == 1; });
    CHECK(t.world.record()["outcome"] == "client-aborted");
  }
  SECTION("whose client has ended its side with the tunnel open") {
    t.client.end();
    t.world.run_until([&] { return t.client.was_stream_reset(1); });
    CHECK(t.world.record()["outcome"] == "client-aborted");
    CHECK(t.world.record()["detail"] == "unfinished-request");
    CHECK(reset_code(t.client, 1) == h2::ErrorCode::kCancel);
  }
  t.world.run_until([&] { return t.world.origin.ended || t.world.origin.was_reset; });
  t.world.run_until([&] { return t.world.connections() == 0; });
  CHECK(t.world.record()["status"] == 200);
  CHECK(t.world.record()["bytes"] == t.client.bytes_of(1));
  CHECK(t.world.records() == 1);
  CHECK(t.stats().tunnels_open.get() == 0);
  CHECK(t.stats().http2_open.get() == 0);
  CHECK(t.stats().http2_streams_open.get() == 0);
}

TEST_CASE("a drain of its connection lets a tunnel in a stream go on", "[client][http2][tunnel]") {
  Http2Tunnelled t;
  t.client.connection().drain();
  t.world.run_turns(3);
  t.world.origin.say("still");
  t.world.run_until([&] { return t.client.content(1) == "still"; });
  CHECK(t.world.records() == 0);
}

}  // namespace
}  // namespace encore::server
