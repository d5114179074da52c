// A connection of HTTP/1 in each of its states, and all that is wanted of it there by who looks
// after connections: a drain, a reload, a sweep, a shortage.
#include "proxy/client/http1_connection.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

enum class Place : std::uint8_t {
  kUnused,
  kIdle,        // behind an answer
  kHead,        // half of one has come
  kAsking,      // waits for its origin
  kContent,     // of a request comes
  kHalfAnswer,  // half of one has gone
  kSlowHit,     // is not taken
  kSlowMiss,    // likewise
  kConnect,     // waits for its server
  kTunnel,
  kUpgrade,
};
constexpr auto kPlaces = {Place::kUnused,  Place::kIdle,       Place::kHead,    Place::kAsking,
                          Place::kContent, Place::kHalfAnswer, Place::kSlowHit, Place::kSlowMiss,
                          Place::kConnect, Place::kTunnel,     Place::kUpgrade};

struct Placed {
  explicit Placed(Place where)
      : place(where),
        world(is_forward() ? config::Mode::kForward : config::Mode::kReverse,
              [&](config::Config& config) { changed = config; }),
        filler(world) {
    go();
    records = world.records();
    world.run_turns(3);
    REQUIRE(world.connections() == 2);
  }
  bool is_forward() const { return place == Place::kConnect || place == Place::kTunnel; }
  bool is_slow() const { return place == Place::kSlowHit || place == Place::kSlowMiss; }
  bool is_idle() const { return place == Place::kUnused || place == Place::kIdle; }
  // Something will be recorded of it.
  bool has_request() const { return !is_idle() && place != Place::kHead; }
  bool is_tunnel() const { return is_forward() || place == Place::kUpgrade; }

