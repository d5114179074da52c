// Exchanges that are answered without an origin, or whose content is refused.
#include "proxy/exchange/exchange.h"

#include <array>
#include <chrono>
#include <string>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"

namespace encore::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using AnswerEnd = ClientStream::End;
using Demand = Exchange::ContentDemand;

// Takes content, as the fetch does.
struct FakeProducer final : Producer {
  void on_readers_changed() override {}
  void on_reader_advanced() override {}
  bool accepts_upload() const override { return accepts; }
  bool takes_rest() const override { return takes; }
  void upload(std::string_view content, bool last, std::string_view trailers) override {
    taken += content;
    ended += last ? 1 : 0;
    lines += trailers;
  }
  bool accepts = true;
  bool takes = false;
  std::string taken;
  int ended = 0;
  std::string lines;
};

const std::string kChunkedPost =
    "POST http://a.example/ HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked\n";
const std::string kLongPost =
    "POST http://a.example/ HTTP/1.1\nHost: a.example\nContent-Length: 100\n";

// An exchange whose origin takes its content.
struct Uploading {
  explicit Uploading(const std::string& text, const config::Config& config = {})
      : fixture(text, config) {
    fixture.exchange->start();
    REQUIRE(fixture.origins.transfers.size() == 1);
    CHECK(fixture.exchange->content_demand() == Demand::kLater);
    transfer().set_producer(&producer);
    transfer().publish_upload_ready();
    CHECK(fixture.stream.wanted == 1);
  }
  ~Uploading() {
    if (!fixture.stream.ended) fixture.exchange->on_gone();
    transfer().set_producer(nullptr);
  }
  Transfer& transfer() { return *fixture.origins.transfers[0]; }
  void respond(ClientStream::Status status) {
    fixture.stream.status = status;
    auto response = std::make_shared<SharedResponse>();
    response->head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    response->common_bytes = response->head.size();
    response->meta.status = 200;
    response->length = 0;
    response->outcome = Outcome::kMethod;
    response->reason = http::StoreReason::kMethod;
    transfer().publish_response(response, {}, Joinable::kNo);
    REQUIRE(fixture.stream.begun);
  }
  std::string_view head() const { return fixture.stream.response.head; }

  FakeProducer producer;
  ExchangeFixture fixture;
};

TEST_CASE("a request that may go no further is answered here", "[exchange]") {
  ExchangeFixture fixture("OPTIONS http://a.example/ HTTP/1.1\nHost: a.example\nMax-Forwards: 0\n");
  fixture.exchange->start();
  const std::string& head = fixture.stream.response.head;
  CHECK(head.starts_with("HTTP/1.1 204 No Content\r\nAllow: "));
  CHECK(head.find("\r\nCache-Status: encore; detail=max-forwards\r\n") != std::string::npos);
  CHECK(head.find("\r\nVia: 1.1 ") != std::string::npos);
  CHECK(fixture.stream.response.framing == ClientStream::Framing::kNone);
  CHECK(fixture.stream.ended == AnswerEnd::kDone);
  CHECK(fixture.origins.asks.empty());
  CHECK(fixture.ended_as(Outcome::kMethod) == 1);
}

TEST_CASE("a request that goes over to another protocol is edited by its rule", "[exchange]") {
  config::Config config;
  config::Rule rule;
  rule.response_set = {"X-Said: yes"};
  config.rule = {rule};
  ExchangeFixture fixture(
      "GET http://a.example/x HTTP/1.1\nHost: a.example\nConnection: upgrade\nUpgrade: raw/1\n",
      config);
  fixture.exchange->start();
  fixture.origins.transfers.at(0)->publish_switched(
      {.head = "HTTP/1.1 101 Go\r\nX-Own: 1\r\n\r\n"});
  REQUIRE(fixture.stream.switched);
  CHECK(fixture.stream.switched->head == "HTTP/1.1 101 Go\r\nX-Own: 1\r\nX-Said: yes\r\n\r\n");
}

