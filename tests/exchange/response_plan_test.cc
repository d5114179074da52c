#include "proxy/exchange/response_plan.h"

#include <memory>
#include <span>
#include <string>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using Content = ResponsePlan::Content;
using Framing = ClientStream::Framing;

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Type: text/plain\r\n"
    "ETag: \"a\"\r\n"
    "Content-Length: 1000\r\n";
constexpr MonotonicTime kPlanTime{std::chrono::hours(1)};

struct Case {
  explicit Case(std::string_view fields, std::string_view method = "GET") {
    std::string text(method);
    text += " http://a.example/x HTTP/1.1\nHost: a.example\n";
    text += fields;
    request = some_request(text);
    meta.status = 200;
    meta.head_bytes = kHead.size();
    meta.etag_offset = static_cast<std::uint32_t>(kHead.find("\"a\""));
    meta.etag_bytes = 3;
    meta.age_zero = kPlanTime - std::chrono::seconds(7);
    source.head = kHead;
    source.meta = &meta;
    source.length = 1000;
    source.has_age = true;
  }
  ResponsePlan plan() const {
    return plan_response(source, {.request = *request,
                                  .cache_status = status,
                                  .now = kPlanTime,
                                  .wall = WallTime{},
                                  .http_date = "Sun, 06 Nov 1994 08:49:40 GMT"});
  }

  std::shared_ptr<const RequestContext> request;
  http::StoredMeta meta;
  http::CacheStatus status{.hit = true};
  ResponseSource source;
};

TEST_CASE("a response says its age, its way and how the cache had it, and frames nothing",
          "[exchange][plan]") {
  const Case here("");
  const ResponsePlan plan = here.plan();
  CHECK(plan.status == 200);
  CHECK(plan.framing == Framing::kLength);
  CHECK(plan.content == Content::kWhole);
  std::string expected(kHead);
  expected += "Age: 7\r\n";
  expected += here.request->runtime->via_field_11;
  expected += "Cache-Status: encore; hit\r\n";
  CHECK(plan.head == expected);
}

TEST_CASE("what a client is sent follows from its conditions and its range", "[exchange][plan]") {
  struct Row {
    std::string fields;
    int status;
    Content content;
    std::size_t parts = 0;
  };
  const Row row = GENERATE(values<Row>({
      {"If-None-Match: \"a\"\n", 304, Content::kUnread},
      {"If-None-Match: \"b\"\n", 200, Content::kWhole},
      {"If-None-Match: \"a\"\nRange: bytes=0-1\n", 304, Content::kUnread},
      {"If-Match: \"b\"\n", 412, Content::kUnread},
      {"Range: bytes=0-9\n", 206, Content::kParts, 1},
      {"Range: bytes=-10\n", 206, Content::kParts, 1},
      {"Range: bytes=0-9,20-29\n", 206, Content::kParts, 2},
      {"Range: bytes=20-29,0-9\n", 206, Content::kParts, 2},
      {"Range: bytes=1000-\n", 416, Content::kUnread},
      {"Range: bytes=0-9\nIf-Range: \"a\"\n", 206, Content::kParts, 1},
      {"Range: bytes=0-9\nIf-Range: \"b\"\n", 200, Content::kWhole},
      {"Range: lines=0-9\n", 200, Content::kWhole},
      {"Range: bytes=0-9\nRange: bytes=0-9\n", 200, Content::kWhole},
  }));
  CAPTURE(row.fields);
  const ResponsePlan plan = Case(row.fields).plan();
  CHECK(plan.status == row.status);
  CHECK(plan.content == row.content);
  CHECK(plan.parts.size() == row.parts);
  CHECK((plan.framing == Framing::kNone) == (row.content == Content::kUnread));
  CHECK(plan.head.starts_with("HTTP/1.1 " + std::to_string(row.status) + " "));
}

