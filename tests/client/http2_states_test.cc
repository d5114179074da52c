// A connection of HTTP/2 in each of its states, and all that is wanted of it there by who looks
// after connections: a drain, a reload, a sweep.
#include "proxy/client/http2_connection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::setting;
using h2::test::window;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Streams : std::uint8_t {
  kNone,
  kEnded,   // there was one
  kAsking,  // one waits for its origin
  kShut,    // the window of a hit is shut
  kFull,    // the socket takes no more of one
};
constexpr auto kStreams = {Streams::kNone, Streams::kEnded, Streams::kAsking, Streams::kShut,
                           Streams::kFull};
constexpr std::uint32_t kOpenWindow = 1 << 24;

struct Streaming {
  explicit Streaming(Streams which)
      : place(which),
        world(config::Mode::kReverse, [&](config::Config& config) { changed = config; }),
        filler(world) {
    filler.say("GET /hit HTTP/1.1\r\nHost: a.example\r\n\r\n");
    world.run_until_asked();
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
                 std::to_string(kHitBytes) + "\r\n\r\n" + letters(kHitBytes));
    world.run_until([&] { return world.records() == 1; });
    world.origin.asked.clear();
    go();
    records = world.records();
    world.run_turns(3);
    REQUIRE(world.connections() == 2);
  }
  bool is_idle() const { return place == Streams::kNone || place == Streams::kEnded; }
  void go() {
    if (place == Streams::kFull) {
      client.emplace(world, Client::Narrow{});
    } else {
      client.emplace(world);
    }
    client->greet(place == Streams::kShut ? setting(h2::Setting::kInitialWindowSize, 100)
                                          : setting(h2::Setting::kInitialWindowSize, kOpenWindow) +
                                                window(0, kOpenWindow));
    world.run_until([&] { return !client->frames().empty(); });
    switch (place) {
      case Streams::kNone:
        return;
      case Streams::kEnded:
        client->ask(1, "/hit");
        world.run_until([&] { return client->has_end(1) && world.records() == 2; });
        return;
      case Streams::kAsking:
        client->ask(1, "/asked");
        world.run_until_asked();
        return;
      case Streams::kShut:
        client->ask(1, "/hit");
        world.run_until([&] { return client->content(1).size() == 100; });
        return;
      case Streams::kFull:
        client->reads = false;
        client->ask(1, "/hit");
        world.run_turns(20);
        return;
    }
  }
  ClientConnection& connection() { return client->connection(); }
  bool has_ended() const { return world.connections() == 1; }
  std::uint64_t recorded() const { return world.records() - records; }
  MonotonicTime now() const { return world.world.loop->now(); }
  bool has_said_goodbye() {
    return std::ranges::any_of(client->frames(), [](const auto& frame) {
      return frame.header.type == h2::FrameType::kGoAway;
    });
  }
  void reload() { world.world.runtime = *Runtime::create(changed, {}, "test"); }
  void check_goes_on() {
    world.run_turns(5);
    CHECK_FALSE(has_ended());
    CHECK(recorded() == 0);
  }
  void check_ended_once() {
    CHECK(has_ended());
    CHECK(recorded() == (is_idle() ? 0 : 1));
    CHECK(world.world.stats.http2_open.get() == 0);
    CHECK(world.world.stats.http2_streams_open.get() == 0);
    world.run_turns(5);
    CHECK(recorded() == (is_idle() ? 0 : 1));
  }

  static constexpr std::size_t kHitBytes = 300'000;
  Streams place;
  config::Config changed;
  ClientWorld world;
  Client filler;
  std::optional<Http2Client> client;
  std::uint64_t records = 0;
};

TEST_CASE("a connection of HTTP/2 may be given up where it has no stream", "[client][http2]") {
  Streaming s(GENERATE(values<Streams>(kStreams)));
  CAPTURE(static_cast<int>(s.place));
  CHECK(s.connection().may_be_given_up() == s.is_idle());
  CHECK_FALSE(s.connection().is_tunnel());
  CHECK_FALSE(s.connection().is_revoked());
  CHECK_FALSE(s.connection().slow_reader());
  CHECK(s.world.world.stats.http2_streams_open.get() == (s.is_idle() ? 0 : 1));
  if (!s.is_idle()) return;
  s.connection().give_up();
  s.check_ended_once();
}

