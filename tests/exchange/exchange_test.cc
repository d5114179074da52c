// An exchange between a client and an origin that are both this test's.
#include "proxy/exchange/exchange.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/exchange/some_request.h"
#include "tests/panic_report.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using End = ClientStream::End;
using Status = ClientStream::Status;

// A disk whose reads never end; it drops what it is given to write.
class HungEngine final : public disk::DiskEngine {
 public:
  disk::Submitted submit(disk::DiskLane, std::uint64_t, disk::DiskTask task) override {
    tasks_.push_back(std::move(task));
    return disk::Submitted::kAccepted;
  }
  bool stop(Nanoseconds) override {
    for (disk::DiskTask& task : std::exchange(tasks_, {})) task(disk::DiskRun::kCancelled);
    return true;
  }
  std::uint64_t waiting_bytes(disk::DiskLane) const override { return 0; }

 private:
  std::vector<disk::DiskTask> tasks_;
};

const std::string kPost = "POST http://a.example/ HTTP/1.1\nHost: a.example\nContent-Length: 5\n";

TEST_CASE("a disk that does not answer within a second is not waited for", "[exchange][disk]") {
  const TemporaryDirectory directory;
  auto opened = disk::Disks::open(
      {.disks = {{.path = directory / "disk", .bytes = 8U << 20U, .segment_bytes = 1U << 20U}},
       .identity_seed = {1, 2},
       .make_engine = [](const auto&) { return std::make_unique<HungEngine>(); }});
  REQUIRE(opened.has_value());
  cache::KernelOptions options;
  options.admission.policy = cache::AdmissionPolicy::kAlways;
  options.disks = (*opened)->kernel_disks();
  const auto kernel = cache::Kernel::create(options, {}, {});
  REQUIRE(kernel.has_value());
  (*opened)->start(**kernel);
  const cache::DiskPlace place{.disk = 0, .segment = 1, .unit = 64, .bytes = 640};
  ExchangeFixture fixture("GET http://a.example/ HTTP/1.1\nHost: a.example\n", {},
                          {.object = {}, .disk = DiskLookup{.place = place}, .any_resident = true});
  fixture.disks = std::move(*opened);
  fixture.store = std::move(*store::make_memory_store({.limit_bytes = 16U << 20U}));
  fixture.exchange->start();
  const MonotonicTime begun = fixture.loop->now();
  fixture.exchange->check_timeouts(begun + std::chrono::milliseconds(999));
  CHECK(fixture.origins.asks.empty());
  SECTION("the origin is asked, and what comes late is for nobody") {
    fixture.exchange->check_timeouts(begun + std::chrono::seconds(1));
    REQUIRE(fixture.origins.asks.size() == 1);
    CHECK_FALSE(fixture.stream.begun);
  }
  SECTION("a client that goes meanwhile leaves") {
    fixture.exchange->on_gone();
    CHECK(fixture.ended_as(Outcome::kClientAborted) == 1);
  }
  CHECK(fixture.disks->stop({}) == false);  // records that could not be sealed were left
  fixture.loop->turn();
  CHECK(fixture.origins.asks.size() <= 1);
}

TEST_CASE("what is answered here asks no origin, and leaves one record", "[exchange]") {
  ExchangeFixture fixture("TRACE http://a.example/ HTTP/1.1\nHost: a.example\n");
  fixture.exchange->start();
  CHECK(fixture.origins.asks.empty());
  CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 405 "));
  CHECK(fixture.stream.ended == End::kDone);
  CHECK(fixture.ended_as(Outcome::kMethod) == 1);
}

TEST_CASE("a panic within an exchange says whose it was and how far it had come", "[exchange]") {
  ExchangeFixture fixture(
      "POST http://a.example/x?secret HTTP/1.1\nHost: a.example\nContent-Length: 5\n");
  fixture.exchange->start();
  const std::string report = report_of([&] { fixture.exchange->on_content("hello"); });
  CHECK_THAT(report, Catch::Matchers::Contains("\n  while: an exchange, at: wait\n"
                                               "    request: POST http://a.example/x?...\n"));
  CHECK(report.find("secret") == std::string::npos);
}

