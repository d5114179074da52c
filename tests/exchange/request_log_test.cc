// Traces of a request in counters and log.
#include "proxy/exchange/request_log.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

const net::Address kClient = net::Address::loopback_v4(4711);

struct Ended {
  explicit Ended(LogWriter* writer = nullptr, const config::Config& config = {})
      : loop(std::move(*net::Loop::create())),
        runtime(some_runtime(config)),
        log(*loop, stats, writer, runtime) {}
  std::uint64_t timed(OutcomeClass which) const {
    std::uint64_t sum = 0;
    for (std::size_t b = 0; b < kLatencyBuckets; ++b) {
      sum += stats.latency[static_cast<std::size_t>(which)].bucket(b);
    }
    return sum;
  }
  // Returns the record of a request that began so long ago.
  RequestRecord record(Outcome outcome, Nanoseconds ago = Nanoseconds(0)) {
    RequestRecord made;
    made.client = &kClient;
    made.outcome = outcome;
    made.started = loop->now() - ago;
    made.status = 200;
    made.sent_bytes = 300;
    made.body_bytes = 200;
    return made;
  }

  std::unique_ptr<net::Loop> loop;
  std::shared_ptr<const Runtime> runtime;
  WorkerStats stats;
  RequestLog log;
};

TEST_CASE("every outcome is counted as itself, its bytes, and its time in its class",
          "[exchange][log]") {
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    CAPTURE(kOutcomeNames[i]);
    Ended ended;
    const auto outcome = static_cast<Outcome>(i);
    ended.log.record(ended.record(outcome));
    for (std::size_t other = 0; other < kOutcomeCount; ++other) {
      CHECK(ended.stats.requests[other].get() == (other == i ? 1 : 0));
    }
    CHECK(ended.stats.bytes_to_clients.get() == 300);
    CHECK(ended.stats.body_bytes() == 200);
    for (const auto which :
         {OutcomeClass::kHit, OutcomeClass::kMiss, OutcomeClass::kPass, OutcomeClass::kError}) {
      const bool is_its = class_of(outcome) == which;
      CHECK(ended.timed(which) == (is_its ? 1 : 0));
      CHECK(ended.stats.body_bytes(which) == (is_its ? 200 : 0));
      const ResponseSizes& sizes = ended.stats.sizes[static_cast<std::size_t>(which)];
      CHECK(sizes.buckets[response_size_bucket(200)].get() == (is_its ? 1 : 0));
    }
  }
}

TEST_CASE("recent requests show their queries where the config says so", "[exchange][log]") {
  config::Config config;
  config.admin.show_queries = GENERATE(false, true);
  Ended ended(nullptr, config);
  const auto request = some_request("GET http://h/a?b=c HTTP/1.1\nHost: h\n");
  RequestRecord record = ended.record(Outcome::kOriginTimeout);
  record.head = &request->head;
  ended.log.record(record);
  OutcomeReport report;
  ended.stats.recent.add_to(report, Outcome::kOriginTimeout);
  REQUIRE(report.latest.size() == 1);
  CHECK(report.latest[0].method == "GET");
  CHECK(report.latest[0].url.contains("b=c") == config.admin.show_queries);
}

TEST_CASE("turns of the loop are short where small responses end, of whichever kind",
          "[exchange][log]") {
  const auto bytes = GENERATE(std::uint64_t{300}, std::uint64_t{1} << 20);
  const bool is_counted_alone = GENERATE(false, true);
  Ended ended;
  if (is_counted_alone) {
    ended.log.count_noted({.started = ended.loop->now(), .sent_bytes = bytes});
  } else {
    RequestRecord record = ended.record(Outcome::kUncacheable);
    record.sent_bytes = bytes;
    ended.log.record(record);
  }
  CHECK(ended.loop->shares().allowance() ==
        (bytes == 300 ? net::TurnShares::kShortTurnMin : net::TurnShares::kShareMax));
}