// A rule's Cache-Control for clients is for what a shared cache may store, or confirms.
TEST_CASE("a response that is one user's has no cache-control of a rule", "[exchange][rules]") {
  struct Case {
    std::string request;
    int status;
    http::StoreReason reason;
    bool is_edited;
  };
  const std::string get = "GET http://a.example/x HTTP/1.1\nHost: a.example\n";
  const std::string post = "POST http://a.example/x HTTP/1.1\nHost: a.example\nContent-Length: 0\n";
  const std::string known = get + "Authorization: Basic YTpi\n";
  using http::StoreReason;
  const auto tried = GENERATE_REF(values<Case>({
      {get, 200, StoreReason::kOk, true},
      {get, 200, StoreReason::kPrivate, false},
      {known, 200, StoreReason::kOk, true},
      {known, 200, StoreReason::kPrivate, false},
      {get, 304, StoreReason::kStatus, true},
      {known, 304, StoreReason::kStatus, false},
      {get, 404, StoreReason::kStatus, false},
      {get + "Connection: upgrade\nUpgrade: raw/1\n", 304, StoreReason::kStatus, false},
  }));
  CAPTURE(tried.request, tried.status);
  config::Config config;
  config::Rule rule;
  rule.client_cache_control = "max-age=5";
  config.rule = {rule};
  ExchangeFixture fixture(tried.request, config);
  fixture.exchange->start();
  REQUIRE(fixture.origins.transfers.size() == 1);
  auto response = std::make_shared<SharedResponse>();
  response->head = "HTTP/1.1 " + std::to_string(tried.status) +
                   " Some\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n";
  response->common_bytes = response->head.size();
  response->meta.status = static_cast<std::uint16_t>(tried.status);
  response->length = 0;
  response->outcome = Outcome::kMethod;
  response->reason = tried.reason;
  fixture.origins.transfers[0]->publish_response(response, {}, Joinable::kNo);
  REQUIRE(fixture.stream.begun);
  const std::string_view head = fixture.stream.response.head;
  CHECK((head.find("\r\nCache-Control: max-age=5\r\n") != std::string::npos) == tried.is_edited);
  CHECK((head.find("\r\nCache-Control: max-age=60\r\n") == std::string::npos) == tried.is_edited);
  if (!fixture.stream.ended) fixture.exchange->on_gone();
}

TEST_CASE("an origin that moves is active until it has answered, or is quiet", "[exchange]") {
  Uploading u(kChunkedPost);
  // Its content may still come.
  CHECK_FALSE(u.fixture.exchange->is_origin_active());
  u.fixture.exchange->on_content_end({});
  CHECK(u.producer.ended == 1);
  CHECK(u.fixture.exchange->is_origin_active());
  u.transfer().set_motion(Transfer::Motion::kQuiet);
  CHECK_FALSE(u.fixture.exchange->is_origin_active());
  u.transfer().set_motion(Transfer::Motion::kMoving);
  CHECK(u.fixture.exchange->is_origin_active());
  u.respond(ClientStream::Status::kBlocked);
  CHECK_FALSE(u.fixture.exchange->is_origin_active());
}

TEST_CASE("content goes to the origin as it comes, with its end and its trailers", "[exchange]") {
  Uploading u(kChunkedPost);
  CHECK(u.fixture.exchange->content_demand() == Demand::kNow);
  u.fixture.exchange->on_content("some");
  u.producer.accepts = false;
  CHECK(u.fixture.exchange->content_demand() == Demand::kLater);
  u.producer.accepts = true;
  u.fixture.exchange->on_content(" more");
  CHECK(u.producer.taken == "some more");
  CHECK(u.producer.ended == 0);
  u.fixture.exchange->on_content_end("X-Sum: 1\r\nConnection: close\r\n");
  CHECK(u.producer.ended == 1);
  CHECK(u.producer.lines == "X-Sum: 1\r\n");
  u.fixture.exchange->on_content_end({});  // it has ended already
  CHECK(u.producer.ended == 1);
}