TEST_CASE("an exchange is held to its steps", "[exchange]") {
  ExchangeFixture fixture(kPost);
  fixture.exchange->start();
  REQUIRE(fixture.origins.asks.size() == 1);
  CHECK(fixture.origins.asks[0].what == OriginRequestForm::kAsItIs);
  CHECK(fixture.origins.asks[0].content == OriginFetchOptions::Content::kComes);
  CHECK_FALSE(fixture.stream.begun);
  // Until somebody takes it, the client's content waits.
  CHECK(fixture.exchange->content_demand() == Exchange::ContentDemand::kLater);
  fixture.origins.transfers[0]->publish_interim("HTTP/1.1 103 Early Hints\r\n\r\n");
  CHECK(fixture.stream.interim == "HTTP/1.1 103 Early Hints\r\n\r\n");
  CHECK_FALSE(fixture.stream.ended);
  fixture.origins.transfers[0]->publish_failure(
      {.status = 504, .outcome = Outcome::kOriginTimeout, .detail = "timeout"});
  CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 504 "));
  // Content that nobody read would be taken for the next request.
  CHECK(fixture.stream.response.further == ClientStream::Further::kNone);
  CHECK(fixture.stream.ended == End::kDone);
  CHECK(fixture.ended_as(Outcome::kOriginTimeout) == 1);
}

TEST_CASE("a connection that goes over to another protocol is the stream's, and its record too",
          "[exchange]") {
  ExchangeFixture fixture(
      "GET http://a.example/x HTTP/1.1\nHost: a.example\nConnection: upgrade\nUpgrade: raw/1\n");
  fixture.exchange->start();
  REQUIRE(fixture.origins.asks.size() == 1);
  CHECK(fixture.origins.asks[0].what == OriginRequestForm::kAsItIs);
  CHECK(fixture.origins.asks[0].table == OriginFetchOptions::Table::kNotIn);
  fixture.origins.transfers[0]->publish_switched({.head = "HTTP/1.1 101 Go\r\n\r\n"});
  REQUIRE(fixture.stream.switched);
  CHECK(fixture.stream.switched->head == "HTTP/1.1 101 Go\r\n\r\n");
  CHECK_FALSE(fixture.stream.begun);
  CHECK_FALSE(fixture.stream.ended);
  CHECK_FALSE(fixture.origins.transfers[0]->has_readers());
  CHECK(fixture.ended_as(Outcome::kUpgrade) == 0);
  // Nobody calls it from here on.
  CHECK_THAT(report_of([&] { fixture.exchange->start(); }),
             Catch::Matchers::Contains("while: an exchange, at: ended"));
}

TEST_CASE("a client that goes leaves the transfer, and is told nothing any more", "[exchange]") {
  ExchangeFixture fixture(kPost);
  fixture.exchange->start();
  REQUIRE(fixture.origins.transfers.size() == 1);
  CHECK(fixture.origins.transfers[0]->has_readers());
  fixture.exchange->on_gone();
  CHECK_FALSE(fixture.origins.transfers[0]->has_readers());
  CHECK_FALSE(fixture.stream.begun);
  CHECK_FALSE(fixture.stream.ended);
  CHECK(fixture.ended_as(Outcome::kClientAborted) == 1);
  fixture.origins.transfers[0]->publish_failure({});
  CHECK_FALSE(fixture.stream.begun);
}

TEST_CASE("how a response ends is what its client is shown", "[exchange]") {
  ExchangeFixture fixture(kPost);
  fixture.exchange->start();
  fixture.stream.status = Status::kBlocked;
  fixture.origins.transfers[0]->publish_failure({});
  REQUIRE(fixture.stream.begun);
  CHECK_FALSE(fixture.stream.ended);
  SECTION("whole, once the client has taken it") {
    fixture.stream.status = Status::kDone;
    fixture.exchange->on_writable();
    CHECK(fixture.stream.ended == End::kDone);
  }
  SECTION("broken where its content is") {
    fixture.stream.status = Status::kBroken;
    fixture.exchange->on_writable();
    CHECK(fixture.stream.ended == End::kBroken);
    CHECK(fixture.ended_as(Outcome::kOriginAborted) == 1);
  }
  SECTION("reset where the client is dead") {
    fixture.stream.status = Status::kDead;
    fixture.exchange->on_writable();
    CHECK(fixture.stream.ended == End::kReset);
    CHECK(fixture.ended_as(Outcome::kClientAborted) == 1);
  }
  SECTION("reset where the client is too slow") {
    fixture.exchange->cut();
    CHECK(fixture.stream.ended == End::kReset);
    CHECK(fixture.ended_as(Outcome::kSlowReader) == 1);
  }
}

