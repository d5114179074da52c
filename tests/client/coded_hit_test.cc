// Stored responses that are sent compressed: coded once, and kept in that form.
#include <string>

#include "tests/catch.h"
#include "tests/client/client_world.h"
#include "tests/letters.h"

namespace encore::server {
namespace {

struct CodedWorld {
  explicit CodedWorld(std::size_t bytes, std::string_view type = "text/plain")
      : world(config::Mode::kReverse,
              [](config::Config& config) { config.compression.codings = {"gzip"}; }),
        body(std::string(bytes, 'a')),
        client(world) {
    say("");
    world.run_until_asked();
    world.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v\"\r\nContent-Type: " +
                 std::string(type) + "\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
                 body);
    world.run_until([&] { return client.heard.ends_with(body) && world.records() == 1; });
  }
  void say(std::string_view fields) {
    client.heard.clear();
    client.say("GET /x HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
  }
  // Returns the whole answer.
  std::string ask(std::string_view fields) {
    const std::uint64_t before = world.records();
    say(fields);
    world.run_until([&] { return world.records() == before + 1 && is_whole(); });
    return client.heard;
  }
  bool is_whole() const {
    const std::size_t end = client.heard.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::size_t at = client.heard.find("\r\nContent-Length: ");
    if (at >= end) return client.heard.ends_with("\r\n0\r\n\r\n");
    return client.heard.size() - end - 4 == std::stoul(client.heard.substr(at + 18));
  }
  WorkerStats& stats() { return world.world.stats; }

  ClientWorld world;
  std::string body;
  Client client;
};

bool says(std::string_view answer, std::string_view line) {
  return answer.substr(0, answer.find("\r\n\r\n") + 2).find("\r\n" + std::string(line) + "\r\n") !=
         std::string_view::npos;
}

TEST_CASE("a stored response is compressed once, and sent so again", "[client][coding]") {
  CodedWorld c(GENERATE(std::size_t{5000}, std::size_t{400'000}));
  const std::string first = c.ask("Accept-Encoding: gzip\r\n");
  CHECK(says(first, "Content-Encoding: gzip"));
  CHECK(says(first, "Vary: Accept-Encoding"));
  CHECK(says(first, "ETag: W/\"v\""));
  CHECK(first.size() < c.body.size() / 2);
  CHECK(c.stats().compressed_gzip.get() == 1);
  CHECK(c.stats().compressed_gzip_read.get() == c.body.size());
  const std::uint64_t made = c.stats().compressed_gzip_made.get();
  CHECK(made > 0);
  std::string form;
  for (int i = 2; i < 5; ++i) {
    const std::string again = c.ask("Accept-Encoding: gzip\r\n");
    CHECK(says(again, "Content-Encoding: gzip"));
    CHECK(says(again, "Content-Length: " + std::to_string(made)));
    CHECK(says(again, "ETag: W/\"v\""));
    CHECK(c.stats().compressed_gzip.get() == static_cast<std::uint64_t>(i));
    CHECK(c.stats().compressed_gzip_read.get() == c.body.size());
    const std::string content = again.substr(again.find("\r\n\r\n") + 4);
    CHECK((form.empty() || form == content));
    form = content;
  }
  CHECK(form.starts_with("\x1f\x8b"));
  // A form is no source of ranges, and those of the identity are there still.
  const std::string range = c.ask("Accept-Encoding: gzip\r\nRange: bytes=0-3\r\n");
  CHECK(range.starts_with("HTTP/1.1 206 "));
  CHECK(range.ends_with("\r\n\r\naaaa"));
  const std::string plain = c.ask("");
  CHECK(says(plain, "Vary: Accept-Encoding"));
  CHECK(says(plain, "ETag: \"v\""));
  CHECK_FALSE(says(plain, "Content-Encoding: gzip"));
  CHECK(plain.ends_with("\r\n\r\n" + c.body));
  CHECK(c.stats().compressed_gzip.get() == 4);
  CHECK(c.world.origin.accepted == 1);
  CHECK(c.world.ended_as(Outcome::kHit) == 6);
}

TEST_CASE("a client that has the compressed form has it confirmed", "[client][coding]") {
  CodedWorld c(5000);
  (void)c.ask("Accept-Encoding: gzip\r\n");
  c.say("Accept-Encoding: gzip\r\nIf-None-Match: W/\"v\"\r\n");
  c.world.run_until([&] { return c.client.heard.ends_with("\r\n\r\n"); });
  CHECK(c.client.heard.starts_with("HTTP/1.1 304 "));
  CHECK(says(c.client.heard, "ETag: W/\"v\""));
}

TEST_CASE("a response that is not compressed is a hit as it is", "[client][coding]") {
  CodedWorld c(5000, "image/png");
  for (int i = 0; i < 3; ++i) {
    const std::string answer = c.ask("Accept-Encoding: gzip\r\n");
    CHECK(answer.ends_with("\r\n\r\n" + c.body));
    CHECK_FALSE(says(answer, "Vary: Accept-Encoding"));
  }
  CHECK(c.stats().compressed_gzip.get() == 0);
  CHECK(c.world.ended_as(Outcome::kHit) == 3);
}

}  // namespace
}  // namespace encore::server
