#include "proxy/transfer/response.h"

#include "base/recycled.h"
#include "proxy/http/parser.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

TEST_CASE("a response that is used again holds nothing of the one before", "[server][recycled]") {
  for (int round = 0; round < 3; ++round) {
    const auto response = make_reused<SharedResponse>();
    CHECK(response->head.empty());
    CHECK_FALSE(response->length);
    CHECK(response->names.empty());
    CHECK(response->trailers.empty());
    CHECK(response->whole);
    CHECK(response->stored == false);
    CHECK_FALSE(response->shareable);
    response->head = std::string(round == 1 ? 2 * kReusedTextMax : 100, 'h');
    response->length = 7;
    response->names = "accept";
    response->trailers = "A: b\r\n";
    response->whole = false;
    response->stored = response->shareable = true;
  }
}

TEST_CASE("a head taken along to a copy of its bytes views the copy alone", "[server][recycled]") {
  const std::string text =
      "GET http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nX-A:  b \r\n\r\n";
  http::RequestHead head;
  http::ParseProgress progress;
  http::ParseError error;
  REQUIRE(http::parse_request(text, http::Limits{}, progress, head, error) ==
          http::ParseStatus::kComplete);
  http::Target target;
  REQUIRE(http::resolve_target(head, http::Scheme::kHttp, target) == http::TargetStatus::kOk);
  std::string copy = text;
  const http::Rebase rebase{text, copy};
  http::RequestHead moved = head;
  moved.rebase(rebase);
  http::Target moved_target = target;
  moved_target.rebase(rebase);
  const auto inside = [&](std::string_view view) {
    return view.data() >= copy.data() && view.data() + view.size() <= copy.data() + copy.size();
  };
  CHECK(inside(moved.method_text));
  CHECK(inside(moved.target));
  CHECK(moved.target == head.target);
  REQUIRE(moved.fields.size() == head.fields.size());
  for (const http::Field& field : moved.fields) {
    CHECK(inside(field.name));
    CHECK(inside(field.value));
  }
  CHECK(moved.fields.begin()[1].value == "b");
  CHECK(inside(moved_target.authority.host));
  CHECK(moved_target.path == "/p");
  CHECK(inside(moved_target.path));
  CHECK(inside(moved_target.query));
  std::string_view literal = "elsewhere";
  const char* const before = literal.data();
  rebase(literal);
  CHECK(literal.data() == before);
}

TEST_CASE("the place of a content type is that in its head, and none is left of another",
          "[server][response]") {
  ObjectMeta meta;
  const auto placed = [&](std::string_view head) {
    place_content_type(head, meta);
    return std::string(head.substr(meta.type_offset, meta.type_bytes));
  };
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n") == "text/html");
  CHECK(placed("HTTP/1.1 200 OK\r\nVia: 1.1 a\r\n").empty());
  CHECK(meta.type_offset == 0);
  CHECK(placed("HTTP/1.1 200 OK\r\nVia: 1.1 a\r\nContent-Type: a/b\r\n") == "a/b");
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Type: \r\n").empty());
  CHECK(placed("HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\ncontent-TYPE: a/b\r\nE: f\r\n") == "a/b");
  // The first of two.
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n") == "a/b");
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Type: \r\nContent-Type: c/d\r\n").empty());
  // Other names of its length, longer ones, and values with its name in them.
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Typo: a/b\r\n").empty());
  CHECK(placed("HTTP/1.1 200 OK\r\nContent-Type-X: a/b\r\n").empty());
  CHECK(placed("HTTP/1.1 200 OK\r\nX-Content-Type: a/b\r\n").empty());
  CHECK(placed("HTTP/1.1 200 OK\r\nX: Content-Type: a/b\r\n").empty());
  CHECK(placed("HTTP/1.1 200 Content-Type: a/b\r\n").empty());
  // Too long to be noted.
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(70'000, 't') + "\r\n";
  CHECK(placed(head).empty());
}

TEST_CASE("of trailers those are passed on that may be, and that nobody drops",
          "[server][response]") {
  std::string out = "something before";
  const auto drops = [](const http::Field& field) { return field.name == "X-Drop"; };
  CHECK(forwardable_trailers("X-A: 1\r\nContent-Length: 5\r\nX-Drop: 2\r\nX-B: 3\r\n", {}, drops,
                             out));
  CHECK(out == "X-A: 1\r\nX-B: 3\r\n");
  CHECK(forwardable_trailers("", {}, drops, out));
  CHECK(out.empty());
  CHECK_FALSE(forwardable_trailers("no field\r\n", {}, drops, out));
}

}  // namespace
}  // namespace encore::server