// The Cache-Status of a response with this outcome, and what was logged of it.
struct Said {
  std::string status;
  std::uint64_t logged;
};
Said said_of(const config::Config& config, Outcome outcome, http::StoreReason reason,
             std::optional<bool> stored) {
  ExchangeFixture fixture(kPost, config);
  fixture.exchange->start();
  REQUIRE(fixture.origins.transfers.size() == 1);
  auto response = std::make_shared<SharedResponse>();
  response->head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
  response->common_bytes = response->head.size();
  response->meta.status = 200;
  response->length = 0;
  response->outcome = outcome;
  response->reason = reason;
  response->stored = stored;
  fixture.origins.transfers[0]->publish_response(response, {}, Joinable::kNo);
  const std::string& head = fixture.stream.response.head;
  const std::size_t at = head.find("Cache-Status: ");
  REQUIRE(at != std::string::npos);
  return {.status = head.substr(at, head.find("\r\n", at) - at),
          .logged = fixture.ended_as(outcome)};
}

TEST_CASE("what admission came to is said, unless that is hidden; the log has it all the same",
          "[exchange]") {
  struct Row {
    Outcome outcome;
    http::StoreReason reason;
    std::optional<bool> stored;
    std::string_view told;
    std::string_view hidden;
  };
  using enum http::StoreReason;
  const Row row = GENERATE(values<Row>({
      {Outcome::kFirstRequest, kOk, false, "; stored=?0; detail=first-request", ""},
      {Outcome::kSecondRequest, kOk, true, "; stored; detail=second-request", ""},
      {Outcome::kSecondRequest, kOk, std::nullopt, "; detail=second-request", ""},
      {Outcome::kNotAdmitted, kOk, false, "; stored=?0; detail=not-admitted", ""},
      {Outcome::kUncacheable, kOk, false, "; stored=?0; detail=not-stored", ""},
      {Outcome::kTooLarge, kOk, false, "; stored=?0; detail=too-large", ""},
      {Outcome::kUncacheable, kNoStore, false, "; detail=no-store", "; detail=no-store"},
      {Outcome::kMethod, kMethod, false, "", ""},
  }));
  config::Config config;
  CHECK(said_of(config, row.outcome, row.reason, row.stored).status ==
        "Cache-Status: encore; fwd=method" + std::string(row.told));
  config.cache.cache_status_admission = false;
  const Said hidden = said_of(config, row.outcome, row.reason, row.stored);
  CHECK(hidden.status == "Cache-Status: encore; fwd=method" + std::string(row.hidden));
  CHECK(hidden.logged == 1);
}

TEST_CASE("content that is no content is refused", "[exchange]") {
  ExchangeFixture fixture(
      "POST http://a.example/ HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked\n");
  fixture.exchange->start();
  fixture.exchange->on_content_broken("bad-chunk");
  CHECK(fixture.stream.response.head.starts_with("HTTP/1.1 400 "));
  CHECK(fixture.stream.response.further == ClientStream::Further::kNone);
  CHECK_FALSE(fixture.origins.transfers[0]->has_readers());
  CHECK(fixture.ended_as(Outcome::kBadRequest) == 1);
}

config::Config tells_nothing_of_admission() {
  config::Config config;
  config.cache.cache_status_admission = false;  // so that no kernel is asked
  config.cache.collapse_buffer_bytes = 64 * 1024;
  config.limits.transfer_buffer_bytes = 64 * 1024;
  return config;
}

// Reads all in one call.
struct QuickReader final : public TransferReader {
  explicit QuickReader(TransferHome& worker) : TransferReader(worker) {}
  void on_transfer() override {}
  void on_interim(std::string_view) override {}
};

