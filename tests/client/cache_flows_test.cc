// Requests through all rooms of a worker, by the object that is stored for them: the answer, what
// the origin was asked for it, Cache-Status, and the record.
#include <optional>
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/client/client_world.h"

namespace encore::server {
namespace {

constexpr std::string_view kWhole = "0123456789";

struct Flow {
  std::string_view stored;  // fields of the stored response; empty: there is none
  std::string_view method;
  std::string_view asks;  // fields of the request
  std::string_view sees;  // that the origin gets of it, among others; empty: nothing is asked
  std::string_view says;  // status line and fields of its answer
  std::string_view body;  // of that
  int status;
  std::string_view heard;  // content
  std::string_view told;   // in Cache-Status
  std::string_view outcome;
  std::string_view detail;
};

constexpr std::string_view kFresh = "Cache-Control: max-age=60\r\nETag: \"e\"\r\n";
constexpr std::string_view kStale = "Cache-Control: max-age=60\r\nAge: 100\r\nETag: \"e\"\r\n";
constexpr std::string_view kIfError =
    "Cache-Control: max-age=60, stale-if-error=1000\r\nAge: 100\r\nETag: \"e\"\r\n";
constexpr std::string_view kWhile =
    "Cache-Control: max-age=60, stale-while-revalidate=1000\r\nAge: 100\r\nETag: \"e\"\r\n";
constexpr std::string_view kMust =
    "Cache-Control: max-age=60, must-revalidate\r\nAge: 100\r\nETag: \"e\"\r\n";
constexpr std::string_view kVary = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n";
constexpr std::string_view kNew = "200 OK\r\nCache-Control: max-age=60\r\n";
constexpr std::string_view kPassed = "200 OK\r\nCache-Control: no-store\r\n";
constexpr std::string_view kConfirms =
    "304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\n";
constexpr std::string_view kNotCached = "504 Gateway Timeout\nencore: only-if-cached\n";
constexpr std::string_view kFails = "500 Oops\r\n";

// The value of a line of a head; empty: there is none.
std::string line_of(const std::string& head, std::string_view name) {
  const std::string begin = "\r\n" + std::string(name) + ": ";
  const std::size_t at = head.find(begin);
  if (at == std::string::npos) return {};
  return head.substr(at + begin.size(), head.find("\r\n", at + 2) - at - begin.size());
}

struct Flowing {
  explicit Flowing(const std::function<void(cache::KernelOptions&)>& cache = {})
      : world(config::Mode::kReverse, {}, cache), client(world) {
    world.keep_records();
  }
  void answer(std::string_view head, std::string_view body) {
    std::string text = "HTTP/1.1 " + std::string(head);
    if (!head.starts_with("304")) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    world.answer(text + "\r\n" + std::string(body));
  }
  void ask(std::string_view method, std::string_view fields) {
    client.heard.clear();
    world.origin.asked.clear();
    client.say(std::string(method) + " /x HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
  }
  void await_record(std::uint64_t count) {
    world.run_until([&] { return world.records() == count; });
    world.run_turns(2);
  }
  std::string head() const { return client.heard.substr(0, client.heard.find("\r\n\r\n") + 2); }
  std::string content() const { return client.heard.substr(client.heard.find("\r\n\r\n") + 4); }

  ClientWorld world;
  Client client;
};

void check_flow(const Flow& flow) {
  CAPTURE(flow.stored, flow.method, flow.asks, flow.says);
  Flowing f;
  std::uint64_t records = 0;
  if (!flow.stored.empty()) {
    f.ask("GET", "Accept-Language: de\r\n");
    f.world.run_until_asked();
    f.answer("200 OK\r\n" + std::string(flow.stored), kWhole);
    f.await_record(++records);
    CHECK(f.world.world.stats.stored.get() == 1);
  }
  const std::uint64_t requests_before = f.world.world.stats.origin_requests.get();
  f.ask(flow.method, flow.asks);
  std::string asked;
  if (!flow.sees.empty()) {
    f.world.run_until_asked();
    asked = f.world.origin.asked;
    CHECK_THAT(asked, Catch::Matchers::Contains(std::string(flow.sees)));
    // Only what is asked in the background has nobody who waits for it.
    if (flow.says.empty()) {
      f.await_record(records + 1);
      f.answer(kConfirms, "");
      f.world.run_turns(5);
    } else {
      f.answer(flow.says, flow.body);
    }
  }
  f.await_record(records + 1);
  auto record = f.world.record(records);
  f.world.run_until([&] { return record["bytes"] == f.client.heard.size(); });
  CHECK(f.head().starts_with("HTTP/1.1 " + std::to_string(flow.status) + " "));
  CHECK(f.content() == flow.heard);
  CHECK(line_of(f.head(), "Cache-Status") == "encore" + std::string(flow.told));
  CHECK(f.world.world.stats.origin_requests.get() - requests_before == (flow.sees.empty() ? 0 : 1));
  CHECK(record["outcome"] == flow.outcome);
  CHECK(record.value("detail", "") == flow.detail);
  CHECK(record["status"] == flow.status);
  CHECK(record["body_bytes"] == flow.heard.size());
  CHECK(record["method"] == flow.method);
  CHECK_FALSE(f.client.is_over());
}

TEST_CASE("what is stored and fresh answers without its origin", "[client][exchange]") {
  const std::string_view told = "; hit; ttl=60";
  check_flow(GENERATE_COPY(values<Flow>({
      {kFresh, "GET", "", "", "", "", 200, kWhole, told, "hit", ""},
      {kFresh, "GET", "Range: bytes=2-4\r\n", "", "", "", 206, "234", told, "hit", ""},
      {kFresh, "GET", "Range: bytes=-3\r\n", "", "", "", 206, "789", told, "hit", ""},
      {kFresh, "GET", "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n", "", "", "", 200, kWhole, told,
       "hit", ""},
      {kFresh, "GET", "If-None-Match: \"e\"\r\n", "", "", "", 304, "", told, "hit", ""},
      {kFresh, "GET", "If-None-Match: \"f\"\r\n", "", "", "", 200, kWhole, told, "hit", ""},
      {kFresh, "GET", "Cache-Control: only-if-cached\r\n", "", "", "", 200, kWhole, told, "hit",
       ""},
      {kFresh, "HEAD", "", "", "", "", 200, "", told, "hit", ""},
      {kVary, "GET", "Accept-Language: de\r\n", "", "", "", 200, kWhole, told, "hit", ""},
  })));
}

TEST_CASE("what is stored is confirmed by its origin, or replaced, where that is due",
          "[client][exchange]") {
  check_flow(GENERATE_COPY(values<Flow>({
      {kFresh, "GET", "Cache-Control: no-cache\r\n", "\r\nIf-None-Match: \"e\"\r\n", kConfirms, "",
       200, kWhole, "; fwd=request; fwd-status=304; ttl=60; detail=revalidated", "revalidated", ""},
      {kFresh, "GET", "Cache-Control: no-cache\r\n", "\r\nIf-None-Match: \"e\"\r\n", kNew, "new",
       200, "new", "; fwd=request; stored; detail=admitted", "admitted", "admitted"},
      {kStale, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", kConfirms, "", 200, kWhole,
       "; fwd=stale; fwd-status=304; ttl=60; detail=revalidated", "revalidated", ""},
      {kStale, "GET", "Range: bytes=2-4\r\n", "\r\nIf-None-Match: \"e\"\r\n", kConfirms, "", 206,
       "234", "; fwd=stale; fwd-status=304; ttl=60; detail=revalidated", "revalidated", ""},
      {kStale, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", kPassed, "passed", 200, "passed",
       "; fwd=stale; detail=no-store", "uncacheable", "no-store"},
      {kStale, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", kFails, "oops", 500, "oops",
       "; fwd=stale; detail=no-freshness", "uncacheable", "no-freshness"},
      {kIfError, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", kFails, "oops", 200, kWhole,
       "; fwd=stale; fwd-status=500; ttl=-40; detail=stale", "stale", "status-500"},
      {kWhile, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", "", "", 200, kWhole,
       "; hit; ttl=-40; detail=stale", "stale", ""},
      {kStale, "GET", "Cache-Control: max-stale=200\r\n", "", "", "", 200, kWhole,
       "; hit; ttl=-40; detail=stale", "stale", ""},
      {kStale, "GET", "Cache-Control: max-stale=20\r\n", "\r\nIf-None-Match: \"e\"\r\n", kConfirms,
       "", 200, kWhole, "; fwd=stale; fwd-status=304; ttl=60; detail=revalidated", "revalidated",
       ""},
      {kMust, "GET", "Cache-Control: max-stale=200\r\n", "\r\nIf-None-Match: \"e\"\r\n", kConfirms,
       "", 200, kWhole, "; fwd=stale; fwd-status=304; ttl=60; detail=revalidated", "revalidated",
       ""},
      {kMust, "GET", "", "\r\nIf-None-Match: \"e\"\r\n", kFails, "oops", 500, "oops",
       "; fwd=stale; detail=no-freshness", "uncacheable", "no-freshness"},
      {kStale, "GET", "Cache-Control: only-if-cached\r\n", "", "", "", 504, kNotCached,
       "; detail=only-if-cached", "only-if-cached", "only-if-cached"},
      {kVary, "GET", "Accept-Language: en\r\n", "Accept-Language: en\r\n", kPassed, "en", 200, "en",
       "; fwd=vary-miss; detail=no-store", "uncacheable", "no-store"},
  })));
}

TEST_CASE("what is not stored comes from its origin, whole where it will be stored",
          "[client][exchange]") {
  check_flow(GENERATE_COPY(values<Flow>({
      {"", "GET", "", "GET /x HTTP/1.1\r\n", kNew, "new", 200, "new",
       "; fwd=uri-miss; stored; detail=admitted", "admitted", "admitted"},
      {"", "GET", "", "GET /x HTTP/1.1\r\n", kPassed, "new", 200, "new",
       "; fwd=uri-miss; detail=no-store", "uncacheable", "no-store"},
      {"", "GET", "Range: bytes=0-1\r\n", "GET /x HTTP/1.1\r\n", kNew, "new", 206, "ne",
       "; fwd=uri-miss; stored; detail=admitted", "admitted", "admitted"},
      {"", "GET", "If-None-Match: \"e\"\r\n", "GET /x HTTP/1.1\r\n",
       "200 OK\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\n", "new", 304, "",
       "; fwd=uri-miss; stored; detail=admitted", "admitted", "admitted"},
      {"", "GET", "If-Match: \"e\"\r\n", "\r\nIf-Match: \"e\"\r\n", "412 No\r\n", "no", 412, "no",
       "; fwd=request; detail=no-freshness", "uncacheable", "no-freshness"},
      {"", "GET", "Cache-Control: only-if-cached\r\n", "", "", "", 504, kNotCached,
       "; detail=only-if-cached", "only-if-cached", "only-if-cached"},
      {"", "GET", "Authorization: Basic YTpi\r\n", "\r\nAuthorization: Basic YTpi\r\n", kNew, "new",
       200, "new", "; fwd=uri-miss; detail=authorization", "uncacheable", "authorization"},
      {"", "HEAD", "", "HEAD /x HTTP/1.1\r\n", kNew, "", 200, "",
       "; fwd=uri-miss; stored=?0; detail=not-stored", "uncacheable", "not-stored"},
      {"", "DELETE", "", "DELETE /x HTTP/1.1\r\n", "202 Later\r\n", "gone", 202, "gone",
       "; fwd=method", "method", ""},
      {kFresh, "DELETE", "", "DELETE /x HTTP/1.1\r\n", "202 Later\r\n", "gone", 202, "gone",
       "; fwd=method", "method", ""},
      {"", "GET", "", "GET /x HTTP/1.1\r\n", kFails, "oops", 500, "oops",
       "; fwd=uri-miss; detail=no-freshness", "uncacheable", "no-freshness"},
  })));
}

TEST_CASE("a part is asked for where the whole would not be stored", "[client][exchange]") {
  const bool is_stored = GENERATE(true, false);
  Flowing f([=](cache::KernelOptions& options) {
    if (!is_stored) options.admission.policy = cache::AdmissionPolicy::kNever;
  });
  f.ask("GET", "Range: bytes=0-1\r\n");
  f.world.run_until_asked();
  CHECK(line_of(f.world.origin.asked, "Range") == (is_stored ? "" : "bytes=0-1"));
  f.answer(kNew, "new");
  f.await_record(1);
  CHECK(f.world.world.stats.stored.get() == (is_stored ? 1 : 0));
}

}  // namespace
}  // namespace encore::server