TEST_CASE("a HEAD is answered as a GET would be, without content and without ranges",
          "[exchange][plan]") {
  const ResponsePlan whole = Case("Range: bytes=0-1\n", "HEAD").plan();
  CHECK(whole.status == 200);
  CHECK(whole.framing == Framing::kNone);
  CHECK(whole.content == Content::kUnread);
  CHECK(whole.head.find("Content-Length: 1000\r\n") != std::string::npos);
  CHECK(Case("If-None-Match: \"a\"\n", "HEAD").plan().status == 304);
}

TEST_CASE("parts and what stands between them make the length that the head says",
          "[exchange][plan]") {
  const ResponsePlan plan = Case("Range: bytes=0-9,100-199\n").plan();
  std::size_t bytes = plan.end.size();
  for (const auto& part : plan.parts) bytes += part.text.size() + part.range.end - part.range.begin;
  CHECK(plan.head.find("Content-Length: " + std::to_string(bytes) + "\r\n") != std::string::npos);
  // Another boundary each time.
  CHECK(Case("Range: bytes=0-9,100-199\n").plan().end != plan.end);
}

TEST_CASE("what is not the whole representation, or is no 200, is not cut", "[exchange][plan]") {
  Case part("Range: bytes=0-9\nIf-None-Match: \"a\"\n");
  part.source.whole = false;
  CHECK(part.plan().status == 200);
  Case other("Range: bytes=0-9\nIf-None-Match: \"a\"\n");
  other.meta.status = 404;
  CHECK(other.plan().status == 404);
  Case post("Range: bytes=0-9\nContent-Length: 0\n", "POST");
  CHECK(post.plan().content == Content::kWhole);
}

TEST_CASE("a response without content has none, whatever its source has", "[exchange][plan]") {
  Case here("");
  here.meta.status = GENERATE(as<std::uint16_t>(), 204, 304);
  const ResponsePlan plan = here.plan();
  CHECK(plan.framing == Framing::kNone);
  // It is not left before its end: what comes of it may be stored.
  CHECK(plan.content == Content::kNone);
}

TEST_CASE("stored trailers go to whom they were promised to, in a form that carries them",
          "[exchange][plan]") {
  Case with("TE: trailers\nConnection: TE\n");
  with.source.stored_trailers = "Check: sum\r\n";
  const ResponsePlan plan = with.plan();
  CHECK(plan.framing == Framing::kOpen);
  CHECK(plan.content == Content::kWhole);
  CHECK(plan.trailers == "Check: sum\r\n");
  CHECK(plan.head.find("Content-Length") == std::string::npos);
  Case without("");
  without.source.stored_trailers = "Check: sum\r\n";
  CHECK(without.plan().framing == Framing::kLength);
}

// A body without a length, of which ten bytes have come.
struct Growing {
  explicit Growing(std::string_view fields) : here(fields) {
    auto made = store::make_memory_store({.limit_bytes = 64U << 20U});
    REQUIRE(made.has_value());
    store = std::move(*made);
    auto room = store->make_body({});
    REQUIRE(room.has_value());
    body = std::move(*room);
    REQUIRE(body->append(std::as_bytes(std::span(std::string_view("0123456789")))) == 10);
    here.source.length.reset();
    here.source.body = body;
    here.source.may_wait = true;
  }
  ~Growing() { body->complete(); }
  ResponsePlan plan() const { return here.plan(); }

  std::unique_ptr<store::Store> store;
  store::BodyRef body;
  Case here;
};

