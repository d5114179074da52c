#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/client/http2_client.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::frame;
using h2::test::headers;
using h2::test::setting;
using h2::test::window;

std::string response_with(std::string_view cache_control, std::string_view body) {
  return "HTTP/1.1 200 OK\r\nCache-Control: " + std::string(cache_control) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// Has the proxy store it, by a client that speaks HTTP/1.
void store_by_http1(ClientWorld& world, std::string_view path, std::string_view body) {
  const std::uint64_t before = world.records();
  Client client(world);
  client.say("GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
  world.origin.asked.clear();
  world.run_until_asked();
  world.answer(response_with("max-age=60", body));
  world.run_until([&] { return client.heard.ends_with(body) && world.records() == before + 1; });
}

constexpr std::uint32_t kWide = 1 << 24;

TEST_CASE("streams of one connection are answered each by itself", "[client][http2]") {
  ClientWorld world;
  store_by_http1(world, "/hit", "hit");
  Http2Client client(world);
  client.greet();
  client.ask(1, "/miss");
  world.origin.asked.clear();
  world.run_until_asked();
  client.ask(3, "/hit");
  world.run_until([&] { return client.has_end(3); });
  CHECK(client.content(3) == "hit");
  CHECK_FALSE(client.has_end(1));
  CHECK(world.world.stats.http2_streams_open.get() == 1);
  world.answer(response_with("no-store", "miss"));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.content(1) == "miss");
  world.run_turns(2);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
  CHECK(world.world.stats.http2_streams.get() == 2);
  CHECK(world.ended_as(Outcome::kHit) == 1);
  CHECK(client.connection().may_be_given_up());
}

TEST_CASE("a stream whose window is shut holds nobody, and its memory is its client's",
          "[client][http2]") {
  ClientWorld world;
  store_by_http1(world, "/small", "small");
  Http2Client client(world);
  client.greet(setting(h2::Setting::kInitialWindowSize, 100) + window(0, kWide));
  client.ask(1, "/large");
  world.origin.asked.clear();
  world.run_until_asked();
  const std::string body = letters(200'000);
  world.answer(response_with("no-store", body));
  world.run_until([&] { return client.content(1).size() == 100; });
  for (h2::StreamId stream = 3; stream < 9; stream += 2) {
    client.ask(stream, "/small");
    world.run_until([&] { return client.has_end(stream); });
    CHECK(client.content(stream) == "small");
  }
  const MonotonicTime now = world.world.loop->now();
  client.connection().check_read_rate(now);
  CHECK(world.transfer_memory.bytes() > 0);
  SECTION("it goes on when the window opens") {
    client.say(window(1, kWide));
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.content(1) == body);
  }
  SECTION("it is reset, and the memory is free") {
    client.say(h2::test::rst(1));
    world.run_until([&] { return world.ended_as(Outcome::kClientAborted) == 1; });
  }
  world.run_turns(3);
  CHECK(world.transfer_memory.bytes() == 0);
  CHECK_FALSE(client.is_over());
}

TEST_CASE("a connection that is cut ends all of its streams, each with its record",
          "[client][http2]") {
  ClientWorld world;
  Http2Client client(world);
  client.greet();
  client.ask(1, "/one");
  client.ask(3, "/two");
  client.ask(5, "/three");
  world.run_until_asked();
  const std::uint64_t before = world.records();
  client.connection().cut();
  CHECK(world.records() == before + 3);
  CHECK(world.ended_as(Outcome::kDrained) == 3);
  CHECK(world.connections() == 0);
  world.run_turns(3);
  CHECK(world.world.stats.http2_open.get() == 0);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
}

TEST_CASE("streams that ask for the same wait for one transfer", "[client][http2]") {
  ClientWorld world;
  Http2Client client(world);
  client.greet(window(0, kWide));
  for (h2::StreamId stream = 1; stream < 9; stream += 2) client.ask(stream, "/shared");
  world.run_until_asked();
  world.answer(response_with("max-age=60", letters(50'000)));
  world.run_until([&] {
    return client.has_end(1) && client.has_end(3) && client.has_end(5) && client.has_end(7);
  });
  for (h2::StreamId stream = 1; stream < 9; stream += 2) {
    CHECK(client.content(stream) == letters(50'000));
  }
  CHECK(world.origin.accepted == 1);
}

TEST_CASE("a client that ends its side is answered, and one that left content open is not",
          "[client][http2]") {
  ClientWorld world;
  Http2Client client(world);
  client.greet();
  client.ask(1, "/late");
  world.run_until_asked();
  h2::test::FieldList post = h2::test::get("/upload");
  post.front().second = "POST";
  client.say(headers(3, post, false) + data(3, "some"));
  world.run_turns(5);
  client.end();
  world.run_until([&] { return client.was_stream_reset(3); });
  CHECK(world.records() == 1);
  CHECK_FALSE(client.is_over());
  world.answer(response_with("no-store", "late"));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.content(1) == "late");
  CHECK(client.has_end(1));
}

TEST_CASE("a header block counts as an unfinished head until it ends", "[client][http2]") {
  ClientWorld world;
  store_by_http1(world, "/hit", "hit");
  Http2Client client(world);
  client.greet();
  const std::string block = h2::test::block_of(h2::test::get("/hit"));
  client.say(frame(h2::FrameType::kHeaders, h2::kFlagEndStream, 1, block.substr(0, 5)));
  world.run_until([&] { return world.heads.count() == 1; });
  CHECK(world.heads.bytes() > 0);
  SECTION("it ends") {
    client.say(frame(h2::FrameType::kContinuation, h2::kFlagEndHeaders, 1, block.substr(5)));
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.content(1) == "hit");
  }
  SECTION("it gives way to others") {
    world.heads.oldest().refuse_unfinished_head();
    world.run_until([&] { return client.is_over(); });
  }
  CHECK(world.heads.count() == 0);
}

TEST_CASE("a header block that does not end in the time for heads ends its connection",
          "[client][http2]") {
  using std::chrono::seconds;
  ClientWorld world(config::Mode::kReverse,
                    [](config::Config& config) { config.timeouts.client_header = seconds(3); });
  Http2Client client(world);
  client.greet();
  world.run_until([&] { return !client.frames().empty(); });
  const std::string block = h2::test::block_of(h2::test::get("/hit"));
  client.say(frame(h2::FrameType::kHeaders, h2::kFlagEndStream, 1, block.substr(0, 5)));
  world.run_until([&] { return world.heads.count() == 1; });
  const MonotonicTime now = world.world.loop->now();
  client.connection().check_timeouts(now + seconds(2));
  world.run_turns(3);
  REQUIRE_FALSE(client.is_over());
  client.connection().check_timeouts(now + seconds(4));
  world.run_until([&] { return client.is_over(); });
  CHECK(world.heads.count() == 0);
}

TEST_CASE("a large hit is recorded as delivered when it has left", "[client][http2]") {
  ClientWorld world;
  const std::string body = letters(300'000);
  store_by_http1(world, "/large", body);
  const std::uint64_t before = world.records();
  const std::uint64_t bytes_before = world.world.stats.body_bytes();
  Http2Client client(world, Client::Shallow{1 << 20});
  client.greet(setting(h2::Setting::kInitialWindowSize, kWide) + window(0, kWide));
  client.reads = false;
  client.ask(1, "/large");
  world.run_turns(100);
  CHECK(client.connection().stream().bytes_unsent() > 0);
  CHECK(world.records() == before);
  SECTION("all of it, to a client that reads") {
    client.reads = true;
    world.run_until([&] { return world.records() == before + 1; });
    world.run_until([&] { return client.has_end(1); });
    CHECK(client.content(1) == body);
    CHECK(world.world.stats.body_bytes() - bytes_before == body.size());
    CHECK(world.ended_as(Outcome::kHit) == 1);
  }
  SECTION("what went out, to one that leaves") {
    client.reset();
    world.run_until([&] { return world.records() == before + 1; });
    CHECK(world.world.stats.body_bytes() - bytes_before < body.size());
    CHECK(world.ended_as(Outcome::kClientAborted) == 1);
  }
}

TEST_CASE("a hit without content is counted as the bytes that it takes", "[client][http2]") {
  ClientWorld world;
  store_by_http1(world, "/empty", "");
  const std::uint64_t before = world.world.stats.bytes_to_clients.get();
  Http2Client client(world);
  client.greet();
  client.ask(1, "/empty");
  world.run_until([&] { return client.has_end(1); });
  world.run_turns(2);
  CHECK(world.ended_as(Outcome::kHit) == 1);
  CHECK(world.world.stats.bytes_to_clients.get() - before == client.bytes_of(1));
}

TEST_CASE("a head that is all the client has when it resets the stream is counted",
          "[client][http2]") {
  const bool is_interim = GENERATE(true, false);
  CAPTURE(is_interim);
  ClientWorld world;
  Http2Client client(world);
  client.greet();
  client.ask(1, "/slow");
  world.run_until_asked();
  world.answer(is_interim ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                          : "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
  world.run_until([&] { return client.bytes_of(1) != 0; });
  client.say(h2::test::rst(1));
  world.run_until([&] { return world.ended_as(Outcome::kClientAborted) == 1; });
  CHECK(world.world.stats.bytes_to_clients.get() == client.bytes_of(1));
}

TEST_CASE("a drain tells the client, lets streams end, and closes", "[client][http2]") {
  ClientWorld world;
  Http2Client client(world);
  client.greet();
  client.ask(1, "/late");
  world.run_until_asked();
  client.connection().drain();
  world.run_turns(3);
  CHECK_FALSE(client.is_over());
  world.answer(response_with("no-store", "late"));
  world.run_until([&] { return client.has_end(1); });
  // The acknowledgement of the first step.
  client.say(frame(h2::FrameType::kPing, h2::kFlagAck, 0, h2::kDrainPing));
  world.run_until([&] { return client.is_over(); });
  CHECK(client.content(1) == "late");
}

// It opens windows while it reads: a closed socket would answer with a reset, and drop the rest.
TEST_CASE("a connection that is over is closed when its client has been sent all",
          "[client][http2]") {
  ClientWorld world;
  const std::string body = letters(60'000);
  store_by_http1(world, "/hit", body);
  Http2Client client(world, Client::Shallow{1 << 20});
  client.greet(setting(h2::Setting::kInitialWindowSize, kWide) + window(0, kWide));
  client.reads = false;
  const std::uint64_t before = world.records();
  client.ask(1, "/hit");
  world.run_until([&] { return world.records() == before + 1; });
  client.connection().drain();
  world.run_turns(3);
  client.say(frame(h2::FrameType::kPing, h2::kFlagAck, 0, h2::kDrainPing));
  world.run_turns(20);
  REQUIRE(world.world.stats.http2_open.get() == 1);
  CHECK(client.connection().stream().bytes_unsent() > 0);
  CHECK_FALSE(client.connection().may_be_given_up());
  client.reads = true;
  world.run_until([&] { return client.is_over(); });
  CHECK(client.content(1) == body);
  CHECK(world.world.stats.http2_open.get() == 0);
}

}  // namespace
}  // namespace encore::server
