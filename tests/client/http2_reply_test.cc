// Answers to streams that no exchange gives: hits and refusals.
#include "proxy/client/http2_reply.h"

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/client/http2_tunnels.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

using h2::test::data;
using h2::test::headers;
using h2::test::rst;
using h2::test::setting;
using h2::test::window;

constexpr std::uint32_t kAmple = 1 << 24;

// Has the proxy store it, by a client that speaks HTTP/1.
void fill_cache(ClientWorld& world, std::string_view path, std::string_view body) {
  Client client(world);
  const std::uint64_t before = world.records();
  client.say("GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
  world.origin.asked.clear();
  world.run_until_asked();
  world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  world.run_until([&] { return client.heard.ends_with(body) && world.records() == before + 1; });
}

TEST_CASE("a refused stream has its answer, and its connection goes on", "[client][http2]") {
  ClientWorld world(config::Mode::kReverse,
                    [](config::Config& config) { config.origin.front().host = "a.example"; });
  world.keep_records();
  Http2Client client(world);
  client.greet();
  h2::test::FieldList fields = h2::test::get("/");
  fields[2].second = "b.example";
  const bool is_head = GENERATE(true, false);
  if (is_head) fields[0].second = "HEAD";
  client.say(headers(1, fields));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == "404");
  CHECK(client.content(1).empty() == is_head);
  world.run_turns(2);
  CHECK(world.records() == 1);
  auto record = world.record();
  CHECK(record["outcome"] == "no-route");
  CHECK(record["detail"] == "no-route");
  CHECK(record["status"] == 404);
  CHECK(record["method"] == (is_head ? "HEAD" : "GET"));
  CHECK(record["body_bytes"] == client.content(1).size());
  CHECK(record["bytes"] == client.bytes_of(1));
  CHECK(world.world.stats.bytes_to_clients.get() == client.bytes_of(1));
  CHECK(world.world.stats.http2_streams_open.get() == 0);
  CHECK(client.connection().may_be_given_up());
  CHECK_FALSE(client.is_over());
}

TEST_CASE("a head that cannot be read is refused in its stream alone", "[client][http2]") {
  ClientWorld world(config::Mode::kReverse,
                    [](config::Config& config) { config.limits.uri_bytes = 100; });
  world.keep_records();
  Http2Client client(world);
  client.greet(headers(1, h2::test::get("/" + letters(200))));
  world.run_until([&] { return client.has_end(1); });
  CHECK(client.status(1) == "414");
  CHECK(world.record()["outcome"] == "bad-request");
  CHECK(world.record()["status"] == 414);
  CHECK(world.record()["bytes"] == client.bytes_of(1));
  CHECK(world.record()["method"] == "");
  CHECK_FALSE(client.is_over());
}

