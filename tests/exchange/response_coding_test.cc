// The coding of one response: who gets which, and what goes out.
#include "proxy/exchange/response_coding.h"

#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/units.h"
#include "proxy/store/store.h"
#include "tests/catch.h"
#include "tests/coding/gunzipped.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using Content = ResponsePlan::Content;

constexpr MonotonicTime kCodingTime{std::chrono::hours(1)};
constexpr std::string_view kVary = "Vary: Accept-Encoding\r\n";

config::Config compressing() {
  config::Config config;
  config.compression.codings = {"gzip"};
  return config;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// A response to a request, and all that codes it.
struct Answer {
  explicit Answer(std::string_view fields, const config::Config& config = compressing(),
                  std::string_view method = "GET", std::string_view version = "1.1") {
    std::string text(method);
    text.append(" http://a.example/x HTTP/").append(version).append("\nHost: a.example\n");
    text += fields;
    request = some_request(text, some_runtime(config));
    source.meta = &meta;
    say("");
    give(std::string(5000, 'a'));
  }
  // The origin's head, with these fields.
  void say(std::string_view fields, std::uint16_t code = 200,
           std::string_view type = "text/plain") {
    head = "HTTP/1.1 " + std::to_string(code) + " OK\r\nContent-Type: " + std::string(type) +
           "\r\nETag: \"a\"\r\n" + std::string(fields);
    meta.status = code;
    meta.head_bytes = static_cast<std::uint32_t>(head.size());
    meta.etag_offset = static_cast<std::uint32_t>(head.find("\"a\""));
    meta.etag_bytes = 3;
    source.head = head;
  }
  void give(std::string text) {
    content = std::move(text);
    source.inline_body = content;
    source.length = content.size();
  }
  // Content that lies in pieces, and may grow.
  store::BodyRef give_body(std::size_t bytes) {
    auto body = store->make_body({.length = {}, .use = store::BodyUse::kTransfer});
    REQUIRE(body.has_value());
    content.assign(bytes, 'b');
    REQUIRE((*body)->append(std::as_bytes(std::span(content))) == bytes);
    source.inline_body = {};
    source.length.reset();
    source.body = *body;
    return *body;
  }
  ResponsePlan plan() {
    coding.emplace(&coders, *request);
    return coding->plan(source, nullptr,
                        {.request = *request,
                         .cache_status = status,
                         .now = kCodingTime,
                         .wall = WallTime{},
                         .http_date = "Sun, 06 Nov 1994 08:49:40 GMT"},
                        more);
  }

  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  std::unique_ptr<store::Store> store =
      std::move(*store::make_memory_store({.limit_bytes = 64 * kMiB}));
  std::unique_ptr<cache::Kernel> kernel;
  WorkerStats stats;
  CodingMemory memory;
  Coders coders{
      {.loop = *loop, .store = store, .kernel = kernel, .stats = stats, .memory = memory}};
  net::Deferred more{*loop, [] {}};
  std::shared_ptr<const RequestContext> request;
  std::string head;
  std::string content;
  http::StoredMeta meta;
  http::CacheStatus status{.hit = true};
  ResponseSource source;

  std::optional<ResponseCoding> coding;  // made with the plan
};

}  // namespace

TEST_CASE("a coding is for clients that can be shown its end and ask for the whole",
          "[exchange][coding]") {
  const Compression compression(compressing().compression);
  const auto [fields, version, wanted] = GENERATE(table<const char*, const char*, bool>({
      {"Accept-Encoding: gzip\n", "1.1", true},
      {"Accept-Encoding: gzip\n", "1.0", false},
      {"Accept-Encoding: br\n", "1.1", false},
      {"Accept-Encoding: gzip;q=0\n", "1.1", false},
      {"", "1.1", false},
      {"Accept-Encoding: gzip\nCache-Control: no-transform\n", "1.1", false},
      {"Accept-Encoding: gzip\nRange: bytes=0-9\n", "1.1", false},
      {"Accept-Encoding: gzip\nRange: bytes=0-9\nIf-Range: \"a\"\n", "1.1", false},
      // By a date it may have a part in the coding, and gets all of it.
      {"Accept-Encoding: gzip\nRange: bytes=0-9\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\n", "1.1",
       true},
  }));
  CAPTURE(fields, version);
  const Answer answer(fields, compressing(), "GET", version);
  CHECK(wanted_coding(answer.request->head, compression).has_value() == wanted);
}

TEST_CASE("short content goes out coded, with a head of its own", "[exchange][coding]") {
  Answer answer("Accept-Encoding: gzip\n");
  const ResponsePlan plan = answer.plan();
  CHECK(plan.content == Content::kWhole);
  CHECK(plan.framing == ClientStream::Framing::kLength);
  CHECK(count_of(plan.head, "Content-Encoding: gzip\r\n") == 1);
  CHECK(count_of(plan.head, kVary) == 1);
  CHECK(count_of(plan.head, "ETag: W/\"a\"\r\n") == 1);
  CHECK(answer.source.inline_body.size() == answer.source.length);
  CHECK(answer.source.length < answer.content.size());
  CHECK_FALSE(answer.source.has_ranges);
  CHECK(gunzipped(answer.source.inline_body) == answer.content);
  CHECK(answer.stats.compressed_gzip_read.get() == answer.content.size());
  CHECK(answer.stats.compressed_gzip_made.get() == answer.source.inline_body.size());
  CHECK(answer.coding->body() == nullptr);
  answer.coding->count();
  CHECK(answer.stats.compressed_gzip.get() == 1);
}

