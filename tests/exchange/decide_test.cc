#include "proxy/exchange/decide.h"

#include <string>

#include "proxy/http/date.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

TEST_CASE("what needs neither cache nor origin is answered here", "[exchange][decide]") {
  config::Config config;
  config.limits.request_body_bytes = 100;
  const auto runtime = some_runtime(config);
  struct Row {
    std::string request;
    int status;  // 0: it goes on
    std::string_view detail;
  };
  const std::string get = "GET http://a.example/ HTTP/1.1\nHost: a.example\n";
  const std::string post = "POST http://a.example/ HTTP/1.1\nHost: a.example\n";
  const std::string options = "OPTIONS http://a.example/ HTTP/1.1\nHost: a.example\n";
  const Row row = GENERATE_COPY(values<Row>({
      {get, 0, ""},
      {get + "Via: 1.1 other\n", 0, ""},
      {get + "Via: 1.1 other, 1.1 " + runtime->pseudonym + "\n", 508, "loop"},
      {post + "Content-Length: 3\nExpect: 100-continue\n", 0, ""},
      {get + "Expect: tea\n", 417, "unknown-expectation"},
      {post + "Content-Length: 100\n", 0, ""},
      {post + "Content-Length: 101\n", 413, "request-body-too-large"},
      {"TRACE http://a.example/ HTTP/1.1\nHost: a.example\n", 405, "trace"},
      {get + "Connection: upgrade\nUpgrade: websocket\n", 0, ""},
      {options + "Max-Forwards: 0\n", 204, "max-forwards"},
      {options + "Max-Forwards: 1\n", 0, ""},
      {get + "Max-Forwards: 0\n", 0, ""},
  }));
  CAPTURE(row.request);
  const auto request = some_request(row.request, runtime);
  const auto answer = answer_locally(*request);
  CHECK(answer.value_or(LocalResponse{}).status == row.status);
  CHECK(answer.value_or(LocalResponse{}).detail == row.detail);
}

TEST_CASE("a rule, or the port that is asked for, may answer in place of the origin",
          "[exchange][decide]") {
  config::Config config;
  config::Rule denies;
  denies.path = {"/denied"};
  denies.deny = 451;
  config::Rule passes;
  passes.path = {"/passed"};
  config::Rule moves;
  moves.path = {"/moved"};
  moves.add_prefix = "/v2/";
  config::Rule grows;
  grows.path = {"/xx*"};
  grows.replace = {"x=>" + std::string(100, 'y')};
  config.rule = {denies, passes, moves, grows};
  const auto runtime = some_runtime(config);
  const auto answer_to = [&](const std::string& where) {
    const auto request =
        some_request("GET http://" + where + " HTTP/1.1\nHost: a.example\n", runtime);
    return answer_locally(*request).value_or(LocalResponse{});
  };
  CHECK(answer_to("a.example/denied").status == 451);
  CHECK(answer_to("a.example/denied").outcome == Outcome::kDenied);
  CHECK(answer_to("a.example/passed").status == 0);
  CHECK(answer_to("a.example/moved").status == 0);
  CHECK(answer_to("a.example/none").status == 0);
  CHECK(answer_to("a.example/" + std::string(100, 'x')).status == 0);
  CHECK(answer_to("a.example/" + std::string(1000, 'x')).status == 414);
  CHECK(answer_to("a.example:25/").status == 403);
  CHECK(answer_to("a.example:25/").detail == "unsafe-port");
  CHECK(answer_to("a.example:80/").status == 0);
}

TEST_CASE("a request takes the road that its method, conditions and content leave it",
          "[exchange][decide]") {
  struct Row {
    std::string request;
    RequestPath path;
    http::Forwarded forwarded = http::Forwarded::kNo;
  };
  const std::string rest = " http://a.example/ HTTP/1.1\nHost: a.example\n";
  const Row row = GENERATE_COPY(values<Row>({
      {"GET" + rest, RequestPath::kCache},
      {"HEAD" + rest, RequestPath::kCache},
      {"GET" + rest + "If-None-Match: \"a\"\nRange: bytes=0-1\n", RequestPath::kCache},
      {"GET" + rest + "Content-Length: 0\n", RequestPath::kCache},
      {"GET" + rest + "Content-Length: 1\n", RequestPath::kOrigin, http::Forwarded::kBypass},
      {"GET" + rest + "If-Match: \"a\"\n", RequestPath::kOrigin, http::Forwarded::kRequest},
      {"HEAD" + rest + "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n", RequestPath::kOrigin,
       http::Forwarded::kRequest},
      {"GET" + rest + "If-Match: \"a\"\nCache-Control: only-if-cached\n",
       RequestPath::kOnlyIfCached},
      {"POST" + rest + "Content-Length: 1\n", RequestPath::kOrigin, http::Forwarded::kMethod},
      {"POST" + rest + "Content-Length: 1\nCache-Control: only-if-cached\n", RequestPath::kOrigin,
       http::Forwarded::kMethod},
      {"DELETE" + rest, RequestPath::kOrigin, http::Forwarded::kMethod},
  }));
  CAPTURE(row.request);
  const PathDecision taken = choose_path(*some_request(row.request));
  CHECK(taken.path == row.path);
  CHECK(taken.forwarded == row.forwarded);
}

