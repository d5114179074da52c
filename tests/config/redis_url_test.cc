#include "config/redis_url.h"

#include "tests/catch.h"

namespace encore::config {
namespace {

TEST_CASE("an engine's URL has its parts", "[config]") {
  auto url = parse_redis_url("redis://redis.example");
  REQUIRE(url);
  RedisUrl expected;
  expected.host = "redis.example";
  CHECK(*url == expected);
  url = parse_redis_url("redis://us%40er:p%3Aa%2fs@[2001:DB8::1]:6380/3?stream=site:{a}");
  REQUIRE(url);
  CHECK(url->user == "us@er");
  CHECK(url->password == "p:a/s");
  CHECK(url->host == "2001:db8::1");
  CHECK(url->port == 6380);
  CHECK(url->database == 3);
  CHECK(url->stream == "site:{a}");
  CHECK(shown(*url) == "redis://[2001:db8::1]:6380/3");
  url = parse_redis_url("redis://:secret@localhost/");
  REQUIRE(url);
  CHECK(url->user.empty());
  CHECK(url->password == "secret");
  url = parse_redis_url("unix:///run/redis.sock?db=2&stream=x");
  REQUIRE(url);
  CHECK(url->socket == "/run/redis.sock");
  CHECK(url->database == 2);
  CHECK(url->stream == "x");
  CHECK(shown(*url) == "unix:///run/redis.sock?db=2");
}

TEST_CASE("a URL with TLS is refused with what to do instead", "[config]") {
  const auto url = parse_redis_url("rediss://:hidden@redis.example");
  REQUIRE_FALSE(url);
  CHECK(url.error().message.contains("TLS"));
  CHECK(url.error().message.contains("tunnel"));
  CHECK_FALSE(url.error().message.contains("hidden"));
}

TEST_CASE("an engine's URL that is wrong is refused without showing its password", "[config]") {
  for (const char* text : {"",
                           "redis",
                           "http://hidden",
                           "rediss://:hidden@a",
                           "redis://",
                           "redis://:hidden@",
                           "redis://hidden@a",
                           "redis://:hidden@a:0",
                           "redis://:hidden@a:65536",
                           "redis://:hidden@a/x",
                           "redis://:hidden@a/65536",
                           "redis://:hidden@a?stream=",
                           "redis://:hidden@a?stream=a b",
                           "redis://:hidden@a/1?db=2",
                           "redis://:hidden@a?hidden=1",
                           "redis://:hid%gden@a",
                           "redis://:hidden%2@a",
                           "unix://host/hidden",
                           "unix://hidden",
                           "unix:///hidden?db=x"}) {
    CAPTURE(text);
    const auto url = parse_redis_url(text);
    REQUIRE_FALSE(url);
    CHECK(url.error().message.find("hid") == std::string::npos);
  }
  CHECK(parse_redis_url("redis://user@a")
            .error()
            .message.ends_with("with fleet.password_file write user:@"));
  CHECK(parse_redis_url("redis://user:@a")->user == "user");
  CHECK_FALSE(parse_redis_url("redis://a?stream=" + std::string(kStreamNameBytesMax + 1, 'x')));
  CHECK(parse_redis_url("redis://a?stream=" + std::string(kStreamNameBytesMax, 'x')));
}

TEST_CASE("a node's name is short and plain", "[config]") {
  CHECK(is_node_name("cache-1.example:8080_a"));
  CHECK(is_node_name(std::string(64, 'a')));
  CHECK_FALSE(is_node_name(std::string(65, 'a')));
  CHECK_FALSE(is_node_name(""));
  CHECK_FALSE(is_node_name("a b"));
  CHECK_FALSE(is_node_name("a\n"));
}

}  // namespace
}  // namespace encore::config
