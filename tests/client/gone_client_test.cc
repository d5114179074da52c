// Records of requests whose client leaves, or is cut, before they end.
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

std::string plain_get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n";
}
std::string response(std::string_view cache_control, std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

void store_and_wait(ClientWorld& world, Client& client, std::string_view path,
                    std::string_view body) {
  client.say(plain_get(path));
  world.run_until_asked();
  world.answer(response("max-age=60", body));
  world.run_until([&] { return client.heard.ends_with(body) && world.records() == 1; });
}

TEST_CASE("a response that is cut behind its last byte is recorded as whole",
          "[client][connection]") {
  const bool is_hit = GENERATE(true, false);
  CAPTURE(is_hit);
  ClientWorld world;
  Client filler(world);
  const std::string body = letters(80'000);
  store_and_wait(world, filler, "/large", body);
  const std::uint64_t before = world.world.stats.body_bytes();
  // The kernel takes all of it, and its client little.
  Client client(world, Client::Shallow{1 << 20});
  client.reads = false;
  client.say(plain_get(is_hit ? "/large" : "/passed"));
  if (!is_hit) {
    world.run_until_asked();
    world.answer(response("no-store", body));
  }
  world.run_turns(50);
  CHECK(world.connections() == 2);
  CHECK(client.connection().stream().bytes_unsent() > 0);
  client.connection().cut();
  CHECK(world.world.stats.body_bytes() - before == body.size());
  client.reads = true;
  world.run_until([&] { return client.is_over(); });
  CHECK(client.heard.ends_with(body));
  CHECK_FALSE(client.was_reset);
}

TEST_CASE("a request whose client has gone with the answers before it is recorded",
          "[client][connection]") {
  ClientWorld world;
  Client filler(world);
  store_and_wait(world, filler, "/hit", "hit");
  const std::uint64_t before = world.records();
  const std::size_t asked = world.origin.asked.size();
  const std::uint64_t bytes_before = world.world.stats.bytes_to_clients.get();
  Client client(world);
  SECTION("a miss") { client.say(plain_get("/hit") + plain_get("/miss")); }
  SECTION("what is refused") { client.say(plain_get("/hit") + "GET /a HTTP/1.1\r\n\r\n"); }
  SECTION("what is no request") { client.say(plain_get("/hit") + "nothing\r\n\r\n"); }
  client.reset();
  world.run_until([&] { return world.connections() == 1; });
  CHECK(world.records() - before == 2);
  // The hit was gathered, and no socket has taken it.
  CHECK(world.ended_as(Outcome::kClientAborted) == 2);
  CHECK(world.world.stats.bytes_to_clients.get() == bytes_before);
  CHECK(world.origin.asked.size() == asked);
}

// Counted are the bytes that a socket has taken, each once, however many hits go in one write.
TEST_CASE("hits that are gathered are counted as their socket takes them", "[client][connection]") {
  const bool has_records = GENERATE(true, false);
  ClientWorld world(config::Mode::kReverse, [=](config::Config& config) {
    if (has_records) config.log.level = config::LogLevel::kDebug;
  });
  Client filler(world);
  store_and_wait(world, filler, "/hit", letters(1000));
  const std::size_t large_bytes = 300'000;
  const bool has_large = GENERATE(true, false);
  if (has_large) {
    filler.say(plain_get("/large"));
    world.run_until_asked();
    world.answer(response("max-age=60", letters(large_bytes)));
    world.run_until([&] { return world.records() == 2; });
  }
  constexpr std::uint64_t kHits = 40;
  const std::uint64_t records_before = world.records();
  const std::uint64_t bytes_before = world.world.stats.bytes_to_clients.get();
  const std::uint64_t content_before = world.world.stats.body_bytes();
  Client client(world, Client::Narrow{});
  client.reads = false;
  std::string asked;
  for (std::uint64_t i = 0; i < kHits; ++i) asked += plain_get("/hit");
  if (has_large) asked += plain_get("/large");
  client.say(asked);
  world.run_turns(50);
  const std::uint64_t all = kHits + (has_large ? 1 : 0);
  const std::uint64_t whole = world.records() - records_before;
  CHECK(whole < kHits);
  SECTION("all of them, if it reads") {
    client.reads = true;
    world.run_until([&] { return world.records() - records_before == all; });
    world.run_turns(10);
    CHECK(world.ended_as(Outcome::kClientAborted) == 0);
    CHECK(world.world.stats.bytes_to_clients.get() - bytes_before == client.heard.size());
    CHECK(world.world.stats.body_bytes() - content_before ==
          kHits * 1000 + (has_large ? large_bytes : 0));
  }
  SECTION("those before it left, and a part of one") {
    client.reads = true;
    client.look();
    const std::uint64_t taken = client.heard.size();
    client.go();
    world.run_until([&] { return world.connections() == 1; });
    CHECK(world.records() - records_before == all);
    CHECK(world.ended_as(Outcome::kClientAborted) == all - whole);
    CHECK(world.world.stats.bytes_to_clients.get() - bytes_before == taken);
    CHECK(world.world.stats.body_bytes() - content_before < taken);
    CHECK(world.world.stats.body_bytes() - content_before >= whole * 1000);
  }
}

}  // namespace
}  // namespace encore::server
