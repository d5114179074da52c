// The framing of a request's content, with its bytes cut anywhere.
#include "proxy/client/http1_request_body.h"

#include <random>
#include <string>

#include "proxy/http/chunked.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using What = Http1RequestBody::What;

struct Read {
  std::string content;
  std::string rest;  // the next request
  What last = What::kNothing;
};

// Gives the input in pieces, as a connection does: what is not used comes again.
Read read(Http1RequestBody& body, std::string_view input, std::mt19937_64& random) {
  Read result;
  std::size_t shown = 0;
  while (!body.is_done() && shown < input.size()) {
    const std::size_t piece = 1 + random() % 50;
    const std::string_view now =
        input.substr(0, std::min(input.size(), shown + piece)).substr(shown);
    const auto step = body.next(now);
    result.content += step.content;
    result.last = step.what;
    shown += step.used;
    if (step.what == What::kBad) return result;
    REQUIRE((step.used != 0 || step.what == What::kEnd));
  }
  result.rest = input.substr(shown);
  return result;
}

TEST_CASE("content of a length ends where it says, and what follows is not touched",
          "[client][body]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U, 4U, 5U));
  Http1RequestBody body({.kind = http::BodyKind::kLength, .length = 500}, {});
  const std::string content(500, 'x');
  const Read got = read(body, content + "GET / HTTP/1.1", random);
  CHECK(body.is_done());
  CHECK(got.content == content);
  CHECK(got.rest == "GET / HTTP/1.1");
}

TEST_CASE("a request without content is done at once", "[client][body]") {
  CHECK(Http1RequestBody({.kind = http::BodyKind::kNone}, {}).is_done());
  CHECK(Http1RequestBody({.kind = http::BodyKind::kLength, .length = 0}, {}).is_done());
  CHECK_FALSE(Http1RequestBody({.kind = http::BodyKind::kChunked}, {}).is_done());
}

TEST_CASE("chunks give their content and their trailers, however they are cut", "[client][body]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U));
  std::string coded;
  std::string content;
  for (int i = 0; i < 8; ++i) {
    const std::string piece(1 + random() % 200, static_cast<char>('a' + i));
    char head[http::kChunkHeadMax];
    coded.append(head, http::write_chunk_head(piece.size(), head));
    coded += piece;
    coded += http::kChunkEnd;
    content += piece;
  }
  coded += "0\r\nCheck: sum\r\n\r\n";
  Http1RequestBody body({.kind = http::BodyKind::kChunked}, {});
  const Read got = read(body, coded + "next", random);
  CHECK(body.is_done());
  CHECK(got.last == What::kEnd);
  CHECK(got.content == content);
  CHECK(body.trailers() == "Check: sum\r\n");
  CHECK(got.rest == "next");
}

TEST_CASE("what is no chunk is bad, and so are trailers beyond the limit", "[client][body]") {
  std::mt19937_64 random(9);
  const std::string input =
      GENERATE(as<std::string>(), "zz\r\n", "5\nhello\r\n", "-1\r\n", "0\r\nLong: trailer\r\n\r\n");
  Http1RequestBody body({.kind = http::BodyKind::kChunked}, {.trailer_bytes_max = 5});
  CHECK(read(body, input, random).last == What::kBad);
  CHECK_FALSE(body.is_done());
}

}  // namespace
}  // namespace encore::server
