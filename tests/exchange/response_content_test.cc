// A body that is on disk alone: what a plan wants of it is read, from where it is wanted, and a
// plan that wants nothing reads nothing.
#include "proxy/exchange/response_content.h"

#include <array>
#include <random>
#include <string>

#include "tests/catch.h"
#include "tests/coding/gunzipped.h"
#include "tests/exchange/large_on_disk.h"

namespace encore::server {
namespace {

using Content = ResponsePlan::Content;

constexpr std::uint64_t kBytes = 600'000;

config::Config with_gzip() {
  config::Config config;
  config.compression.codings = {"gzip"};
  return config;
}

class NoReader final : public TransferReader {
 public:
  explicit NoReader(TransferHome& home) : TransferReader(home) {}
  void on_transfer() override {}
  void on_interim(std::string_view /*head*/) override {}
};

// The response to a request, whose body of letters is on disk.
struct OnDiskAlone : LargeOnDisk {
  explicit OnDiskAlone(std::string_view text)
      : request(some_request(text, some_runtime(with_gzip()))) {
    std::mt19937_64 random(3);
    while (body.size() < kBytes) body += static_cast<char>('a' + random() % 26);
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    meta.status = 200;
    meta.head_bytes = static_cast<std::uint32_t>(head.size());
    source.head = head;
    source.meta = &meta;
    source.length = kBytes;
    source.on_disk = put_body(body);
    plan = coding.plan(source, nullptr,
                       {.request = *request,
                        .cache_status = status,
                        .now = loop->now(),
                        .wall = loop->wall_now(),
                        .http_date = "Sun, 06 Nov 1994 08:49:40 GMT"},
                       more);
  }
  bool open() {
    return content.open_disk(kKey, source, plan, [] {});
  }
  // All that the client gets.
  std::string read() {
    content.give(source, plan, nullptr);
    std::string all;
    std::array<iovec, 4> room;
    for (int turn = 0; turn < 10'000; ++turn) {
      coding.produce(content.reader().position());
      const BodyReader::Peeked peeked = content.reader().peek(room, kBytes);
      if (peeked.state == BodyReader::State::kEnd) return all;
      REQUIRE(peeked.state != BodyReader::State::kBroken);
      for (std::size_t i = 0; i < peeked.parts; ++i) {
        all.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      content.reader().advance(peeked.bytes);
      content.disk()->on_reader({.position = content.source().position()});
      run();
    }
    FAIL("it does not end");
    return all;
  }

  std::shared_ptr<const RequestContext> request;
  std::string body;
  std::string head;
  http::StoredMeta meta;
  http::CacheStatus status{.hit = true};
  ResponseSource source;
  WorkerStats stats;
  CodingMemory memory;
  Coders coders{
      {.loop = *loop, .store = store, .kernel = kernel, .stats = stats, .memory = memory}};
  net::Deferred more{*loop, [] {}};
  ResponseCoding coding{&coders, *request};
  TransferHome home{*loop};
  NoReader reader{home};
  ResponseContent content{*loads, coding, reader};
  ResponsePlan plan;
};

}  // namespace

TEST_CASE("of a body on disk alone each plan reads what it wants", "[exchange][disk]") {
  SECTION("the whole") {
    OnDiskAlone on("GET http://h/ HTTP/1.1\nHost: h\n");
    REQUIRE(on.plan.content == Content::kWhole);
    REQUIRE(on.open());
    CHECK(on.read() == on.body);
  }
  SECTION("a range") {
    OnDiskAlone on("GET http://h/ HTTP/1.1\nHost: h\nRange: bytes=300000-300009\n");
    REQUIRE(on.plan.content == Content::kParts);
    REQUIRE(on.open());
    CHECK(on.read() == on.body.substr(300'000, 10));
  }
  SECTION("in a coding") {
    OnDiskAlone on("GET http://h/ HTTP/1.1\nHost: h\nAccept-Encoding: gzip\n");
    REQUIRE(on.plan.content == Content::kRest);
    REQUIRE(on.open());
    CHECK(gunzipped(on.read()) == on.body);
  }
}

TEST_CASE("where no content is sent no disk is read", "[exchange][disk]") {
  const std::string_view fields = GENERATE("", "Accept-Encoding: gzip\n");
  OnDiskAlone on("HEAD http://h/ HTTP/1.1\nHost: h\n" + std::string(fields));
  CHECK(on.plan.content == Content::kUnread);
  CHECK(on.open());
  CHECK(on.content.disk() == nullptr);
}

}  // namespace encore::server
