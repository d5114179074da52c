// A reader that the others of a shared transfer do not wait for goes on by itself, or ends.
#include "proxy/exchange/exchange.h"

#include <chrono>
#include <string>
#include <vector>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"

namespace encore::server {
namespace {

using ContinueEnd = ClientStream::End;

struct OtherReader final : TransferReader {
  explicit OtherReader(TransferHome& home) : TransferReader(home) {}
  void on_transfer() override {}
  void on_interim(std::string_view) override {}
};

config::Config without_kernel() {
  config::Config config;
  config.cache.cache_status_admission = false;
  return config;
}

std::shared_ptr<SharedResponse> response_of(std::string_view head, int status,
                                            std::optional<std::uint64_t> length) {
  auto response = std::make_shared<SharedResponse>();
  response->head = head;
  response->common_bytes = response->head.size();
  response->meta.status = static_cast<std::uint16_t>(status);
  response->length = length;
  response->shareable = true;
  return response;
}

constexpr std::string_view kText = "0123456789abcdefghij";
constexpr std::string_view kTagged = "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 20\r\n";

// A client that has read the first four of ten bytes that are there.
struct Reading {
  struct Shape {
    std::string request = {};
    std::string head = std::string(kTagged);
    std::optional<std::uint64_t> length = 20;
    bool whole = true;
  };
  explicit Reading(const Shape& shape)
      : memory(*store::make_memory_store({.limit_bytes = 64U << 20U})),
        body(*memory->make_body({})),
        rest(*memory->make_body({})),
        fixture("GET http://a.example/x HTTP/1.1\nHost: a.example\n" + shape.request,
                without_kernel()) {
    fixture.stream.status = ClientStream::Status::kBlocked;
    fixture.exchange->start();
    REQUIRE(fixture.origins.transfers.size() == 1);
    std::string names;
    const http::Fields no_fields;
    const http::VaryOptions options;
    const http::VariantKeys own(no_fields, options);
    REQUIRE(transfer().join(other, own, JoinScope::kAny, names) == JoinOutcome::kBeforeHead);
    auto response = response_of(shape.head, 200, shape.length);
    response->whole = shape.whole;
    append(*body, kText.substr(0, 10));
    transfer().publish_response(response, body, Joinable::kToRead);
    REQUIRE(fixture.stream.begun);
    heard = read(4);
    fixture.exchange->on_writable();
    transfer().mark_opened(other);
    transfer().advance(other, 10);
  }
  explicit Reading() : Reading(Shape()) {}
  ~Reading() {
    if (!fixture.stream.ended) fixture.exchange->on_gone();
    transfer().leave(other);
    if (body->state() == store::BodyState::kGrowing) body->complete();
    if (rest->state() == store::BodyState::kGrowing) rest->complete();
  }
  Transfer& transfer() { return *fixture.origins.transfers[0]; }
  Transfer& second() { return *fixture.origins.transfers.at(1); }
  static void append(store::Body& to, std::string_view text) {
    REQUIRE(to.append(std::as_bytes(std::span(text))) == text.size());
  }
  std::string read(std::size_t bytes) {
    std::string out;
    std::vector<iovec> room(8);
    while (out.size() < bytes) {
      const auto peeked = fixture.stream.content->peek(room, bytes - out.size());
      if (peeked.bytes == 0) break;
      for (std::size_t i = 0; i < peeked.parts; ++i) {
        out.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      fixture.stream.content->advance(peeked.bytes);
    }
    return out;
  }
  // The other has waited for it.
  void blame() {
    REQUIRE(transfer().blame_slowest(
        {.written = 10, .elapsed = std::chrono::seconds(2), .now = fixture.loop->now()}));
  }
  void leave_behind() {
    blame();
    transfer().publish_body();
    // Its client has taken all that was given to it.
    fixture.stream.status = ClientStream::Status::kWaiting;
  }
  void answer(std::string_view head, int status, std::optional<std::uint64_t> length,
              std::string_view text) {
    append(*rest, text);
    auto response = response_of(head, status, length);
    response->whole = false;
    second().publish_response(response, rest, Joinable::kNo);
  }
  std::string field_of_second(http::FieldId id) {
    return std::string(fixture.origins.requests.at(1)->head.fields.value(id));
  }
  void check_cut() {
    CHECK(fixture.stream.ended == ContinueEnd::kReset);
    CHECK(fixture.stats.slow_readers_cut.get() == 1);
    CHECK(fixture.ended_as(Outcome::kSlowReader) == 1);
  }

  std::unique_ptr<store::Store> memory;
  store::BodyRef body;
  store::BodyRef rest;
  ExchangeFixture fixture;
  OtherReader other{fixture.home};
  std::string heard;
};

TEST_CASE("a reader that is left behind asks its origin for the bytes that it lacks",
          "[exchange][continue]") {
  Reading r;
  CHECK(r.heard == "0123");
  CHECK(r.fixture.origins.asks.size() == 1);
  r.leave_behind();
  REQUIRE(r.fixture.origins.asks.size() == 2);
  CHECK(r.fixture.origins.asks[1].what == OriginRequestForm::kAsItIs);
  CHECK(r.fixture.origins.asks[1].table == OriginFetchOptions::Table::kNotIn);
  CHECK(r.field_of_second(http::FieldId::kRange) == "bytes=4-");
  CHECK(r.field_of_second(http::FieldId::kIfRange) == "\"v\"");
  CHECK(r.fixture.stats.slow_readers_continued.get() == 1);
  CHECK(r.fixture.stats.slow_readers_cut.get() == 0);
  CHECK_FALSE(r.fixture.stream.ended);
  CHECK(r.second().has_readers());
  CHECK_FALSE(r.second().can_be_found());
  // It holds nobody back any more.
  CHECK(r.transfer().slowest_position(10) == 10);
  CHECK_FALSE(r.transfer().is_read_by_several());
  CHECK(r.read(100).empty());
  r.transfer().publish_body();
  r.second().publish_body();  // nothing yet
  CHECK_FALSE(r.fixture.stream.ended);
  r.answer(
      "HTTP/1.1 206 Partial Content\r\nETag: \"v\"\r\nContent-Range: bytes 4-19/20\r\n"
      "Content-Length: 16\r\n",
      206, 16, kText.substr(4, 10));
  CHECK_FALSE(r.fixture.stream.ended);
  CHECK(r.heard + r.read(100) == kText.substr(0, 14));
  Reading::append(*r.rest, kText.substr(14));
  r.rest->complete();
  r.second().publish_body();
  CHECK(r.read(100) == kText.substr(14));
  r.fixture.stream.status = ClientStream::Status::kDone;
  r.fixture.exchange->on_writable();
  CHECK(r.fixture.stream.ended == ContinueEnd::kDone);
  CHECK_FALSE(r.second().has_readers());
  CHECK(r.fixture.origins.asks.size() == 2);
  CHECK(r.fixture.stats.slow_readers_cut.get() == 0);
  CHECK(r.fixture.ended_as(Outcome::kUncacheable) == 1);
  CHECK(r.fixture.reason_of(Outcome::kUncacheable) == "continued");
}

TEST_CASE("a reader that is left behind lets only the rest of its response come",
          "[exchange][continue]") {
  struct Row {
    const char* head;
    int status;
    std::uint64_t length;
  };
  const Row row = GENERATE(values<Row>({
      {"HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 20\r\n", 200, 20},
      {"HTTP/1.1 206 Partial Content\r\nETag: \"w\"\r\nContent-Range: bytes 4-19/20\r\n", 206, 16},
      {"HTTP/1.1 206 Partial Content\r\nETag: \"v\"\r\nContent-Range: bytes 5-19/20\r\n", 206, 15},
      {"HTTP/1.1 206 Partial Content\r\nETag: \"v\"\r\nContent-Range: bytes 4-20/21\r\n", 206, 17},
      {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n", 404, 0},
  }));
  CAPTURE(row.head);
  Reading r;
  r.leave_behind();
  r.answer(row.head, row.status, row.length, "");
  r.check_cut();
  CHECK_FALSE(r.second().has_readers());
}

TEST_CASE("a reader that is left behind ends where its origin says nothing",
          "[exchange][continue]") {
  Reading r;
  r.leave_behind();
  r.second().publish_failure({});
  r.check_cut();
  CHECK(r.fixture.stats.slow_readers_continued.get() == 1);
}

TEST_CASE("a client that goes while its reader is alone leaves the origin",
          "[exchange][continue]") {
  Reading r;
  r.leave_behind();
  r.fixture.exchange->on_gone();
  r.fixture.stream.ended = ContinueEnd::kReset;  // it receives nothing more
  CHECK_FALSE(r.second().has_readers());
  CHECK(r.fixture.ended_as(Outcome::kClientAborted) == 1);
}

TEST_CASE("a reader whose rest cannot be told from another's is cut", "[exchange][continue]") {
  Reading::Shape shape;
  switch (GENERATE(range(0, 5))) {
    case 0:  // no tag
      shape.head = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n";
      break;
    case 1:
      shape.head = "HTTP/1.1 200 OK\r\nETag: W/\"v\"\r\nContent-Length: 20\r\n";
      break;
    case 2:
      shape.head += "Accept-Ranges: none\r\n";
      break;
    case 3:
      shape.whole = false;
      break;
    default:  // trailers may follow
      shape.request = "TE: trailers\n";
      shape.head = "HTTP/1.1 200 OK\r\nETag: \"v\"\r\n";
      shape.length = std::nullopt;
      break;
  }
  CAPTURE(shape.head);
  Reading r(shape);
  r.leave_behind();
  CHECK(r.fixture.origins.asks.size() == 1);
  CHECK(r.fixture.stats.slow_readers_continued.get() == 0);
  r.check_cut();
}

TEST_CASE("trailers keep a reader only where no length is known", "[exchange][continue]") {
  Reading::Shape shape;
  if (GENERATE(true, false)) {
    shape.request = "TE: trailers\n";
  } else {
    shape.head = "HTTP/1.1 200 OK\r\nETag: \"v\"\r\n";
    shape.length = std::nullopt;
  }
  CAPTURE(shape.head);
  Reading r(shape);
  r.leave_behind();
  REQUIRE(r.fixture.origins.asks.size() == 2);
  CHECK(r.field_of_second(http::FieldId::kRange) == "bytes=4-");
}

TEST_CASE("a date may prove the rest of a reader as well", "[exchange][continue]") {
  Reading::Shape shape;
  shape.head =
      "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 09:49:37 GMT\r\n"
      "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 20\r\n";
  Reading r(shape);
  r.leave_behind();
  REQUIRE(r.fixture.origins.asks.size() == 2);
  CHECK(r.field_of_second(http::FieldId::kIfRange) == "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST_CASE("a reader that has all of its bytes only leaves the others", "[exchange][continue]") {
  Reading r;
  r.blame();
  Reading::append(*r.body, kText.substr(10));
  CHECK(r.heard + r.read(100) == kText);
  r.transfer().publish_body();
  CHECK_FALSE(r.fixture.stream.ended);
  CHECK_FALSE(r.transfer().is_read_by_several());
  CHECK(r.fixture.origins.asks.size() == 1);
  CHECK(r.fixture.stats.slow_readers_continued.get() == 0);
  r.fixture.stream.status = ClientStream::Status::kDone;
  r.fixture.exchange->on_writable();
  CHECK(r.fixture.stream.ended == ContinueEnd::kDone);
  CHECK(r.fixture.stats.slow_readers_cut.get() == 0);
}

}  // namespace
}  // namespace encore::server