// A response that grows and says nothing of its length, for a client that wants a range of it.
struct Ranged {
  explicit Ranged(const std::string& range, std::string_view more_fields = {},
                  bool is_shared = false)
      : memory(*store::make_memory_store({.limit_bytes = 64U << 20U})),
        body(*memory->make_body({})),
        fixture("GET http://a.example/x HTTP/1.1\nHost: a.example\nRange: bytes=" + range + "\n",
                tells_nothing_of_admission()) {
    fixture.stream.status = Status::kBlocked;
    fixture.exchange->start();
    REQUIRE(fixture.origins.transfers.size() == 1);
    auto response = std::make_shared<SharedResponse>();
    response->head = "HTTP/1.1 200 OK\r\n";
    response->head += more_fields;
    response->common_bytes = response->head.size();
    response->meta.status = 200;
    append("0123456789");
    if (is_shared) {
      std::string names;
      const http::Fields no_fields;
      const http::VaryOptions options;
      const http::VariantKeys own(no_fields, options);
      REQUIRE(transfer().join(quick, own, JoinScope::kAny, names) == JoinOutcome::kBeforeHead);
    }
    transfer().publish_response(response, body, Joinable::kNo);
  }
  Transfer& transfer() { return *fixture.origins.transfers[0]; }
  void append(std::string_view text) {
    REQUIRE(body->append(std::as_bytes(std::span(text))) == text.size());
  }
  void grow(std::string_view text) {
    append(text);
    transfer().publish_body();
  }
  void end_whole() {
    body->complete();
    transfer().publish_body();
  }
  std::string_view head() const { return fixture.stream.response.head; }
  std::string read() {
    std::string out;
    std::vector<iovec> room(8);
    while (true) {
      const auto peeked = fixture.stream.content->peek(room, 1000);
      if (peeked.bytes == 0) return out;
      for (std::size_t i = 0; i < peeked.parts; ++i) {
        out.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      fixture.stream.content->advance(peeked.bytes);
    }
  }
  ~Ranged() {
    if (!fixture.stream.ended) fixture.exchange->on_gone();
    transfer().leave(quick);
    body->complete();
  }

  std::unique_ptr<store::Store> memory;
  store::BodyRef body;
  ExchangeFixture fixture;
  QuickReader quick{fixture.home};
};

TEST_CASE("a range of what grows is sent once its last byte is there", "[exchange][range]") {
  Ranged range("8-11");
  CHECK_FALSE(range.fixture.stream.begun);
  range.grow("a");
  CHECK_FALSE(range.fixture.stream.begun);
  range.grow("bc");
  REQUIRE(range.fixture.stream.begun);
  CHECK(range.head().starts_with("HTTP/1.1 206 "));
  CHECK(range.head().find("Content-Range: bytes 8-11/*\r\n") != std::string_view::npos);
  CHECK(range.read() == "89ab");
  CHECK(range.fixture.origins.asks.size() == 1);
}

TEST_CASE("a suffix of what grows is sent once the end is there", "[exchange][range]") {
  Ranged range("-4");
  range.grow("abc");
  CHECK_FALSE(range.fixture.stream.begun);
  range.end_whole();
  REQUIRE(range.fixture.stream.begun);
  CHECK(range.head().find("Content-Range: bytes 9-12/13\r\n") != std::string_view::npos);
  CHECK(range.read() == "9abc");
}

TEST_CASE("a body that ends too early leaves no half range", "[exchange][range]") {
  Ranged range("8-11");
  range.body->abort();
  range.transfer().publish_body();
  CHECK(range.head().starts_with("HTTP/1.1 502 "));
  CHECK_FALSE(range.transfer().has_readers());
}

TEST_CASE("a client that goes while its range is waited for has gone", "[exchange][range]") {
  Ranged range("8-11");
  range.fixture.exchange->on_gone();
  range.fixture.stream.ended = End::kReset;  // it receives nothing more
  CHECK(range.fixture.ended_as(Outcome::kClientAborted) == 1);
  CHECK_FALSE(range.transfer().has_readers());
}

TEST_CASE("a range is not waited for any longer than for another's answer", "[exchange][range]") {
  const Nanoseconds patience = config::Timeouts{}.collapse;
  Ranged range("8-11");
  const MonotonicTime begun = range.fixture.loop->now();
  range.fixture.exchange->check_timeouts(begun + patience - std::chrono::milliseconds(1));
  CHECK_FALSE(range.fixture.stream.begun);
  range.fixture.exchange->check_timeouts(begun + patience);
  REQUIRE(range.fixture.stream.begun);
  CHECK(range.head().starts_with("HTTP/1.1 200 "));
  CHECK(range.read() == "0123456789");
}

TEST_CASE("who is waited for by its origin's transfer takes the whole", "[exchange][range]") {
  Ranged range("8-11");
  range.transfer().urge_readers();
  range.transfer().publish_body();
  REQUIRE(range.fixture.stream.begun);
  CHECK(range.head().starts_with("HTTP/1.1 200 "));
  CHECK(range.read() == "0123456789");
  CHECK(range.fixture.origins.asks.size() == 1);
}

TEST_CASE("where the origin serves ranges it is asked for one that would take too long",
          "[exchange][range]") {
  Ranged range("8-11", "Accept-Ranges: bytes\r\n");
  range.transfer().urge_readers();
  range.transfer().publish_body();
  CHECK_FALSE(range.fixture.stream.begun);
  REQUIRE(range.fixture.origins.asks.size() == 2);
  CHECK(range.fixture.origins.asks[1].what == OriginRequestForm::kAsItIs);
  CHECK_FALSE(range.transfer().has_readers());
}

TEST_CASE("a small range far in passes what lies before it", "[exchange][range]") {
  Ranged range("200010-200013");
  CHECK(range.transfer().all_opened());
  const std::string page(100'000, 'p');
  range.grow(page);
  CHECK(range.transfer().slowest_position(range.body->size()) == range.body->size());
  range.grow(page);
  range.transfer().urge_readers();
  CHECK_FALSE(range.fixture.stream.begun);
  range.grow("wxyz");
  REQUIRE(range.fixture.stream.begun);
  CHECK(range.head().find("Content-Range: bytes 200010-200013/*\r\n") != std::string_view::npos);
  CHECK(range.read() == "wxyz");
}

TEST_CASE("a range far in that takes too long is asked for by itself, and so is the next",
          "[exchange][range]") {
  Ranged range("200010-200013");
  ExchangeFixture& fixture = range.fixture;
  range.grow(std::string(100'000, 'p'));
  const MonotonicTime now = fixture.loop->now();
  CHECK_FALSE(fixture.inflight.are_ranges_alone(fixture.request->hash, now));
  fixture.exchange->check_timeouts(now + config::Timeouts{}.collapse);
  CHECK_FALSE(fixture.stream.begun);
  CHECK_FALSE(range.transfer().has_readers());
  REQUIRE(fixture.origins.asks.size() == 2);
  CHECK(fixture.origins.asks[1].what == OriginRequestForm::kAsItIs);
  CHECK(fixture.origins.asks[1].table == OriginFetchOptions::Table::kNotIn);
  CHECK(fixture.origins.requests[1] == fixture.request);
  CHECK(fixture.inflight.are_ranges_alone(fixture.request->hash, now));
  auto response = std::make_shared<SharedResponse>();
  response->head = "HTTP/1.1 206 Part\r\nContent-Range: bytes 200010-200013/300000\r\n";
  response->common_bytes = response->head.size();
  response->meta.status = 206;
  response->whole = false;
  response->length = 4;
  response->reason = http::StoreReason::kStatus;
  const store::BodyRef body = *range.memory->make_body({.length = 4});
  REQUIRE(body->append(std::as_bytes(std::span(std::string_view("wxyz")))) == 4);
  body->complete();
  fixture.origins.transfers[1]->publish_response(response, body, Joinable::kNo);
  REQUIRE(fixture.stream.begun);
  CHECK(range.head().contains("Cache-Status: encore; fwd=uri-miss; detail=status\r\n"));
  CHECK(range.read() == "wxyz");
  fixture.stream.status = Status::kDone;
  fixture.exchange->on_writable();
  CHECK(fixture.stream.ended == End::kDone);
  CHECK(fixture.record()["body_bytes"] == 4);
}

TEST_CASE("a client that takes nothing has as long as its round trip asks for",
          "[exchange][transfer]") {
  Ranged range("0-9", {}, true);
  FakeStream& client = range.fixture.stream;
  REQUIRE(client.begun);
  range.transfer().mark_opened(range.quick);
  range.transfer().advance(range.quick, 10);
  client.trip = std::chrono::hours(1);
  // Asks as a paused producer does, until `done`. Returns for how long.
  const MonotonicTime begun = range.fixture.loop->now();
  const auto ask_until = [&](auto&& done) {
    while (!done()) {
      CHECK(range.transfer().probe_blocking_readers(10, Transfer::ReaderProbe::kVerdict) ==
            Transfer::Others::kWait);
      range.fixture.loop->turn();
    }
    return range.fixture.loop->now() - begun;
  };
  const Nanoseconds asked = ask_until([&] {
    return client.ended || range.fixture.loop->now() - begun > 2 * StallDetector::kLimit;
  });
  if (asked < StallDetector::kLimitMax) CHECK_FALSE(client.ended);
  client.trip = {};
  (void)ask_until([&] { return client.ended.has_value(); });
  CHECK(client.ended == End::kReset);
  CHECK(range.fixture.ended_as(Outcome::kSlowReader) == 1);
}

}  // namespace
}  // namespace encore::server
