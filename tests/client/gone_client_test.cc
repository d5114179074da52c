// Records of requests whose client leaves, or is cut, before they end.
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n";
}
std::string response(std::string_view cache_control, std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

void store(ClientWorld& world, Client& client, std::string_view path, std::string_view body) {
  client.say(get(path));
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
  store(world, filler, "/large", body);
  const std::uint64_t before = world.world.stats.body_bytes();
  // The kernel takes all of it, and its client little.
  Client client(world, Client::Shallow{1 << 20});
  client.reads = false;
  client.say(get(is_hit ? "/large" : "/passed"));
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
  store(world, filler, "/hit", "hit");
  const std::uint64_t before = world.records();
  const std::size_t asked = world.origin.asked.size();
  Client client(world);
  SECTION("a miss") { client.say(get("/hit") + get("/miss")); }
  SECTION("what is refused") { client.say(get("/hit") + "GET /a HTTP/1.1\r\n\r\n"); }
  SECTION("what is no request") { client.say(get("/hit") + "nothing\r\n\r\n"); }
  client.reset();
  world.run_until([&] { return world.connections() == 1; });
  CHECK(world.records() - before == 2);
  CHECK(world.ended_as(Outcome::kClientAborted) == 1);
  CHECK(world.origin.asked.size() == asked);
}

}  // namespace
}  // namespace encore::server