TEST_CASE("short content in pieces that is whole goes out coded with its length, too",
          "[exchange][coding]") {
  Answer answer("Accept-Encoding: gzip\n");
  const store::BodyRef body = answer.give_body(5000);
  body->complete();
  answer.source.length = 5000;
  const ResponsePlan plan = answer.plan();
  CHECK(plan.framing == ClientStream::Framing::kLength);
  CHECK(gunzipped(answer.source.inline_body) == answer.content);
  CHECK(answer.coding->body() == nullptr);
}

TEST_CASE("who takes no coding is told that others might get one", "[exchange][coding]") {
  Answer answer("");
  const bool says_so = GENERATE(false, true);
  if (says_so) answer.say(kVary);
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, kVary) == 1);
  CHECK(count_of(plan.head, "Content-Encoding") == 0);
  CHECK(answer.source.inline_body == answer.content);
  CHECK(answer.source.has_ranges);
  answer.coding->count();
  CHECK(answer.stats.compressed_gzip.get() == 0);
}

TEST_CASE("what is not covered goes out as it is, and says nothing", "[exchange][coding]") {
  config::Config config = compressing();
  const int why = GENERATE(range(0, 5));
  if (why == 0) config.compression.codings.clear();
  config::Rule rule;
  rule.compress = why != 1;
  config.rule = {rule};
  Answer answer("Accept-Encoding: gzip\n", config);
  if (why == 2) answer.say("", 200, "image/png");
  if (why == 3) answer.say("Cache-Control: no-transform\r\n");
  if (why == 4) answer.say("Content-Encoding: br\r\n");
  CAPTURE(why);
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, "Vary") == 0);
  CHECK(count_of(plan.head, "gzip") == 0);
  CHECK(count_of(plan.head, "ETag: \"a\"\r\n") == 1);
  CHECK(answer.source.inline_body == answer.content);
}

TEST_CASE("content that a coding makes no shorter goes out as it is", "[exchange][coding]") {
  Answer answer("Accept-Encoding: gzip\n");
  std::mt19937 random(1);
  std::string noise(5000, '\0');
  for (char& each : noise) each = static_cast<char>(random());
  answer.give(noise);
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, "Content-Encoding") == 0);
  CHECK(count_of(plan.head, kVary) == 1);
  CHECK(answer.source.inline_body == noise);
}

TEST_CASE("the head of a coded response is that of a GET, without a length", "[exchange][coding]") {
  Answer answer("Accept-Encoding: gzip\n", compressing(), "HEAD");
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, "Content-Encoding: gzip\r\n") == 1);
  CHECK(count_of(plan.head, "ETag: W/\"a\"\r\n") == 1);
  CHECK(count_of(plan.head, "Content-Length") == 0);
  CHECK(answer.stats.compressed_gzip_read.get() == 0);
}

TEST_CASE("a 304 keeps the tag that its client holds", "[exchange][coding]") {
  const auto [fields, etag] = GENERATE(table<const char*, const char*>({
      {"If-None-Match: W/\"a\"\n", "ETag: W/\"a\"\r\n"},
      {"If-None-Match: \"x\", W/\"a\"\n", "ETag: W/\"a\"\r\n"},
      {"If-None-Match: \"a\"\n", "ETag: \"a\"\r\n"},
      {"If-None-Match: W/\"b\"\n", "ETag: \"a\"\r\n"},
  }));
  CAPTURE(fields);
  Answer answer(fields);
  answer.say("", 304);
  answer.give("");
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, etag) == 1);
  CHECK(count_of(plan.head, kVary) == (std::string_view(etag).contains("W/") ? 1U : 0U));
}

TEST_CASE("content that comes is coded as it comes, and ends with it", "[exchange][coding]") {
  Answer answer("Accept-Encoding: gzip\n");
  const store::BodyRef body = answer.give_body(100'000);
  const ResponsePlan plan = answer.plan();
  REQUIRE(answer.coding->body() != nullptr);
  CHECK(plan.content == Content::kRest);
  CHECK(plan.framing == ClientStream::Framing::kOpen);
  CHECK(count_of(plan.head, "Content-Encoding: gzip\r\n") == 1);
  const store::BodyRef coded = answer.coding->body()->body();
  const auto produce = [&] {
    for (int i = 0; i < 20; ++i) answer.coding->produce(coded->size());
  };
  produce();
  CHECK(coded->state() == store::BodyState::kGrowing);
  CHECK(answer.stats.compressed_gzip_read.get() == 100'000);
  const bool breaks_off = GENERATE(false, true);
  if (breaks_off) {
    body->abort();
    produce();
    CHECK(coded->state() == store::BodyState::kAborted);
    return;
  }
  body->complete();
  produce();
  REQUIRE(coded->state() == store::BodyState::kComplete);
  CHECK(answer.stats.compressed_gzip_made.get() == coded->size());
}

TEST_CASE("without memory for an encoder content goes as it is", "[exchange][coding]") {
  config::Config config = compressing();
  config.compression.memory_bytes = 0;
  Answer answer("Accept-Encoding: gzip\n", config);
  const bool comes = GENERATE(false, true);
  if (comes) answer.give_body(100'000);
  const ResponsePlan plan = answer.plan();
  CHECK(count_of(plan.head, "Content-Encoding") == 0);
  CHECK(count_of(plan.head, kVary) == 1);
  CHECK(answer.coding->body() == nullptr);
  CHECK(answer.stats.compression_refused.get() == 1);
  CHECK(answer.memory.used() == 0);
}

}  // namespace encore::server