TEST_CASE("a refusal takes content that nobody wants", "[client][http2]") {
  ClientWorld world(config::Mode::kReverse,
                    [](config::Config& config) { config.origin.front().host = "a.example"; });
  Http2Client client(world);
  client.greet(setting(h2::Setting::kInitialWindowSize, 0) + window(0, kAmple));
  h2::test::FieldList fields = h2::test::get("/");
  fields[0].second = "POST";
  fields[2].second = "b.example";
  client.say(headers(1, fields, false));
  world.run_until([&] { return client.status(1) == "404"; });
  // It waits for its window.
  CHECK(client.content(1).empty());
  say_data(world, client, 1, letters(200'000));
  world.run_until([&] { return window_opened(client, 1) != 0; });
  CHECK(window_opened(client, 1) <= 200'000);
  client.say(data(1, "", true) + window(1, 1000));
  world.run_until([&] { return client.has_end(1); });
  CHECK_FALSE(client.content(1).empty());
  world.run_turns(2);
  CHECK(world.records() == 1);
  CHECK(world.world.stats.http2_streams_open.get() == 0);
}

struct SlowStream {
  SlowStream() : client(world) {
    fill_cache(world, "/large", letters(100'000));
    world.keep_records();
    cut_before = world.world.stats.slow_readers_cut.get();
    client.greet(setting(h2::Setting::kInitialWindowSize, 100) + window(0, kAmple));
    client.ask(1, "/large");
    world.run_until([&] { return client.content(1).size() == 100; });
    CHECK(world.records() == 1);
  }
  void check_ended_as(std::string_view outcome, std::string_view detail) {
    CHECK(world.records() == 2);
    auto record = world.record();
    CHECK(record["outcome"] == outcome);
    CHECK(record.value("detail", "") == detail);
    CHECK(record["status"] == 200);
    CHECK(record["body_bytes"] == 100);
    CHECK(record["bytes"] == client.bytes_of(1));
    CHECK(record.contains("first_byte_us"));
    world.run_turns(3);
    CHECK(world.transfer_memory.bytes() == 0);
    CHECK(world.world.stats.http2_streams_open.get() == 0);
  }
  ClientWorld world;
  Http2Client client;
  std::uint64_t cut_before = 0;
};

TEST_CASE("a hit whose client takes too little of it is cut in time", "[client][http2]") {
  SlowStream s;
  const MonotonicTime now = s.world.world.loop->now();
  const Nanoseconds limit = config::Timeouts{}.client_write;
  ClientConnection& connection = s.client.connection();
  connection.check_read_rate(now);
  connection.check_read_rate(now + limit - Nanoseconds(1));
  // The bytes that it does not take are stored anyway.
  CHECK_FALSE(connection.slow_reader());
  s.world.run_turns(3);
  REQUIRE_FALSE(s.client.was_stream_reset(1));
  connection.check_read_rate(now + limit);
  s.world.run_until([&] { return s.client.was_stream_reset(1); });
  CHECK(reset_code(s.client, 1) == h2::ErrorCode::kCancel);
  CHECK(s.world.world.stats.slow_readers_cut.get() == s.cut_before + 1);
  s.check_ended_as("slow-reader", "");
  // Others of the connection go on.
  s.client.say(setting(h2::Setting::kInitialWindowSize, kAmple));
  s.client.ask(3, "/large");
  s.world.run_until([&] { return s.client.has_end(3); });
  CHECK(s.client.content(3).size() == 100'000);
}

TEST_CASE("a stream that holds memory for a slow client is cut where that is wanted",
          "[client][http2]") {
  ClientWorld world;
  world.keep_records();
  Http2Client client(world);
  client.greet(setting(h2::Setting::kInitialWindowSize, 100) + window(0, kAmple));
  client.ask(1, "/passed");
  world.run_until_asked();
  world.answer("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 50000\r\n\r\n" +
               letters(50'000));
  world.run_until([&] { return client.content(1).size() == 100; });
  world.run_until([&] { return world.transfer_memory.bytes() != 0; });
  ClientConnection& connection = client.connection();
  const MonotonicTime now = world.world.loop->now();
  connection.check_read_rate(now);
  CHECK_FALSE(connection.slow_reader());
  connection.cut_reader();
  CHECK(world.records() == 0);
  connection.check_read_rate(now + std::chrono::seconds(1));
  const auto slow = connection.slow_reader();
  REQUIRE(slow);
  CHECK(slow->bytes_per_second == 0);
  CHECK(slow->held_bytes == world.transfer_memory.bytes());
  CHECK_FALSE(slow->over_share);
  connection.cut_reader();
  world.run_until([&] { return client.was_stream_reset(1); });
  CHECK(reset_code(client, 1) == h2::ErrorCode::kCancel);
  CHECK(world.world.stats.slow_readers_cut.get() == 1);
  CHECK(world.record()["outcome"] == "slow-reader");
  CHECK(world.record()["status"] == 200);
  CHECK(world.record()["bytes"] == client.bytes_of(1));
  world.run_turns(3);
  CHECK(world.records() == 1);
  CHECK(world.transfer_memory.bytes() == 0);
  CHECK_FALSE(connection.slow_reader());
  CHECK_FALSE(client.is_over());
}

TEST_CASE("a hit that a reload no longer allows ends with a reset", "[client][http2]") {
  config::Config changed;
  SlowStream s;
  changed.origin.emplace_back();
  changed.origin.front().servers = {s.world.origin.url()};
  config::Rule rule;
  rule.deny = 403;
  changed.rule = {rule};
  s.world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(s.client.connection().revoke());
  s.client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  s.world.run_until([&] { return s.client.was_stream_reset(1); });
  s.check_ended_as("denied", "revoked");
  CHECK_FALSE(s.client.is_over());
  CHECK(s.client.connection().may_be_given_up());
}

TEST_CASE("a hit that its client resets is recorded with what has gone", "[client][http2]") {
  SlowStream s;
  s.client.say(rst(1));
  s.world.run_until([&] { return s.world.records() == 2; });
  s.check_ended_as("client-aborted", "reset");
}

TEST_CASE("a connection whose client a reload no longer allows closes", "[client][http2]") {
  ClientWorld world;
  fill_cache(world, "/hit", "hit");
  Http2Client client(world);
  client.greet();
  client.ask(1, "/hit");
  client.ask(3, "/miss");
  world.origin.asked.clear();
  world.run_until_asked();
  world.run_until([&] { return client.has_end(1); });
  const std::uint64_t before = world.records();
  config::Config changed;
  changed.origin.emplace_back();
  changed.origin.front().servers = {world.origin.url()};
  changed.listen.front().deny_clients = {"127.0.0.0/8"};
  world.world.runtime = *Runtime::create(changed, {}, "test");
  CHECK(client.connection().revoke());
  CHECK(world.world.stats.connections_revoked.get() == 1);
  world.run_turns(3);
  CHECK(world.records() == before);
  client.connection().cut_revoked({.outcome = Outcome::kDenied, .detail = "revoked"});
  CHECK(world.records() == before + 1);
  CHECK(world.ended_as(Outcome::kDenied) == 1);
  CHECK(world.connections() == 0);
  world.run_until([&] { return client.is_over(); });
}

}  // namespace
}  // namespace encore::server
