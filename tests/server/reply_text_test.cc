#include "proxy/server/reply_text.h"

#include <limits>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

constexpr std::string_view kVia = "Via: 1.1 encore-abcdef\r\n";
constexpr std::string_view kDate = "Sun, 06 Nov 1994 08:49:37 GMT";

std::string hit_tail(std::uint32_t age, std::int64_t ttl, http::Version client, bool keep_alive) {
  std::string room(kHitTailBytesMax + kVia.size(), '#');
  room.resize(write_hit_tail(age, ttl, kVia, client, keep_alive, room.data()));
  return room;
}

TEST_CASE("a hit's tail says Age, Via, Cache-Status and what becomes of the connection",
          "[server][reply]") {
  CHECK(hit_tail(3, 57, http::Version::kHttp11, true) ==
        "Age: 3\r\nVia: 1.1 encore-abcdef\r\nCache-Status: encore; hit; ttl=57\r\n\r\n");
  CHECK(hit_tail(0, -1, http::Version::kHttp11, false) ==
        "Age: 0\r\nVia: 1.1 encore-abcdef\r\nCache-Status: encore; hit; ttl=-1\r\n"
        "Connection: close\r\n\r\n");
  CHECK(hit_tail(0, 0, http::Version::kHttp10, true).find("Connection: keep-alive\r\n") !=
        std::string::npos);
}

TEST_CASE("the longest tail of a hit fits its room", "[server][reply]") {
  const std::string longest =
      hit_tail(std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int64_t>::min(),
               http::Version::kHttp10, true);
  CHECK(longest.size() <= kHitTailBytesMax + kVia.size());
}

TEST_CASE("field lines follow one another, and nothing stands between or behind them",
          "[server][reply]") {
  // Of many lengths, so that the text's room grows by more than a line at some of them.
  std::string out;
  std::string expected;
  for (std::size_t i = 0; i < 400; ++i) {
    const std::string name(1 + i % 3, 'n');
    const std::string value(i * 7 % 41, 'v');
    append_field(name, value, out);
    expected.append(name).append(": ").append(value).append("\r\n");
    REQUIRE(out == expected);
  }
  CHECK(out.capacity() < 4 * expected.size());
}

TEST_CASE("the tail of other responses carries what was said about them", "[server][reply]") {
  http::CacheStatus status;
  status.forwarded = http::Forwarded::kUriMiss;
  status.stored = false;
  status.detail = "first-request";
  std::string out;
  append_tail({.age_seconds = std::nullopt,
               .status = status,
               .via_line = kVia,
               .client = http::Version::kHttp11,
               .keep_alive = true,
               .chunked = true},
              out);
  CHECK(out ==
        "Via: 1.1 encore-abcdef\r\n"
        "Cache-Status: encore; fwd=uri-miss; stored=?0; detail=first-request\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
}

TEST_CASE("an error reply tells the length of its body, also without it", "[server][reply]") {
  http::CacheStatus status;
  status.forwarded = http::Forwarded::kBypass;
  status.detail = "loop";
  const std::string with = make_error_reply(508, "encore: loop", kDate, false, true, status);
  const std::string without = make_error_reply(508, "encore: loop", kDate, false, false, status);
  const std::size_t end = with.find("\r\n\r\n") + 4;
  CHECK(with.substr(0, end) == without);
  CHECK(with.starts_with("HTTP/1.1 508 Loop Detected\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  const std::string length = "Content-Length: " + std::to_string(with.size() - end) + "\r\n";
  CHECK(with.find(length) != std::string::npos);
  CHECK(with.find("Connection: close\r\n") != std::string::npos);
  CHECK(with.find("Cache-Control: no-store\r\n") != std::string::npos);
}

TEST_CASE("a 405 says what is allowed", "[server][reply]") {
  CHECK(make_error_reply(405, "", kDate, true, true, {}).find("\r\nAllow: GET, HEAD") !=
        std::string::npos);
}

}  // namespace
}  // namespace encore::server
