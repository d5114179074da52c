#include "proxy/settings/compression.h"

#include "proxy/http/stored_head.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

config::Compression some_settings() {
  config::Compression settings;
  settings.codings = {"br", "gzip"};
  return settings;
}

bool covers(const std::string& lines, std::optional<std::uint64_t> length = {},
            const std::string& status = "200 OK") {
  const std::string text = "HTTP/1.1 " + status + "\r\n" + lines;
  http::ResponseHead head;
  http::read_stored_head(text, head);
  return Compression(some_settings()).covers(head, length);
}

TEST_CASE("what may be coded follows from type, status, size and what forbids it",
          "[settings][compression]") {
  CHECK(covers("Content-Type: text/html; charset=utf-8\r\n"));
  CHECK(covers("Content-Type: TEXT/html\r\n", 1024));
  CHECK_FALSE(covers("Content-Type: text/html\r\n", 1023));
  CHECK(covers("Content-Type: application/problem+json\r\n"));
  CHECK_FALSE(covers("Content-Type: image/png\r\n"));
  CHECK_FALSE(covers(""));
  CHECK_FALSE(covers("Content-Type: text/html\r\nContent-Type: text/css\r\n"));
  CHECK_FALSE(covers("Content-Type: multipart/x+json\r\n"));
  CHECK_FALSE(covers("Content-Type: text/html\r\nContent-Encoding: identity\r\n"));
  CHECK_FALSE(covers("Content-Type: text/html\r\nContent-Range: bytes 0-1/2\r\n"));
  CHECK_FALSE(covers("Content-Type: text/html\r\nCache-Control: a, NO-transform\r\n"));
  for (const std::string status : {"203 X", "403 X", "404 X", "410 X"}) {
    CHECK(covers("Content-Type: text/html\r\n", {}, status));
  }
  for (const std::string status : {"204 X", "206 X", "301 X", "304 X", "500 X"}) {
    CHECK_FALSE(covers("Content-Type: text/html\r\n", {}, status));
  }
}

TEST_CASE("what is remembered of an object is remembered under these settings alone",
          "[settings][compression]") {
  const Compression first(some_settings());
  const Compression same(some_settings());
  config::Compression other = some_settings();
  other.min_size_bytes = 7;
  const Compression changed(other);
  const Compression back(some_settings());
  CHECK(first.note_of(true) == same.note_of(true));
  CHECK(first.note_of(true) != first.note_of(false));
  for (const Compression* each : {&changed, &back}) {
    for (const bool is_covered : {false, true}) {
      CHECK(each->note_of(is_covered) != first.note_of(true));
      CHECK(each->note_of(is_covered) != first.note_of(false));
      CHECK(each->note_of(is_covered) != 0);
    }
  }
}

}  // namespace
}  // namespace encore::server
