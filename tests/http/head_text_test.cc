#include "proxy/http/head_text.h"

#include <string>

#include "tests/catch.h"

namespace encore::http {
namespace {

TEST_CASE("field lines follow one another, and nothing stands between or behind them",
          "[http][head]") {
  // Many lengths, so that the text's buffer grows by more than a line at some of them.
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

TEST_CASE("a status line is HTTP/1.1's, with the reason as it was given", "[http][head]") {
  std::string out = "before";
  append_status_line(404, "Not Found", out);
  append_status_line(299, "", out);
  CHECK(out == "beforeHTTP/1.1 404 Not Found\r\nHTTP/1.1 299 \r\n");
}

TEST_CASE("fields are cut out of a head by name, and the status line is no field", "[http][head]") {
  std::string out;
  copy_head_without(
      "Date: 200 OK\r\nContent-Length: 3\r\nX-Date: a\r\ncontent-length: 4\r\nEtag: b",
      {FieldId::kContentLength, FieldId::kDate}, out);
  CHECK(out == "Date: 200 OK\r\nX-Date: a\r\nEtag: b");
}

}  // namespace
}  // namespace encore::http