TEST_CASE("content that is too large, or no content, is refused", "[exchange]") {
  config::Config config;
  config.limits.request_body_bytes = 4;
  Uploading u(kChunkedPost, config);
  u.fixture.exchange->on_content("four");
  CHECK(u.producer.taken == "four");
  REQUIRE_FALSE(u.fixture.stream.begun);
  std::string detail;
  int status = 0;
  SECTION("one byte too many") {
    u.fixture.exchange->on_content("5");
    status = 413;
    detail = "request-body-too-large";
  }
  SECTION("a trailer that is none") {
    u.fixture.exchange->on_content_end("no trailer\r\n");
    status = 400;
    detail = "bad-trailer";
  }
  CHECK(u.producer.taken == "four");
  CHECK(u.producer.ended == 0);
  CHECK(u.head().starts_with("HTTP/1.1 " + std::to_string(status) + " "));
  CHECK(u.head().find("; detail=" + detail + "\r\n") != std::string_view::npos);
  CHECK(u.fixture.stream.response.further == ClientStream::Further::kNone);
  CHECK(u.fixture.stream.ended == AnswerEnd::kDone);
  CHECK_FALSE(u.transfer().has_readers());
  CHECK(u.fixture.ended_as(Outcome::kBadRequest) == 1);
  CHECK(u.fixture.reason_of(Outcome::kBadRequest) == detail);
}

TEST_CASE("content that is refused within the response leaves that broken", "[exchange]") {
  Uploading u(kLongPost);
  u.respond(ClientStream::Status::kBlocked);
  u.fixture.exchange->on_content_broken("bad-chunk");
  CHECK(u.fixture.stream.ended == AnswerEnd::kBroken);
  CHECK(u.fixture.ended_as(Outcome::kBadRequest) == 1);
  CHECK(u.fixture.ended_as(Outcome::kMethod) == 0);
}

TEST_CASE("a client that brings no content in time is answered so", "[exchange]") {
  config::Config config;
  config.timeouts.client_body = seconds(7);
  config.limits.client_body_rate_min = 0;
  Uploading u(kLongPost, config);
  const MonotonicTime now = u.fixture.loop->now();
  SECTION("though it may") {
    u.fixture.exchange->check_timeouts(now + seconds(7) - milliseconds(1));
    CHECK_FALSE(u.fixture.stream.begun);
    u.fixture.exchange->check_timeouts(now + seconds(7) + milliseconds(1));
    CHECK(u.head().starts_with("HTTP/1.1 408 "));
    CHECK(u.head().find("; detail=request-timeout\r\n") != std::string_view::npos);
    CHECK(u.fixture.stream.ended == AnswerEnd::kDone);
    CHECK_FALSE(u.transfer().has_readers());
    CHECK(u.fixture.ended_as(Outcome::kBadRequest) == 1);
  }
  SECTION("but not if nobody would take it") {
    u.producer.accepts = false;
    u.fixture.exchange->check_timeouts(now + std::chrono::hours(1));
    CHECK_FALSE(u.fixture.stream.begun);
  }
}

TEST_CASE("the rest of the content is taken behind a whole response, to a limit", "[exchange]") {
  config::Config config;
  config.limits.body_behind_response_bytes = 6;
  config.timeouts.client_body = seconds(7);
  config.limits.client_body_rate_min = 0;
  Uploading u(kLongPost, config);
  u.fixture.exchange->on_content("before");
  u.producer.takes = true;
  u.respond(ClientStream::Status::kDone);
  CHECK(u.fixture.stream.response.further == ClientStream::Further::kBehindContent);
  REQUIRE_FALSE(u.fixture.stream.ended);
  CHECK(u.fixture.exchange->content_demand() == Demand::kNow);
  u.fixture.exchange->on_content("behind");
  CHECK(u.producer.taken == "beforebehind");
  REQUIRE_FALSE(u.fixture.stream.ended);
  std::string detail;
  SECTION("one byte too many ends it") {
    u.fixture.exchange->on_content("!");
    detail = "body-behind-response";
  }
  SECTION("silence ends it") {
    const MonotonicTime now = u.fixture.loop->now();
    u.fixture.exchange->check_timeouts(now + seconds(7) - milliseconds(1));
    REQUIRE_FALSE(u.fixture.stream.ended);
    u.fixture.exchange->check_timeouts(now + seconds(7) + milliseconds(1));
    detail = "request-timeout";
  }
  SECTION("silence for which nobody waits does not") {
    u.producer.accepts = false;
    u.fixture.exchange->check_timeouts(u.fixture.loop->now() + std::chrono::hours(1));
    REQUIRE_FALSE(u.fixture.stream.ended);
    u.fixture.exchange->on_content_broken("bad-chunk");
    detail = "bad-chunk";
  }
  SECTION("an origin that takes no more ends it") {
    u.transfer().set_producer(nullptr);
    u.transfer().publish_upload_ready();
    u.fixture.loop->turn();
    detail = "method";  // why it is not stored
  }
  CHECK(u.producer.taken == "beforebehind");
  CHECK(u.fixture.stream.ended == AnswerEnd::kDone);
  CHECK(u.fixture.ended_as(Outcome::kMethod) == 1);
  CHECK(u.fixture.reason_of(Outcome::kMethod) == detail);
}