TEST_CASE("a drain of HTTP/2 waits a second for who does not acknowledge it", "[client][http2]") {
  Streaming s(GENERATE(values<Streams>(kStreams)));
  CAPTURE(static_cast<int>(s.place));
  const bool is_announced = GENERATE(true, false);
  const MonotonicTime from = s.now();
  if (is_announced) {
    s.connection().announce_drain();
  } else {
    s.connection().drain();
  }
  s.check_goes_on();
  if (s.place != Streams::kFull) s.world.run_until([&] { return s.has_said_goodbye(); });
  s.connection().check_timeouts(from + seconds(1) - milliseconds(1));
  s.check_goes_on();
  s.connection().check_timeouts(s.now() + seconds(1));
  if (!s.is_idle()) return s.check_goes_on();
  s.world.run_until([&] { return s.has_ended(); });
  s.check_ended_once();
  s.world.run_until([&] { return s.client->is_over(); });
  CHECK(s.client->ended);
}

TEST_CASE("who begins with HTTP/2 in a drain is told so, and still answered", "[client][http2]") {
  const bool is_before = GENERATE(true, false);
  Streaming s(Streams::kNone);
  s.world.world.draining = is_before;
  Http2Client late(s.world);
  late.greet(setting(h2::Setting::kInitialWindowSize, kOpenWindow) + window(0, kOpenWindow));
  s.world.run_until([&] { return !late.frames().empty(); });
  s.world.world.draining = true;
  late.ask(1, "/hit");
  s.world.run_until([&] { return late.has_end(1); });
  CHECK(late.content(1).size() == Streaming::kHitBytes);
  s.world.run_until([&] {
    return std::ranges::any_of(late.frames(), [](const auto& frame) {
      return frame.header.type == h2::FrameType::kGoAway;
    });
  });
  CHECK_FALSE(late.was_stream_reset(1));
}

TEST_CASE("in a drain a connection of HTTP/2 on which nothing moves is cut", "[client][http2]") {
  Streaming s(GENERATE(values<Streams>(kStreams)));
  CAPTURE(static_cast<int>(s.place));
  s.connection().end_if_quiet();
  s.check_goes_on();
  s.connection().end_if_quiet();
  s.check_goes_on();
  s.connection().end_if_quiet();
  if (s.place == Streams::kAsking) {
    s.check_goes_on();
    return;
  }
  s.check_ended_once();
  CHECK(s.world.ended_as(Outcome::kDrained) == (s.is_idle() ? 0 : 1));
}

TEST_CASE("a connection of HTTP/2 ends in time where it is idle, or takes nothing",
          "[client][http2]") {
  Streaming s(GENERATE(values<Streams>(kStreams)));
  CAPTURE(static_cast<int>(s.place));
  const config::Timeouts limits;
  s.world.sweeps = false;
  const Nanoseconds limit = s.is_idle() ? limits.client_idle : limits.client_write;
  s.connection().check_timeouts(s.now());
  const MonotonicTime from = s.now() - seconds(2);
  s.connection().check_timeouts(from + limit);
  s.check_goes_on();
  s.connection().check_timeouts(s.now() + limit + seconds(2));
  if (s.place == Streams::kAsking) return s.check_goes_on();
  if (s.place == Streams::kShut) return;  // the session's own limit: tests/h2
  s.world.run_until([&] { return s.has_ended(); });
  s.check_ended_once();
  CHECK(s.world.ended_as(Outcome::kClientAborted) == (s.is_idle() ? 0 : 1));
}

TEST_CASE("a reload that does not allow the client of HTTP/2 any more drains its connection",
          "[client][http2]") {
  Streaming s(GENERATE(values<Streams>(kStreams)));
  CAPTURE(static_cast<int>(s.place));
  s.reload();
  CHECK_FALSE(s.connection().revoke());
  s.check_goes_on();
  s.changed.listen.front().deny_clients = {"127.0.0.0/8"};
  s.reload();
  if (GENERATE(true, false)) {
    s.world.close_listener();
    CHECK_FALSE(s.connection().revoke());
    CHECK(s.world.world.stats.connections_revoked.get() == 0);
    return s.check_goes_on();
  }
  CHECK(s.connection().revoke());
  CHECK(s.connection().revoke());
  CHECK(s.connection().is_revoked());
  CHECK(s.world.world.stats.connections_revoked.get() == 1);
  s.check_goes_on();
  s.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  s.check_ended_once();
  CHECK(s.world.ended_as(Outcome::kDenied) == (s.is_idle() ? 0 : 1));
}

TEST_CASE("HTTP/2 is what a connection begins with, or never", "[client][http2]") {
  Streaming s(Streams::kNone);
  Client other(s.world);
  other.say("HEAD /hit HTTP/1.1\r\nHost: a.example\r\n\r\n");
  s.world.run_until([&] { return other.heard.ends_with("\r\n\r\n"); });
  other.heard.clear();
  other.say(h2::test::hello());
  s.world.run_until([&] { return other.is_over(); });
  CHECK(other.heard.starts_with("HTTP/1.1 "));
  CHECK(s.world.world.stats.http2_connections.get() == 1);
}

}  // namespace
}  // namespace encore::server