TEST_CASE("what was kept out and what failed is counted, and remembered with its reason",
          "[exchange][log]") {
  Ended ended;
  for (const auto outcome :
       {Outcome::kFirstRequest, Outcome::kNotAdmitted, Outcome::kUncacheable}) {
    RequestRecord record = ended.record(outcome);
    record.detail = "why";
    record.status = outcome == Outcome::kUncacheable ? 500 : 499;
    ended.log.record(record);
  }
  CHECK(ended.stats.kept_out.get() == 2);
  CHECK(ended.stats.kept_out_bytes.get() == 400);
  CHECK(ended.stats.responses_5xx.get() == 1);
  OutcomeReport report;
  ended.stats.recent.add_to(report, Outcome::kUncacheable);
  REQUIRE(report.reasons.size() == 1);
  CHECK(report.reasons[0].name == "why");
  CHECK(report.latest.at(0).status == 500);
  // One in many plain hits is remembered, and none is far from the next.
  for (std::uint32_t i = 0; i < 2 * RecentRequests::kHitSample; ++i) {
    ended.log.record(ended.record(Outcome::kHit));
  }
  OutcomeReport hits;
  ended.stats.recent.add_to(hits, Outcome::kHit);
  REQUIRE(hits.reasons.size() == 1);
  CHECK(hits.reasons[0].count % RecentRequests::kHitSample == 0);
}

TEST_CASE("a request is counted with its listener, its rule and, where it failed, its detail",
          "[exchange][log]") {
  config::Config config;
  config::Rule rule;
  rule.name = "some";
  rule.host = {"*"};
  config.rule = {rule};
  auto ruled = Runtime::create(config, {}, "test");
  REQUIRE(ruled);
  auto loop = std::move(*net::Loop::create());
  ErrorNames errors;
  WorkerStats stats;
  const std::shared_ptr<const Runtime> runtime = *ruled;
  RequestLog log(*loop, stats, nullptr, runtime, {.errors = &errors});
  ListenerCounts listener;
  RequestRecord record;
  record.outcome = Outcome::kHit;
  record.started = loop->now();
  record.sent_bytes = 300;
  record.listener = &listener;
  log.record(record);
  record.rule = &runtime->rules[0];
  record.outcome = Outcome::kOriginTimeout;
  record.detail = "response-timeout";
  log.record(record);
  record.listener = nullptr;
  log.record(record);
  CHECK(listener.requests[static_cast<std::size_t>(OutcomeClass::kHit)].get() == 1);
  CHECK(listener.requests[static_cast<std::size_t>(OutcomeClass::kError)].get() == 1);
  CHECK(listener.sent_bytes.get() == 600);
  const RuleCounts& counts = runtime->rules[0].counts(0);
  CHECK(counts.requests[static_cast<std::size_t>(OutcomeClass::kHit)].get() == 0);
  CHECK(counts.requests[static_cast<std::size_t>(OutcomeClass::kError)].get() == 2);
  REQUIRE(errors.names().size() == 1);
  CHECK(errors.names()[0] == ErrorNames::Name{Outcome::kOriginTimeout, "response-timeout"});
  CHECK(stats.errors.at(0) == 2);
}

TEST_CASE("what is remembered of a key says why: a rule where there is no key, else the response",
          "[exchange][log]") {
  config::Config config;
  config::Rule with_cache;
  with_cache.host = {"kept.example"};
  config::Rule without = with_cache;
  without.host = {"out.example"};
  without.cache = false;
  config.rule = {with_cache, without};
  const auto runtime = some_runtime(config);
  SharedResponse response;
  response.reason = http::StoreReason::kNoStore;
  const auto reason_of = [&](const std::string& method, const std::string& url,
                             const SharedResponse* got) {
    auto loop = std::move(*net::Loop::create());
    WorkerStats stats;
    RecentOutcomes recent;
    RequestLog log(*loop, stats, nullptr, runtime, {.recent = &recent});
    const auto request = some_request(method + " " + url + " HTTP/1.1\nHost: h\n", runtime);
    RequestRecord record;
    record.outcome = Outcome::kUncacheable;
    record.started = loop->now();
    log.record(record, {.request = *request, .response = got});
    const auto known = recent.of(request->hash);
    REQUIRE(known.size() == 1);
    return known[0].seen.reason;
  };
  CHECK(reason_of("GET", "http://out.example/", &response) == http::StoreReason::kRule);
  CHECK(reason_of("GET", "http://out.example/", nullptr) == http::StoreReason::kOk);
  CHECK(reason_of("GET", "http://kept.example/", &response) == http::StoreReason::kNoStore);
  CHECK(reason_of("GET", "http://kept.example/", nullptr) == http::StoreReason::kOk);
  CHECK(reason_of("GET", "http://none.example/", &response) == http::StoreReason::kNoStore);
}