TEST_CASE("the end of the content behind a response ends its exchange", "[exchange]") {
  const bool has_length = GENERATE(true, false);
  Uploading u(has_length ? "POST http://a.example/ HTTP/1.1\nHost: a.example\nContent-Length: 5\n"
                         : kChunkedPost);
  u.producer.takes = true;
  u.respond(ClientStream::Status::kDone);
  u.fixture.exchange->on_content("hello");
  if (!has_length) u.fixture.exchange->on_content_end({});
  CHECK(u.producer.ended == 1);
  u.fixture.loop->turn();
  CHECK(u.fixture.stream.ended == AnswerEnd::kDone);
  CHECK(u.fixture.ended_as(Outcome::kMethod) == 1);
}

struct FakePurger final : Purger {
  void purge(std::shared_ptr<Transfer> transfer, PurgeRequest) override {
    asked = std::move(transfer);
  }
  std::shared_ptr<Transfer> asked;
};

config::Config purging() {
  config::Config config;
  config.listen.front().mode = config::Mode::kReverse;
  config.listen.front().purge_clients = {"127.0.0.0/8"};
  return config;
}

TEST_CASE("a purge that cannot be understood is refused with the reason, and what there is to say",
          "[exchange][purge]") {
  struct Row {
    std::string fields;
    std::string reason;
    std::string why;  // in the response, behind the reason
  };
  const Row row = GENERATE(values<Row>({
      {"X-Purge-Regex: " + std::string(kPurgePatternBytesMax + 1, 'x') + "\n", "pattern-too-long",
       ""},
      {"X-Cache-Tags: a\n", "tag-field-not-read", "cache.tag_fields does not have "},
  }));
  CAPTURE(row.fields);
  FakePurger purger;
  ExchangeFixture fixture("PURGE http://a.example/x HTTP/1.1\nHost: a.example\n" + row.fields,
                          purging());
  fixture.services.purger = &purger;
  fixture.stream.status = ClientStream::Status::kBlocked;
  fixture.exchange->start();
  CHECK(purger.asked == nullptr);
  CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 400 "));
  std::array<iovec, 4> room;
  const auto peeked = fixture.stream.content->peek(room, 10'000);
  REQUIRE(peeked.parts == 1);
  const std::string text(static_cast<const char*>(room[0].iov_base), room[0].iov_len);
  CAPTURE(text);
  CHECK(text.contains(row.reason));
  CHECK(text.contains(row.why));
  fixture.stream.content->advance(peeked.bytes);
  fixture.stream.status = ClientStream::Status::kDone;
  fixture.exchange->on_writable();
  CHECK(fixture.reason_of(Outcome::kBadRequest) == row.reason);
}

TEST_CASE("a purge is done elsewhere, and answered as that says", "[exchange][purge]") {
  FakePurger purger;
  const bool has_purger = GENERATE(true, false);
  ExchangeFixture fixture("PURGE http://a.example/x HTTP/1.1\nHost: a.example\n", purging());
  if (has_purger) fixture.services.purger = &purger;
  fixture.exchange->start();
  CHECK(fixture.origins.asks.empty());
  CHECK((purger.asked != nullptr) == has_purger);
  if (has_purger) {
    CHECK_FALSE(fixture.stream.begun);
    CHECK(purger.asked->has_readers());
    purger.asked->publish_failure({.status = 200, .outcome = Outcome::kPurge, .detail = "purged"});
    CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 200 "));
    CHECK(fixture.ended_as(Outcome::kPurge) == 1);
  } else {
    CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 503 "));
    CHECK(fixture.ended_as(Outcome::kInternal) == 1);
    CHECK(fixture.reason_of(Outcome::kInternal) == "no-purges");
  }
  CHECK(fixture.stream.ended == AnswerEnd::kDone);
}

}  // namespace
}  // namespace encore::server