  void ask(Client& of, std::string_view path, std::string_view fields = {}) {
    of.say("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
  }
  void answer(std::string_view cache_control, std::string_view body) {
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
                 "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                 std::string(body));
  }
  void store(std::string_view path, std::string_view body) {
    const std::uint64_t before = world.records();
    ask(filler, path);
    world.run_until_asked();
    answer("max-age=60", body);
    world.run_until([&] { return world.records() == before + 1; });
  }
  void go() {
    const std::string target = "127.0.0.1:" + std::to_string(world.origin.port());
    const std::string connect = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
    if (is_slow()) {
      if (place == Place::kSlowHit) store("/slow", letters(kSlowBytes));
      client.emplace(world, Client::Narrow{});
      client->reads = false;
      ask(*client, "/slow");
      if (place == Place::kSlowMiss) {
        world.run_until_asked();
        answer("no-store", letters(kMissBytes));
        // It has all come.
        world.run_until([&] { return world.world.fetches.empty(); });
      }
      world.run_turns(20);
      return;
    }
    client.emplace(world);
    switch (place) {
      case Place::kIdle:
        store("/small", "small");
        ask(*client, "/small");
        world.run_until([&] { return client->heard.ends_with("small"); });
        return;
      case Place::kHead:
        client->say("GET /he");
        world.run_until([&] { return world.heads.count() == 1; });
        return;
      case Place::kAsking:
        ask(*client, "/asked");
        world.run_until_asked();
        return;
      case Place::kContent:
        client->say("PUT /put HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nten bytes.");
        world.run_until([&] { return world.origin.asked.ends_with("ten bytes."); });
        return;
      case Place::kHalfAnswer:
        ask(*client, "/asked");
        world.run_until_asked();
        world.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.");
        world.run_until([&] { return client->heard.ends_with("ten bytes."); });
        return;
      case Place::kConnect:
        world.origin.fall_silent();
        client->say(connect);
        world.run_until([&] { return client->connection().is_tunnel(); });
        return;
      case Place::kTunnel:
        client->say(connect);
        world.run_until([&] { return world.world.stats.tunnels_open.get() == 1; });
        world.run_until([&] { return client->heard.ends_with("\r\n\r\n"); });
        return;
      case Place::kUpgrade:
        ask(*client, "/chat", "Connection: upgrade\r\nUpgrade: raw\r\n");
        world.run_until_asked();
        world.origin.say("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n");
        world.run_until([&] { return client->heard.ends_with("\r\n\r\n"); });
        return;
      default:
        return;
    }
  }
  ClientConnection& connection() { return client->connection(); }
  bool has_ended() const { return world.connections() == 1; }
  std::uint64_t recorded() const { return world.records() - records; }
  MonotonicTime now() const { return world.world.loop->now(); }
  void reload() { world.world.runtime = *Runtime::create(changed, {}, "test"); }
  void check_ended_once() {
    CHECK(has_ended());
    CHECK(recorded() == (has_request() ? 1 : 0));
    world.run_turns(5);
    CHECK(recorded() == (has_request() ? 1 : 0));
  }
  void check_goes_on() {
    world.run_turns(5);
    CHECK_FALSE(has_ended());
    CHECK(recorded() == 0);
  }

  static constexpr std::size_t kSlowBytes = 300'000;
  static constexpr std::size_t kMissBytes = 50'000;  // the transfer waits for nobody
  Place place;
  config::Config changed;
  ClientWorld world;
  Client filler;
  std::optional<Client> client;
  std::uint64_t records = 0;
};

TEST_CASE(
    "a connection may be given up where nothing is in progress, and is a tunnel once one is "
    "asked for",
    "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  CHECK(p.connection().may_be_given_up() == p.is_idle());
  CHECK(p.connection().is_tunnel() == p.is_tunnel());
  CHECK_FALSE(p.connection().is_revoked());
  CHECK_FALSE(p.connection().slow_reader());
  if (!p.is_idle()) return;
  p.connection().give_up();
  p.check_ended_once();
}

TEST_CASE("a drain ends what is idle, and the rest goes on", "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  const bool is_announced = GENERATE(true, false);
  p.world.world.draining = true;
  p.world.is_announced = is_announced;
  if (is_announced) {
    p.connection().announce_drain();
  } else {
    p.connection().drain();
  }
  if (p.is_idle() && !is_announced) {
    p.check_ended_once();
  } else {
    p.check_goes_on();
  }
}

TEST_CASE("an announced drain ends a connection with its next answer", "[client][connection]") {
  Placed p(GENERATE(Place::kUnused, Place::kIdle));
  p.store("/next", "next");
  p.records = p.world.records();
  p.world.world.draining = true;
  p.world.is_announced = true;
  p.connection().announce_drain();
  p.client->heard.clear();
  const bool is_hit = GENERATE(true, false);
  p.ask(*p.client, is_hit ? "/next" : "/miss");
  if (!is_hit) {
    p.world.run_until_asked();
    p.answer("no-store", "next");
  }
  p.world.run_until([&] { return p.client->is_over(); });
  CHECK(p.client->ended);
  CHECK(p.client->heard.find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK(p.client->heard.ends_with("\r\n\r\nnext"));
  CHECK(p.recorded() == 1);
}

TEST_CASE("in a drain a connection on which nothing moves is cut, but not in front of an origin",
          "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  p.connection().end_if_quiet();
  p.check_goes_on();
  p.connection().end_if_quiet();
  p.check_goes_on();
  p.connection().end_if_quiet();
  if (p.place == Place::kAsking) {
    p.check_goes_on();
    p.connection().end_if_quiet();
    p.check_goes_on();
  } else {
    p.check_ended_once();
    if (p.has_request()) CHECK(p.world.ended_as(Outcome::kDrained) == 1);
  }
}

TEST_CASE("in a drain a connection on which something moves is not cut", "[client][connection]") {
  Placed p(GENERATE(Place::kContent, Place::kHalfAnswer, Place::kTunnel, Place::kUpgrade));
  CAPTURE(static_cast<int>(p.place));
  const bool by_client = p.place != Place::kHalfAnswer && GENERATE(true, false);
  for (int i = 0; i < 6; ++i) {
    p.connection().end_if_quiet();
    const std::size_t heard = p.client->heard.size();
    const std::size_t asked = p.world.origin.asked.size();
    if (by_client || p.place == Place::kContent) {
      p.client->say("x");
      p.world.run_until([&] { return p.world.origin.asked.size() != asked; });
    } else {
      p.world.origin.say("y");
      p.world.run_until([&] { return p.client->heard.size() != heard; });
    }
    p.check_goes_on();
  }
}

TEST_CASE("a reload that does not allow the client any more ends what is idle, and marks the rest",
          "[client][revocation]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  p.reload();
  CHECK_FALSE(p.connection().revoke());
  p.check_goes_on();
  p.changed.listen.front().deny_clients = {"127.0.0.0/8"};
  p.reload();
  if (GENERATE(true, false)) {
    // Its listener is no more: it drains, and nothing else is decided.
    p.world.close_listener();
    CHECK_FALSE(p.connection().revoke());
    CHECK_FALSE(p.connection().is_revoked());
    CHECK(p.world.world.stats.connections_revoked.get() == 0);
    p.check_goes_on();
    return;
  }
  // Half a head will have an answer that says why.
  CHECK(p.connection().revoke() == !p.is_idle());
  CHECK(p.world.world.stats.connections_revoked.get() == 1);
  if (p.is_idle()) return p.check_ended_once();
  CHECK(p.connection().is_revoked());
  CHECK(p.connection().revoke());
  CHECK(p.world.world.stats.connections_revoked.get() == 1);
  p.check_goes_on();
  p.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  p.check_ended_once();
  if (p.has_request()) CHECK(p.world.ended_as(Outcome::kDenied) == 1);
}

TEST_CASE("a client that takes too little in time is cut, and nobody else",
          "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  const Nanoseconds limit = config::Timeouts{}.client_write;
  const MonotonicTime from = p.now();
  p.connection().check_read_rate(from);
  CHECK_FALSE(p.connection().slow_reader());
  p.connection().check_read_rate(from + limit - Nanoseconds(1));
  p.check_goes_on();
  if (p.place == Place::kSlowMiss) {
    const auto slow = p.connection().slow_reader();
    REQUIRE(slow);
    CHECK(slow->bytes_per_second == 0);
    CHECK(slow->held_bytes == p.world.transfer_memory.bytes());
    CHECK(slow->held_bytes > Placed::kMissBytes / 2);
    CHECK_FALSE(slow->over_share);
  } else {
    CHECK_FALSE(p.connection().slow_reader());
  }
  p.connection().check_read_rate(from + limit);
  CHECK(p.world.world.stats.slow_readers_cut.get() == (p.is_slow() ? 1 : 0));
  if (!p.is_slow()) return p.check_goes_on();
  p.check_ended_once();
  CHECK(p.world.ended_as(Outcome::kSlowReader) == 1);
  CHECK(p.world.transfer_memory.bytes() == 0);
}

TEST_CASE("a connection that is cut for its memory ends with a reset", "[client][connection]") {
  Placed p(GENERATE(Place::kUnused, Place::kIdle, Place::kAsking, Place::kHalfAnswer,
                    Place::kSlowHit, Place::kSlowMiss));
  CAPTURE(static_cast<int>(p.place));
  p.connection().cut_reader();
  CHECK(p.world.world.stats.slow_readers_cut.get() == 1);
  p.check_ended_once();
  CHECK(p.world.ended_as(Outcome::kSlowReader) == (p.has_request() ? 1 : 0));
}

TEST_CASE("a connection that is cut shows what is missing", "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  p.connection().cut();
  p.check_ended_once();
  if (p.has_request()) CHECK(p.world.ended_as(Outcome::kDrained) == 1);
  p.client->reads = true;
  p.world.run_until([&] { return p.client->is_over(); });
  CHECK(p.client->was_reset == p.is_tunnel());
}

TEST_CASE("a connection ends in its own time where it waits for its client",
          "[client][connection]") {
  Placed p(GENERATE(values<Place>(kPlaces)));
  CAPTURE(static_cast<int>(p.place));
  const config::Timeouts limits;
  std::optional<Nanoseconds> limit;
  if (p.is_idle()) limit = limits.client_idle;
  if (p.place == Place::kHead) limit = limits.client_header;
  if (p.is_slow()) limit = limits.client_write;
  if (p.is_tunnel() && p.place != Place::kConnect) limit = limits.tunnel_idle;
  if (!limit) return;
  p.world.sweeps = false;
  p.connection().check_timeouts(p.now());
  p.connection().check_timeouts(p.now() + *limit - std::chrono::seconds(2));
  p.check_goes_on();
  p.connection().check_timeouts(p.now() + *limit + std::chrono::seconds(2));
  p.world.run_until([&] { return p.has_ended(); });
  CHECK(p.recorded() == (p.is_idle() ? 0 : 1));
}

}  // namespace
}  // namespace encore::server
