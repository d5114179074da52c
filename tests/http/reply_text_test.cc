#include "proxy/http/reply_text.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tests/catch.h"

namespace encore::http {
namespace {

constexpr std::string_view kVia = "Via: 1.1 encore-abcdef\r\n";
constexpr std::string_view kDate = "Sun, 06 Nov 1994 08:49:37 GMT";

std::string hit_fields(std::uint32_t age, std::int64_t ttl) {
  std::string room(kHitFieldsBytesMax + kVia.size(), '#');
  room.resize(write_hit_fields(age, ttl, kVia, room.data()));
  return room;
}

TEST_CASE("a hit says Age, Via and Cache-Status", "[http][reply]") {
  CHECK(hit_fields(3, 57) ==
        "Age: 3\r\nVia: 1.1 encore-abcdef\r\nCache-Status: encore; hit; ttl=57\r\n");
  CHECK(hit_fields(0, -1) ==
        "Age: 0\r\nVia: 1.1 encore-abcdef\r\nCache-Status: encore; hit; ttl=-1\r\n");
}

TEST_CASE("numbers of a hit are written as they are, however many digits they have",
          "[http][reply]") {
  for (std::uint64_t power = 1; power <= 1'000'000'000; power *= 10) {
    for (const std::uint64_t number : {power - 1, power, power + power / 7, 9 * power}) {
      const auto age = static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
      const auto ttl = static_cast<std::int64_t>(number * 11);
      CHECK(hit_fields(age, ttl) == "Age: " + std::to_string(age) + "\r\n" + std::string(kVia) +
                                        "Cache-Status: encore; hit; ttl=" + std::to_string(ttl) +
                                        "\r\n");
    }
  }
}

TEST_CASE("the longest fields of a hit fit their room", "[http][reply]") {
  const std::string longest = hit_fields(std::numeric_limits<std::uint32_t>::max(),
                                         std::numeric_limits<std::int64_t>::min());
  CHECK(longest.size() <= kHitFieldsBytesMax + kVia.size());
}

TEST_CASE("other responses say what the cache did with them", "[http][reply]") {
  CacheStatus status;
  status.forwarded = Forwarded::kUriMiss;
  status.stored = false;
  status.detail = "first-request";
  std::string out = "Before: 1\r\n";
  append_cache_status(status, out);
  CHECK(out ==
        "Before: 1\r\nCache-Status: encore; fwd=uri-miss; stored=?0; detail=first-request\r\n");
}

TEST_CASE("a reply of our own tells the length of its body", "[http][reply]") {
  CacheStatus status;
  status.forwarded = Forwarded::kBypass;
  status.detail = "loop";
  const SyntheticReply reply = make_own_reply(508, "encore: loop", kDate, status);
  CHECK(reply.head.starts_with(
      "HTTP/1.1 508 Loop Detected\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  CHECK(reply.head.find("Content-Length: " + std::to_string(reply.body.size()) + "\r\n") !=
        std::string::npos);
  CHECK(reply.head.find("Cache-Control: no-store\r\n") != std::string::npos);
  CHECK(reply.head.ends_with("Cache-Status: encore; fwd=bypass; detail=loop\r\n"));
  CHECK(reply.body == "508 Loop Detected\nencore: loop\n");
}

TEST_CASE("a 405 says what is allowed", "[http][reply]") {
  CHECK(make_own_reply(405, "", kDate, {}).head.find("\r\nAllow: GET, HEAD") != std::string::npos);
}

}  // namespace
}  // namespace encore::http
