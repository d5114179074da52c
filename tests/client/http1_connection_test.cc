// A client's connection, from its bytes to its end, over a socket with the real rooms behind it.
#include "proxy/client/http1_connection.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

// Every body is the path that it was asked by.
std::string get(std::string_view path, std::string_view fields = {},
                std::string_view version = "HTTP/1.1") {
  return "GET " + std::string(path) + " " + std::string(version) + "\r\nHost: h\r\n" +
         std::string(fields) + "\r\n";
}
std::string fresh(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
std::string fleeting(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

void store(ClientWorld& world, Client& client, std::string_view path, std::string_view body) {
  client.say(get(path));
  world.run_until_asked();
  world.answer(fresh(body));
  world.run_until([&] { return client.heard.ends_with(body); });
  client.heard.clear();
}
void store(ClientWorld& world, Client& client, std::string_view path) {
  store(world, client, path, path);
}

// The statuses of all that was heard, in its order.
std::vector<int> statuses(std::string_view heard) {
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  std::vector<int> found;
  for (std::size_t at = 0; (at = heard.find(kBegin, at)) != std::string_view::npos;) {
    at += kBegin.size();
    found.push_back(std::stoi(std::string(heard.substr(at, 3))));
  }
  return found;
}

TEST_CASE("hits and misses that a client asks for at once are answered in its order",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/first");
  store(world, client, "/third");
  client.say(get("/first") + get("/second") + get("/third"));
  world.run_until_asked();
  CHECK(world.origin.asked.starts_with("GET /second "));
  CHECK(client.heard.ends_with("\r\n\r\n/first"));
  world.origin.say(fleeting("/second"));
  world.run_until([&] { return client.heard.ends_with("/third"); });
  CHECK(statuses(client.heard) == std::vector{200, 200, 200});
  CHECK(client.heard.find("/first") < client.heard.find("/second"));
  CHECK(world.ended_as(Outcome::kHit) == 2);
  CHECK(world.records() == 5);
  CHECK_FALSE(client.is_over());
}

TEST_CASE("however requests are cut, and what they bring, each has its answer",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  const std::string input = get("/a") +
                            "POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nGET\r\n4\r\n /a \r\n0\r\n\r\n" +
                            get("/a");
  for (const char c : input) {
    client.say(std::string_view(&c, 1));
    world.run_turns(1);
  }
  world.run_until([&] { return world.origin.asked.ends_with("0\r\n\r\n"); });
  CHECK(world.origin.asked.starts_with("POST /post "));
  world.origin.say(fleeting("/post"));
  world.run_until([&] { return statuses(client.heard).size() == 3; });
  CHECK(client.heard.find("/post") < client.heard.rfind("/a"));
  CHECK(world.heads.count() == 0);
  CHECK(world.world.stats.bytes_from_clients.get() == get("/a").size() + input.size());
}

TEST_CASE("more requests at once than have their turn are all answered", "[client][connection]") {
  ClientWorld world(config::Mode::kReverse, [](auto& config) { config.limits.pipeline = 2; });
  Client client(world);
  store(world, client, "/a");
  std::string input;
  for (int i = 0; i < 7; ++i) input += get("/a");
  client.say(input);
  world.run_until([&] { return statuses(client.heard).size() == 7; });
  CHECK(world.ended_as(Outcome::kHit) == 7);
}

TEST_CASE("a hit with an expectation that nobody knows is refused", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  // In its place between those that are plain.
  client.say(get("/a") + get("/a", "Expect: tea\r\n") + get("/a"));
  world.run_until([&] { return statuses(client.heard).size() == 3; });
  CHECK(statuses(client.heard) == std::vector{200, 417, 200});
  CHECK(world.ended_as(Outcome::kHit) == 2);
}

TEST_CASE("what ends a connection is said and ends it, for hits and others alike",
          "[client][connection]") {
  struct Row {
    const char* version;
    const char* fields;
    bool draining;
    const char* said;  // empty: nothing
    bool ends;
  };
  const Row row = GENERATE(values<Row>({
      {"HTTP/1.1", "", false, "", false},
      {"HTTP/1.1", "Connection: close\r\n", false, "Connection: close\r\n", true},
      {"HTTP/1.0", "", false, "Connection: close\r\n", true},
      {"HTTP/1.0", "Connection: keep-alive\r\n", false, "Connection: keep-alive\r\n", false},
      {"HTTP/1.1", "", true, "Connection: close\r\n", true},
      {"HTTP/1.0", "Connection: keep-alive\r\n", true, "Connection: close\r\n", true},
  }));
  const bool hit = GENERATE(true, false);
  CAPTURE(row.version, row.fields, row.draining, hit);
  ClientWorld world;
  Client client(world);
  const std::string path = hit ? "/hit" : "/miss";
  if (hit) store(world, client, path);
  // A second one behind it shows whether more is read.
  world.world.draining = row.draining;
  client.say(get(path, row.fields, row.version));
  if (!hit) {
    world.run_until_asked();
    world.origin.say(fleeting(path));
  }
  world.run_until([&] { return client.heard.ends_with(path); });
  const std::string head = client.heard.substr(0, client.heard.find("\r\n\r\n") + 2);
  const auto said = head.find("\r\nConnection: ");
  if (*row.said == '\0') {
    CHECK(said == std::string::npos);
  } else {
    REQUIRE(said != std::string::npos);
    CHECK(head.substr(said + 2).starts_with(row.said));
    CHECK(head.find("\r\nConnection: ", said + 2) == std::string::npos);
  }
  world.run_turns(20);
  CHECK(client.ended == row.ends);
  CHECK(world.connections() == (row.ends ? 0 : 1));
}

TEST_CASE("nothing behind the last request of a connection is one", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  const bool hit = GENERATE(true, false);
  const std::string path = hit ? "/a" : "/b";
  client.say(get(path, "Connection: close\r\n") + get("/a") + get("/c"));
  if (!hit) {
    world.run_until_asked();
    world.origin.say(fleeting(path));
  }
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(client.heard.ends_with(path));
  CHECK(statuses(client.heard).size() == 1);
  CHECK(world.origin.asked.empty());
}

TEST_CASE("what is no request is refused behind the answers before it, and nothing behind it read",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  client.say(get("/a") + get("/b") + "GET / HTTP/9.9\r\n\r\n" + get("/a"));
  world.run_until_asked();
  world.origin.say(fleeting("/b"));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(statuses(client.heard) == std::vector{200, 200, 505});
  CHECK(client.heard.rfind("Connection: close\r\n") > client.heard.rfind("HTTP/1.1 505"));
  CHECK(world.ended_as(Outcome::kBadRequest) == 1);
  CHECK(world.ended_as(Outcome::kHit) == 1);
}

TEST_CASE("a head that does not end is counted until it does, or is refused",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  CHECK(client.connection().may_be_given_up());
  const std::string whole = get("/a");
  client.say(whole.substr(0, 9));
  world.run_until([&] { return world.heads.count() == 1; });
  CHECK(world.heads.bytes() == 9);
  CHECK_FALSE(client.connection().may_be_given_up());
  SECTION("it ends") {
    client.say(whole.substr(9));
    world.run_until([&] { return client.heard.ends_with("/a"); });
    CHECK(client.connection().may_be_given_up());
  }
  SECTION("it takes too long, however much of it comes") {
    const MonotonicTime since = world.world.loop->now();
    const Nanoseconds limit = config::Timeouts{}.client_header;
    client.connection().check_timeouts(since + limit - seconds(1));
    CHECK(world.connections() == 1);
    client.say(whole.substr(9, 5));
    world.run_until([&] { return world.heads.bytes() == 14; });
    client.connection().check_timeouts(since + limit);
    world.run_until([&] { return client.ended; });
    CHECK(statuses(client.heard) == std::vector{408});
  }
  SECTION("there are too many of them") {
    world.heads.oldest().refuse_unfinished_head();
    world.run_until([&] { return client.ended; });
    CHECK(statuses(client.heard) == std::vector{408});
    CHECK(client.heard.find("unfinished-heads") != std::string::npos);
  }
  SECTION("the client ends it") {
    client.end();
    world.run_until([&] { return client.ended; });
    CHECK(client.heard.empty());
  }
  SECTION("the client goes") {
    client.reset();
    world.run_until([&] { return world.connections() == 0; });
  }
  CHECK(world.heads.count() == 0);
  CHECK(world.heads.bytes() == 0);
}

TEST_CASE("an idle connection ends in time, in a drain, and for who needs its descriptor",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  const MonotonicTime now = world.world.loop->now();
  client.connection().check_timeouts(now + config::Timeouts{}.client_idle - seconds(1));
  CHECK(world.connections() == 1);
  switch (GENERATE(0, 1, 2)) {
    case 0:
      client.connection().check_timeouts(now + config::Timeouts{}.client_idle + seconds(1));
      break;
    case 1:
      client.connection().drain();
      break;
    default:
      REQUIRE(client.connection().may_be_given_up());
      client.connection().give_up();
      break;
  }
  CHECK(world.connections() == 0);
  world.run_until([&] { return client.is_over(); });
  CHECK(client.heard.empty());
}

TEST_CASE("a drain ends a connection behind the response that is under way",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  client.say(get("/a"));
  world.run_until_asked();
  world.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/");
  world.run_until([&] { return client.heard.ends_with("\r\n/"); });
  world.world.draining = true;
  client.connection().drain();
  world.run_turns(20);
  CHECK_FALSE(client.is_over());
  world.origin.say("a");
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(client.heard.ends_with("\r\n/a"));
}

TEST_CASE("who has ended its side still has all its answers", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  client.say(get("/a") + get("/b") + get("/a"));
  client.end();
  world.run_until_asked();
  world.origin.say(fleeting("/b"));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(statuses(client.heard) == std::vector{200, 200, 200});
  CHECK(client.heard.ends_with("/a"));
}

TEST_CASE("a head whose rest will not come takes nothing from the answers before it",
          "[client][connection]") {
  // The connection parses the hit behind the miss, and the half head, when it has already read the
  // end.
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  client.say(get("/b") + get("/a") + "GET /half");
  client.end();
  world.run_until_asked();
  world.run_turns(5);
  world.origin.say(fleeting("/b"));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(statuses(client.heard) == std::vector{200, 200});
  CHECK(client.heard.ends_with("/a"));
  CHECK(world.heads.count() == 0);
}

TEST_CASE("who ends its side of a body that nobody wants has its whole answer",
          "[client][connection]") {
  ClientWorld world;
  Client client(world, Client::Narrow{});
  client.reads = false;
  client.say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  world.run_until([&] { return world.origin.asked.ends_with("hello"); });
  // More than the client's socket holds, and before the request has ended.
  const std::string body(200'000, 'x');
  world.answer(
      "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  world.run_until([&] { return world.world.fetches.empty(); });
  client.say("world");
  client.end();
  world.run_turns(20);
  client.reads = true;
  world.run_until([&] { return client.is_over(); });
  CHECK(client.ended);
  CHECK(client.heard.ends_with(body));
}

TEST_CASE("a body that its client ends early was no request", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  client.say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  world.run_until([&] { return world.origin.asked.ends_with("hello"); });
  client.end();
  world.run_until([&] { return client.is_over() && world.world.fetches.empty(); });
  CHECK(client.heard.empty());
  CHECK(world.ended_as(Outcome::kClientAborted) == 1);
  CHECK(world.world.pool.size() == 0);
}

TEST_CASE("whether a body is whole is not known while no origin takes it", "[client][connection]") {
  ClientWorld world;
  world.origin.fall_silent();
  Client client(world);
  client.say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
  client.end();
  for (int i = 0; i < 3; ++i) {
    world.run_turns(20);
    REQUIRE(world.connections() == 1);
    client.connection().check_timeouts(world.world.loop->now());
  }
  CHECK(client.heard.empty());
}

TEST_CASE("who goes while it is waited for an origin is recorded once, and the origin let go",
          "[client][connection]") {
  ClientWorld world;
  Client client(world);
  client.say(get("/a"));
  world.run_until_asked();
  client.reset();
  world.run_until([&] { return world.connections() == 0; });
  world.run_until([&] { return world.world.fetches.empty(); });
  CHECK(world.ended_as(Outcome::kClientAborted) == 1);
  CHECK(world.records() == 1);
}

TEST_CASE("who has closed is told from who has only ended its side", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  client.say(get("/a"));
  world.run_until_asked();
  world.sweeps = false;
  SECTION("it has closed") {
    client.go();
    world.run_turns(20);
    REQUIRE(world.connections() == 1);
    client.connection().check_timeouts(world.world.loop->now());
    world.run_turns(20);
    if (world.connections() != 0) client.connection().check_timeouts(world.world.loop->now());
    CHECK(world.connections() == 0);
    CHECK(world.ended_as(Outcome::kClientAborted) == 1);
  }
  SECTION("it reads on") {
    client.end();
    world.run_turns(20);
    for (int i = 0; i < 3; ++i) {
      client.connection().check_timeouts(world.world.loop->now());
      world.run_turns(20);
    }
    CHECK(client.heard == "HTTP/1.1 ");
    world.origin.say(fleeting("/a"));
    world.run_until([&] { return client.is_over(); });
    CHECK(client.heard.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(client.heard.ends_with("\r\n\r\n/a"));
  }
}

TEST_CASE("a body that nobody read is not taken for the next request", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  client.say("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" + get("/b"));
  world.run_until_asked();
  world.origin.say("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n/a");
  world.run_until([&] { return client.heard.ends_with("/a"); });
  CHECK(client.heard.find("Connection: close\r\n") != std::string::npos);
  client.say(get("/c"));
  world.run_until([&] { return client.is_over(); });
  CHECK(statuses(client.heard) == std::vector{413});
}

TEST_CASE("a response without content leaves its connection in step", "[client][connection]") {
  ClientWorld world;
  Client client(world);
  store(world, client, "/a");
  SECTION("a 304 from the store") { client.say(get("/a", "If-None-Match: \"e\"\r\n") + get("/a")); }
  SECTION("a HEAD that is stored") {
    client.say("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + get("/a"));
  }
  SECTION("a HEAD that is not, which says the length all the same") {
    client.say("HEAD /b HTTP/1.1\r\nHost: h\r\n\r\n" + get("/a"));
    world.run_until_asked();
    world.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 4711\r\n\r\n");
    world.run_until([&] { return statuses(client.heard).size() == 2; });
    CHECK(client.heard.find("Content-Length: 4711\r\n") < client.heard.find("\r\n\r\n"));
  }
  SECTION("a 204") {
    client.say(get("/b") + get("/a"));
    world.run_until_asked();
    world.origin.say("HTTP/1.1 204 No Content\r\n\r\n");
  }
  world.run_until([&] { return statuses(client.heard).size() == 2; });
  const std::size_t next = client.heard.rfind("HTTP/1.1 200 OK\r\n");
  CHECK(client.heard.substr(0, next).ends_with("\r\n\r\n"));
  CHECK(client.heard.find("\r\n\r\n") + 4 == next);
  CHECK(client.heard.ends_with("\r\n\r\n/a"));
  CHECK_FALSE(client.is_over());
}

// A stored body that no socket takes in one write, requested by a client that does not read.
struct SlowHit {
  SlowHit() : body(2'000'000, 'x'), quick(world), client(world, Client::Narrow{}) {
    store(world, quick, "/big", body);
    store(world, quick, "/a");
    client.reads = false;
    client.say(get("/big") + get("/a"));
    world.run_turns(50);
    REQUIRE(world.connections() == 2);
  }
  std::string body;
  ClientWorld world;
  Client quick;
  Client client;
};

TEST_CASE("what waits behind a hit that its client takes slowly comes whole and in order",
          "[client][connection]") {
  SlowHit slow;
  CHECK(slow.world.ended_as(Outcome::kHit) == 0);
  CHECK_FALSE(slow.client.connection().may_be_given_up());
  slow.client.reads = true;
  slow.world.run_until([&] { return slow.client.heard.ends_with("/a"); });
  CHECK(statuses(slow.client.heard) == std::vector{200, 200});
  CHECK(slow.client.heard.find("\r\n\r\n" + slow.body + "HTTP/1.1 200") != std::string::npos);
  CHECK(slow.world.ended_as(Outcome::kHit) == 2);
  CHECK(slow.world.world.stats.body_bytes(OutcomeClass::kHit) == slow.body.size() + 2);
  CHECK_FALSE(slow.client.is_over());
}

// The contents of all that was heard, in its order.
std::string bodies_in(std::string_view heard) {
  std::string bodies;
  for (std::size_t at = 0; (at = heard.find("\r\n\r\n", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(heard.find("HTTP/1.1 ", at), heard.size());
    bodies += heard.substr(at + 4, end - at - 4);
    at = end;
  }
  return bodies;
}

TEST_CASE("hits without number come in their order, however their socket takes them",
          "[client][connection]") {
  // More than go into one write are answered within a turn.
  ClientWorld world(config::Mode::kReverse, [](auto& config) { config.limits.pipeline = 250; });
  Client quick(world);
  std::vector<std::string> bodies;
  for (int i = 0; i < 10; ++i) {
    bodies.emplace_back(static_cast<std::size_t>(500 * (i + 1)), static_cast<char>('a' + i));
    store(world, quick, "/" + std::to_string(i), bodies.back());
  }
  std::string asked;
  std::string expected;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t which = i * 7 % bodies.size();
    asked += get("/" + std::to_string(which));
    expected += bodies[which];
  }
  std::optional<net::FailCalls> full;
  std::optional<Client> client;
  const int failing = GENERATE(range(-1, 5));
  CAPTURE(failing);
  if (failing < 0) {
    client.emplace(world, Client::Narrow{});
    client->reads = false;
  } else {
    client.emplace(world);
    full.emplace(net::FailCalls::Call::kSend, failing, EAGAIN);
  }
  client->say(asked);
  world.run_turns(20);
  client->reads = true;
  world.run_until([&] { return world.ended_as(Outcome::kHit) == 300; });
  world.run_until([&] { return bodies_in(client->heard).size() >= expected.size(); });
  CHECK((bodies_in(client->heard) == expected));
  CHECK((failing < 0 || full->failed()));
}

TEST_CASE("a hit that its client does not take ends by its limits, and is recorded as it ended",
          "[client][connection]") {
  SlowHit slow;
  Outcome outcome = Outcome::kClientAborted;
  const MonotonicTime now = slow.world.world.loop->now();
  SECTION("in time") {
    slow.client.connection().check_timeouts(now + config::Timeouts{}.client_write - seconds(1));
    REQUIRE(slow.world.connections() == 2);
    slow.client.connection().check_timeouts(now + config::Timeouts{}.client_write + seconds(1));
  }
  SECTION("cut, for memory") {
    slow.client.connection().cut_reader();
    outcome = Outcome::kSlowReader;
    CHECK(slow.world.world.stats.slow_readers_cut.get() == 1);
  }
  SECTION("too little of it for too long") {
    ClientConnection& connection = slow.client.connection();
    connection.check_read_rate(now);
    connection.check_read_rate(now + config::Timeouts{}.client_write - seconds(1));
    REQUIRE(slow.world.connections() == 2);
    connection.check_read_rate(now + config::Timeouts{}.client_write + seconds(1));
    outcome = Outcome::kSlowReader;
    CHECK(slow.world.world.stats.slow_readers_cut.get() == 1);
  }
  SECTION("it goes") { slow.client.reset(); }
  slow.world.run_until([&] { return slow.world.connections() == 1; });
  CHECK(slow.world.ended_as(outcome) == 1);
  CHECK(slow.world.ended_as(Outcome::kHit) == 0);
  CHECK(slow.world.world.stats.body_bytes(OutcomeClass::kHit) == 0);
  CHECK(slow.world.world.stats.body_bytes() < 2 * slow.body.size());
  CHECK(slow.world.transfer_memory.bytes() == 0);
}

TEST_CASE("a hit that is taken slowly outlives the beginning of a drain", "[client][connection]") {
  SlowHit slow;
  slow.world.world.draining = true;
  slow.client.connection().drain();
  slow.client.reads = true;
  slow.world.run_until([&] { return slow.client.is_over(); });
  CHECK(slow.client.ended);
  CHECK(slow.client.heard.find("\r\n\r\n" + slow.body + "HTTP/1.1 200") != std::string::npos);
  CHECK(slow.client.heard.find("Connection: close\r\n") > slow.body.size());
  CHECK(slow.client.heard.ends_with("/a"));
}

}  // namespace
}  // namespace encore::server