TEST_CASE("the whole is asked for where there is no condition, or where it would be stored",
          "[exchange][decide]") {
  const std::string get = "GET http://a.example/ HTTP/1.1\nHost: a.example\n";
  struct Row {
    std::string request;
    MissFacts facts;
    OriginRequestForm asked;
    bool depends;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {get, {}, OriginRequestForm::kWhole, false},
      {get, {.uncacheable = true}, OriginRequestForm::kWhole, false},
      {get + "Range: bytes=0-1\n", {}, OriginRequestForm::kAsItIs, true},
      {get + "Range: bytes=0-1\n", {.admitted = true}, OriginRequestForm::kWhole, true},
      {get + "Range: bytes=0-1\n",
       {.uncacheable = true, .admitted = true},
       OriginRequestForm::kAsItIs,
       false},
      {get + "If-None-Match: \"a\"\n",
       {.uncacheable = true, .admitted = true},
       OriginRequestForm::kWhole,
       true},
      {get + "If-None-Match: \"a\"\nCache-Control: no-store\n",
       {.admitted = true},
       OriginRequestForm::kAsItIs,
       false},
      {"HEAD http://a.example/ HTTP/1.1\nHost: a.example\n",
       {.admitted = true},
       OriginRequestForm::kAsItIs,
       false},
  }));
  CAPTURE(row.request);
  const auto request = some_request(row.request);
  CHECK(origin_request_form(*request, row.facts) == row.asked);
  CHECK(depends_on_admission(*request, row.facts.uncacheable) == row.depends);
  // A client that admission is hidden from must not see it by the result of a range or a condition.
  config::Config config;
  config.cache.cache_status_admission = false;
  const auto hidden = some_request(row.request, some_runtime(config));
  CHECK(origin_request_form(*hidden, row.facts) == origin_request_form(*hidden, {}));
  CHECK_FALSE(depends_on_admission(*hidden, row.facts.uncacheable));
}

TEST_CASE("a stored part answers one range that lies within it", "[exchange][decide]") {
  const MonotonicTime now{std::chrono::hours(1)};
  http::StoredMeta meta;
  meta.status = 206;
  meta.lifetime_seconds = 60;
  meta.age_zero = now;
  meta.fresh_until = now + std::chrono::seconds(60);
  const StoredPart part{.meta = meta,
                        .validators = {.etag = "\"a\""},
                        .content = http::ContentRange{http::ByteRange{100, 200}, 1000}};
  const std::string get = "GET http://a.example/ HTTP/1.1\nHost: a.example\n";
  struct Row {
    std::string fields;
    PartUse use;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {"", PartUse::kAsk},
      {"Range: bytes=100-199\n", PartUse::kFresh, 100, 200},
      {"Range: bytes=150-160\n", PartUse::kFresh, 150, 161},
      {"Range: bytes=99-150\n", PartUse::kAsk},
      {"Range: bytes=150-200\n", PartUse::kAsk},
      {"Range: bytes=150-160,170-180\n", PartUse::kAsk},
      {"Range: bytes=150-160\nIf-Range: \"a\"\n", PartUse::kFresh, 150, 161},
      {"Range: bytes=150-160\nIf-Range: \"b\"\n", PartUse::kAsk},
      {"Range: bytes=150-160\nIf-None-Match: \"a\"\n", PartUse::kAsk},
      {"Range: bytes=150-160\nCache-Control: no-cache\n", PartUse::kAsk},
  }));
  CAPTURE(row.fields);
  const auto request = some_request(get + row.fields);
  const PartDecision decision = decide_stored_part(part, *request, now, WallTime{});
  CHECK(decision.use == row.use);
  if (row.use != PartUse::kAsk) {
    CHECK(decision.range.begin == row.begin);
    CHECK(decision.range.end == row.end);
  }
  // Stale, it answers only whom staleness does not matter.
  const MonotonicTime later = now + std::chrono::hours(1);
  CHECK(decide_stored_part(part, *request, later, WallTime{}).use == PartUse::kAsk);
  const auto patient = some_request(get + row.fields + "Cache-Control: max-stale\n");
  if (row.use == PartUse::kFresh) {
    CHECK(decide_stored_part(part, *patient, later, WallTime{}).use == PartUse::kStale);
  }
}

}  // namespace
}  // namespace encore::server