TEST_CASE("of a body that grows, ranges that are there are cut, and others wait",
          "[exchange][plan][rfc9110][14.4]") {
  struct Row {
    std::string range;
    int status;
    Content content;
    std::string says = {};
  };
  const Row row = GENERATE(values<Row>({
      {"bytes=5-9", 206, Content::kParts, "Content-Range: bytes 5-9/*\r\nContent-Length: 5\r\n"},
      {"bytes=0-0", 206, Content::kParts, "Content-Range: bytes 0-0/*\r\n"},
      {"bytes=0-1,8-9", 206, Content::kParts, "multipart/byteranges"},
      {"bytes=5-10", 0, Content::kLater},
      {"bytes=20-30", 0, Content::kLater},
      {"bytes=-1", 0, Content::kLater},
      {"bytes=5-", 0, Content::kLater},
      {"bytes=0-0,-1", 0, Content::kLater},
      {"bytes=0-", 200, Content::kRest},
      {"bytes=8-9,0-1", 200, Content::kRest},
      {"bytes=9-8", 200, Content::kRest},
  }));
  CAPTURE(row.range);
  const ResponsePlan plan = Growing("Range: " + row.range + "\n").plan();
  CHECK(plan.status == row.status);
  CHECK(plan.content == row.content);
  CHECK(plan.head.find(row.says) != std::string::npos);
  CHECK(plan.head.find("/10") == std::string::npos);
}

TEST_CASE("what does not wait any more is sent all of what grows", "[exchange][plan]") {
  Growing growing("Range: bytes=5-10\n");
  growing.here.source.may_wait = false;
  CHECK(growing.plan().status == 200);
  CHECK(growing.plan().content == Content::kRest);
}

TEST_CASE("once the body has ended its length is known", "[exchange][plan][rfc9110][14.4]") {
  Growing cut("Range: bytes=5-100\n");
  cut.body->complete();
  CHECK(cut.plan().status == 206);
  CHECK(cut.plan().head.find("Content-Range: bytes 5-9/10\r\n") != std::string::npos);
  Growing suffix("Range: bytes=-3\n");
  suffix.body->complete();
  CHECK(suffix.plan().head.find("Content-Range: bytes 7-9/10\r\n") != std::string::npos);
  Growing beyond("Range: bytes=10-\n");
  beyond.body->complete();
  CHECK(beyond.plan().status == 416);
  CHECK(beyond.plan().head.find("Content-Range: bytes */10\r\n") != std::string::npos);
}

TEST_CASE("of a body that broke off, what has come is cut, and no length is said",
          "[exchange][plan]") {
  Growing there("Range: bytes=5-9\n");
  there.body->abort();
  CHECK(there.plan().head.find("Content-Range: bytes 5-9/*\r\n") != std::string::npos);
  Growing beyond("Range: bytes=5-10\n");
  beyond.body->abort();
  CHECK(beyond.plan().content == Content::kLater);
}

TEST_CASE("conditions on a body that grows are answered at once", "[exchange][plan]") {
  CHECK(Growing("Range: bytes=-1\nIf-None-Match: \"a\"\n").plan().status == 304);
  CHECK(Growing("Range: bytes=-1\nIf-Range: \"b\"\n").plan().status == 200);
  CHECK(Growing("Range: bytes=-1\nIf-Range: \"a\"\n").plan().content == Content::kLater);
}

TEST_CASE("a range of a stored part is cut by where the part lies", "[exchange][plan]") {
  const Case here("Range: bytes=120-129\n");
  const http::ContentRange stored{http::ByteRange{100, 200}, 1000};
  const ResponsePlan plan = plan_stored_part(here.source,
                                             {.request = *here.request,
                                              .cache_status = here.status,
                                              .now = kPlanTime,
                                              .wall = WallTime{},
                                              .http_date = {}},
                                             stored, {120, 130});
  CHECK(plan.status == 206);
  REQUIRE(plan.parts.size() == 1);
  CHECK(plan.parts[0].range.begin == 20);
  CHECK(plan.parts[0].range.end == 30);
  CHECK(plan.head.find("Content-Range: bytes 120-129/1000\r\n") != std::string::npos);
  // The stored fields are those of the whole.
  CHECK(plan.head.find("Content-Type: text/plain\r\n") != std::string::npos);
  CHECK(plan.head.find("ETag: \"a\"\r\n") != std::string::npos);
}

}  // namespace
}  // namespace encore::server