TEST_CASE("a time is that since the request began", "[exchange][log]") {
  Ended ended;
  ended.log.record(ended.record(Outcome::kHit, std::chrono::seconds(10)));
  const auto& hits = ended.stats.latency[static_cast<std::size_t>(OutcomeClass::kHit)];
  for (std::size_t b = 0; b < latency_bucket(std::chrono::seconds(10)); ++b) {
    CHECK(hits.bucket(b) == 0);
  }
}

TEST_CASE("a line of the log is the request and what it came to", "[exchange][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  Ended ended(writer->get());
  CHECK(ended.log.is_logging());
  const auto request =
      some_request("GET http://a.example/x HTTP/1.0\nHost: a.example\nReferer: r\nUser-Agent: u\n",
                   ended.runtime);
  RequestRecord record = ended.record(Outcome::kAdmitted, std::chrono::seconds(10));
  OriginVisit visit{.address = "192.0.2.1:80", .server = "http://s:80"};
  visit.answer = std::chrono::microseconds(700);
  record.visit = &visit;
  record.request_id = "abc";
  record.detail = "why";
  record.content_type = "text/html";
  const auto client = net::Address::parse_ip("192.0.2.7", 1).value();
  record.head = &request->head;
  record.client = &client;
  ended.log.record(record);
  // There is less to say of a request that could not be parsed.
  RequestRecord refused = ended.record(Outcome::kBadRequest);
  refused.status = 400;
  ended.log.record(refused);
  CHECK(read_text(place / "log").empty());
  CHECK(ended.log.hand_over() == 0);
  (*writer)->flush();

  std::istringstream lines(read_text(place / "log"));
  std::string line;
  REQUIRE(std::getline(lines, line));
  const auto first = nlohmann::json::parse(line);
  CHECK(first["client"] == "192.0.2.7");
  CHECK(first["method"] == "GET");
  CHECK(first["url"] == "http://a.example/x");
  CHECK(first["version"] == "HTTP/1.0");
  CHECK(first["status"] == 200);
  CHECK(first["bytes"] == 300);
  CHECK(first["body_bytes"] == 200);
  CHECK(first["outcome"] == "admitted");
  CHECK(first["origin"] == "192.0.2.1:80");
  CHECK(first["server"] == "http://s:80");
  CHECK(first["origin_us"] == 700);
  CHECK_FALSE(first.contains("connect_us"));
  CHECK(first["request_id"] == "abc");
  CHECK(first["detail"] == "why");
  CHECK(first["content_type"] == "text/html");
  CHECK(first["duration_us"].get<std::int64_t>() >= 10'000'000);
  REQUIRE(std::getline(lines, line));
  const auto second = nlohmann::json::parse(line);
  CHECK(second["client"] == "127.0.0.1");
  CHECK(second["status"] == 400);
  CHECK(second["outcome"] == "bad-request");
  CHECK(second["url"] == "");
  // When it began, as the clock had it: ten seconds earlier.
  CHECK(first["time"].get<std::string>() < second["time"].get<std::string>());
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("a log in another format begins with the next request", "[exchange][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  Ended ended(writer->get());
  config::Config config;
  config.log.format = "squid";
  ended.runtime = some_runtime(config);
  ended.log.record(ended.record(Outcome::kHit));
  CHECK(ended.log.hand_over() == 0);
  (*writer)->flush();
  CHECK(read_text(place / "log").find("TCP_MEM_HIT/200") != std::string::npos);
}

}  // namespace
}  // namespace encore::server
