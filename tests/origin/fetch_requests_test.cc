// Requests of fetches: the connection that each is sent on, its lines, and when it is sent again.
#include <string>
#include <utility>
#include <vector>

#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

const std::string kEmpty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

std::string request_of(const std::string& method, const std::string& fields = {},
                       const std::string& version = "1.1") {
  return method + " /a HTTP/" + version + "\r\nHost: h\r\n" + fields + "\r\n";
}
FetchPlan plan_of(bool whole) {
  FetchPlan plan;
  plan.whole = whole;
  return plan;
}
FetchPlan upload_plan(bool has_upload = true) {
  FetchPlan plan;
  plan.has_upload = has_upload;
  return plan;
}
FetchPlan shared_plan() {
  FetchPlan plan = plan_of(true);
  plan.in_table = true;
  return plan;
}
FetchPlan refresh_plan() {
  FetchPlan plan;
  plan.background = true;
  return plan;
}
bool has(const Origin& origin, std::string_view text) {
  return origin.asked.find(text) != std::string::npos;
}
void run_turns(World& world, Origin& origin, int turns = 10) {
  for (int turn = 0; turn < turns; ++turn) {
    world.run_turn();
    origin.look();
  }
}
// Leaves an idle connection in the pool.
void keep_one(World& world, Origin& origin, const std::string& response = kEmpty) {
  FetchReader reader(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  origin.say(response);
  world.run_until(origin, [&] { return reader.is_done(); });
}

TEST_CASE("only what may be sent twice goes on a kept connection", "[origin][fetch]") {
  struct Row {
    const char* method;
    bool has_upload;
    bool reuses;
  };
  const Row row = GENERATE(values<Row>({{"GET", false, true},
                                        {"PUT", false, true},
                                        {"POST", false, false},
                                        {"PUT", true, false},
                                        {"POST", true, false}}));
  CAPTURE(row.method, row.has_upload);
  Origin origin;
  World world({origin.url()});
  keep_one(world, origin);
  REQUIRE(world.pool.size() == 1);
  FetchPlan plan;
  plan.has_upload = row.has_upload;
  const auto request =
      world.request(request_of(row.method, row.has_upload ? "Content-Length: 2\r\n" : ""));
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  CHECK(origin.accepted == (row.reuses ? 1 : 2));
  CHECK(world.stats.origin_reuses.get() == (row.reuses ? 1 : 0));
  if (row.has_upload) {
    world.run_until(origin, [&] { return reader.upload_calls != 0; });
    reader.producer()->upload("xy", true, "");
    world.run_until(origin, [&] { return origin.asked.ends_with("\r\n\r\nxy"); });
  }
  origin.say(kEmpty);
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK((reader.visit.connect.count() < 0) == row.reuses);
}

TEST_CASE("a request whose connection closes is sent again where that does no harm, once",
          "[origin][fetch]") {
  enum class When : std::uint8_t { kBeforeContent, kAfterContent };
  struct Row {
    const char* method;
    bool has_upload;
    When when;
    bool repeats;
  };
  const Row row = GENERATE(values<Row>({{"GET", false, When::kBeforeContent, true},
                                        {"DELETE", false, When::kBeforeContent, true},
                                        {"POST", false, When::kBeforeContent, false},
                                        {"PUT", true, When::kBeforeContent, true},
                                        {"PUT", true, When::kAfterContent, false},
                                        {"POST", true, When::kBeforeContent, false}}));
  CAPTURE(row.method, row.has_upload, static_cast<int>(row.when));
  Origin origin;
  World world({origin.url()});
  FetchPlan plan;
  plan.has_upload = row.has_upload;
  const auto request =
      world.request(request_of(row.method, row.has_upload ? "Content-Length: 2\r\n" : ""));
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  if (row.when == When::kAfterContent) {
    reader.producer()->upload("x", false, "");
    world.run_until(origin, [&] { return origin.asked.ends_with("\r\n\r\nx"); });
  }
  origin.close();
  origin.asked.clear();
  world.run_until(origin, [&] { return reader.is_done() || has(origin, "\r\n\r\n"); });
  CHECK(reader.is_done() == !row.repeats);
  CHECK(world.stats.origin_retries.get() == (row.repeats ? 1 : 0));
  CHECK(world.stats.origin_requests.get() == (row.repeats ? 2 : 1));
  CHECK(world.failures(ServerFailure::kClosed) == 1);
  if (row.repeats) {
    CHECK(origin.accepted == 2);
    origin.close();
    world.run_until(origin, [&] { return reader.is_done(); });
  }
  REQUIRE(reader.failure);
  CHECK(reader.failure->status == 502);
  CHECK(reader.failure->outcome == Outcome::kOriginAborted);
  CHECK(reader.failure->detail == "origin-closed");
  CHECK(world.failures() == (row.repeats ? 2 : 1));
  CHECK(origin.accepted == (row.repeats ? 2 : 1));
}

TEST_CASE("a reset is told as such", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.upstream.retries = 0; });
  FetchReader reader(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  origin.reset();
  world.run_until(origin, [&] { return reader.is_done(); });
  REQUIRE(reader.failure);
  CHECK(reader.failure->detail == "origin-reset");
}

TEST_CASE("what was answered for another request of the fetch does not keep it from a new attempt",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request(request_of("GET"));
  {
    FetchReader first(world, request, plan_of(true));
    world.run_until_asked(origin);
    origin.say(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: "
        "1\r\n\r\nx");
    world.run_until(origin, [&] { return first.is_done(); });
  }
  FetchPlan plan = plan_of(true);
  plan.stored = world.stored(*request);
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 304 Same\r\nETag: \"other\"\r\n\r\n");
  world.run_until(origin, [&] { return origin.accepted == 2 && has(origin, "\r\n\r\n"); });
  origin.close();
  world.run_until(origin, [&] { return reader.is_done() || origin.accepted == 3; });
  REQUIRE_FALSE(reader.is_done());
  world.run_until_asked(origin);
  origin.say(kEmpty);
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.head.starts_with("HTTP/1.1 200"));
}

TEST_CASE("content is gathered up to the limit before there is a connection", "[origin][fetch]") {
  const std::size_t limit = GENERATE(as<std::size_t>(), 0, 10);
  const std::string expect = GENERATE(as<std::string>(), "", "Expect: 100-continue\r\n");
  const std::size_t bytes = GENERATE(as<std::size_t>(), 9, 10);
  const bool last = GENERATE(true, false);
  CAPTURE(limit, expect, bytes, last);
  Origin origin;
  World world({origin.url()},
              [&](config::Config& config) { config.upstream.buffer_requests_bytes = limit; });
  const std::string length = std::to_string(last ? bytes : 20);
  FetchReader reader(
      world, world.request(request_of("PUT", "Content-Length: " + length + "\r\n" + expect)),
      upload_plan());
  const bool gathers = limit != 0 && expect.empty();
  CHECK(reader.producer()->accepts_upload() == gathers);
  CHECK(reader.upload_calls == 0);  // not from within the call
  world.run_until(origin, [&] { return reader.upload_calls != 0; });
  run_turns(world, origin);
  CHECK(origin.accepted == (gathers ? 0 : 1));
  CHECK(has(origin, "Expect: 100-continue\r\n") == !expect.empty());
  REQUIRE(reader.producer()->accepts_upload());
  const std::string content(bytes, 'x');
  reader.producer()->upload(content, last, "");
  run_turns(world, origin);
  const bool is_enough = !gathers || last || bytes >= limit;
  CHECK(origin.accepted == (is_enough ? 1 : 0));
  CHECK(origin.asked.ends_with("\r\n\r\n" + content) == is_enough);
  CHECK(world.stats.origin_connects.get() == (is_enough ? 1 : 0));
  if (!last) {
    REQUIRE(reader.producer()->accepts_upload());
    reader.producer()->upload(std::string(20 - bytes, 'y'), true, "");
  }
  world.run_until(origin,
                  [&] { return has(origin, last ? content : std::string(20 - bytes, 'y')); });
  origin.say("HTTP/1.1 204 Done\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.head.starts_with("HTTP/1.1 204"));
  CHECK(world.pool.size() == 1);
}

TEST_CASE("time in which content is gathered is the client's", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()}, [](config::Config& config) {
    config.upstream.buffer_requests_bytes = 10;
    config.upstream.total = seconds(5);
  });
  FetchReader reader(world, world.request(request_of("PUT", "Content-Length: 20\r\n")),
                     upload_plan());
  REQUIRE(world.fetches.size() == 1);
  Fetch& fetch = *world.fetches.front();
  fetch.check_timeouts(world.loop->now() + std::chrono::hours(1));
  run_turns(world, origin);
  CHECK_FALSE(reader.is_done());
  const MonotonicTime from = world.loop->now();
  reader.producer()->upload(std::string(10, 'x'), false, "");
  world.run_until_asked(origin);
  fetch.check_timeouts(from + seconds(5) - Nanoseconds(1));
  run_turns(world, origin);
  CHECK_FALSE(reader.is_done());
  fetch.check_timeouts(world.loop->now() + seconds(5));
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.failure->detail == "total-timeout");
}

TEST_CASE("a fetch that is left while it gathers never connects", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.upstream.buffer_requests_bytes = 10; });
  FetchReader reader(world, world.request(request_of("PUT", "Content-Length: 20\r\n")),
                     upload_plan());
  run_turns(world, origin);
  reader.producer()->upload(std::string(10, 'x'), false, "");
  reader.leave();
  run_turns(world, origin);
  CHECK(world.fetches.empty());
  CHECK(origin.accepted == 0);
}

TEST_CASE("a server of HTTP/1.0 receives a length in place of chunks, or nothing",
          "[origin][fetch][rfc9112]") {
  const bool is_old = GENERATE(true, false);
  const bool gathers = GENERATE(true, false);
  const bool chunked = GENERATE(true, false);
  CAPTURE(is_old, gathers, chunked);
  Origin origin;
  World world({origin.url()}, [&](config::Config& config) {
    config.upstream.buffer_requests_bytes = gathers ? 1000 : 0;
  });
  keep_one(world, origin,
           std::string("HTTP/1.") + (is_old ? "0" : "1") + " 200 OK\r\nContent-Length: 0\r\n\r\n");
  const int before = origin.accepted;
  FetchReader reader(world,
                     world.request(request_of("PUT", chunked ? "Transfer-Encoding: chunked\r\n"
                                                             : "Content-Length: 5\r\n")),
                     upload_plan());
  world.run_until(origin, [&] { return reader.upload_calls != 0 || reader.is_done(); });
  if (is_old && chunked && !gathers) {
    REQUIRE(reader.failure);
    CHECK(reader.failure->status == 411);
    CHECK(reader.failure->outcome == Outcome::kBadRequest);
    CHECK(reader.failure->detail == "length-required");
    CHECK(reader.failure->why.find("HTTP/1.0") != std::string::npos);
    CHECK(world.stats.origin_requests.get() == 1);
    return;
  }
  reader.producer()->upload("hello", true, "");
  const bool as_chunks = chunked && !is_old;
  world.run_until(origin, [&] {
    return origin.accepted == before + 1 &&
           origin.asked.ends_with(as_chunks ? "\r\n\r\n5\r\nhello\r\n0\r\n\r\n" : "\r\n\r\nhello");
  });
  CHECK(has(origin, "Content-Length: 5\r\n") == !as_chunks);
  CHECK(has(origin, "Transfer-Encoding: chunked\r\n") == as_chunks);
  origin.say(kEmpty);
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(world.failures() == 0);
}

TEST_CASE("an expectation goes on where content may wait for it", "[origin][fetch][rfc9110]") {
  const std::string version = GENERATE(as<std::string>(), "1.1", "1.0");
  const bool has_upload = GENERATE(true, false);
  CAPTURE(version, has_upload);
  Origin origin;
  World world({origin.url()});
  FetchReader reader(world,
                     world.request(request_of("PUT",
                                              std::string("Expect: 100-continue\r\n") +
                                                  (has_upload ? "Content-Length: 2\r\n" : ""),
                                              version)),
                     upload_plan(has_upload));
  world.run_until_asked(origin);
  CHECK(has(origin, "Expect: ") == (has_upload && version == "1.1"));
}

TEST_CASE("conditions and ranges of the client go on as they are, or not at all",
          "[origin][fetch]") {
  const bool whole = GENERATE(true, false);
  const std::string line = GENERATE(as<std::string>(), "If-None-Match: \"x\"\r\n",
                                    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "");
  CAPTURE(whole, line);
  Origin origin;
  World world({origin.url()});
  FetchReader reader(world, world.request(request_of("GET", line + "Range: bytes=0-0\r\n")),
                     plan_of(whole));
  world.run_until_asked(origin);
  CHECK(has(origin, "Range: bytes=0-0\r\n") == !whole);
  if (!line.empty()) CHECK(has(origin, line) == !whole);
  CHECK(world.stats.revalidations.get() == 0);
  // A 304 is an answer to a condition alone.
  origin.say("HTTP/1.1 304 Same\r\nETag: \"x\"\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  if (!whole && !line.empty()) {
    CHECK(reader.head.starts_with("HTTP/1.1 304"));
    CHECK(world.failures() == 0);
  } else {
    REQUIRE(reader.failure);
    CHECK(reader.failure->detail == "unasked-304");
    CHECK(world.failures(ServerFailure::kInvalid) == 1);
  }
}

TEST_CASE("interim responses are passed on, as many as may come", "[origin][fetch]") {
  const int count = GENERATE(3, 4);
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.limits.interim_responses = 3; });
  FetchReader reader(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  for (int i = 0; i < count; ++i) {
    origin.say("HTTP/1.1 103 Hint\r\nLink: </" + std::to_string(i) + ">\r\n\r\n");
    run_turns(world, origin, 3);
  }
  CHECK(reader.is_done() == (count > 3));
  if (count > 3) {
    CHECK(reader.failure->detail == "too-many-interim-responses");
    CHECK(reader.failure->status == 502);
    CHECK(world.failures(ServerFailure::kInvalid) == 1);
    return;
  }
  CHECK(reader.interim.find("</0>") != std::string::npos);
  CHECK(reader.interim.find("</2>") != std::string::npos);
  origin.say(kEmpty);
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.head.starts_with("HTTP/1.1 200"));
}

TEST_CASE("a head may be as long as is configured, and no longer", "[origin][fetch]") {
  const int beyond = GENERATE(0, 1);
  constexpr std::size_t kMax = 20'000;
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.limits.head_bytes = kMax; });
  FetchReader reader(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  const std::string begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: a\r\nX: ";
  const std::size_t filling = kMax + static_cast<std::size_t>(beyond) - begin.size() - 4;
  origin.say(begin + std::string(filling, 'x') + "\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.failure.has_value() == (beyond != 0));
  world.wastes_bytes = beyond != 0;
}

TEST_CASE("of trailers nobody else gets what is for one, or for one hop", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request(request_of("GET"));
  FetchReader reader(world, request, plan_of(true));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, private=\"X-Own\"\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-All: 1\r\nX-Own: 2\r\n"
      "X-Request-Id: 3\r\nContent-Length: 4\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.response->trailers == "X-All: 1\r\n");
  const store::ObjectRef stored = world.stored(*request);
  REQUIRE(stored);
  CHECK(trailers_of(*stored) == "X-All: 1\r\n");
  CHECK(meta_of(*stored).plain == 0);
}

TEST_CASE("trailers that make no sense break the response off", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request(request_of("GET"));
  FetchReader reader(world, request, plan_of(true));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nno field\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK_FALSE(reader.whole);
  CHECK_FALSE(world.stored(*request));
  CHECK(world.failures(ServerFailure::kInvalid) == 1);
}

TEST_CASE("where a server has all the connections that it may, a fetch fails at once",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 1});
  FetchReader first(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  FetchReader second(world, world.request(request_of("GET")), {});
  CHECK_FALSE(second.is_done());  // not from within the call
  world.run_until(origin, [&] { return second.is_done(); });
  REQUIRE(second.failure);
  CHECK(second.failure->status == 503);
  CHECK(second.failure->outcome == Outcome::kOriginUnreachable);
  CHECK(second.failure->detail == "origin-busy");
  CHECK_FALSE(second.failure->of_the_client);
  CHECK(second.failure->visit.server == origin.url());
  CHECK(second.failure->visit.address.empty());
  CHECK(world.stats.origin_busy.get() == 1);
  CHECK(world.failures(ServerFailure::kBusy) == 1);
  CHECK(world.failures() == 1);
}

TEST_CASE("a fetch that waits for its client's share is held back until it has it",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 4, .per_client = 1, .waiting = 4});
  FetchReader first(world, world.request(request_of("GET")), {});
  world.run_until_asked(origin);
  FetchReader second(world, world.request(request_of("GET")), shared_plan());
  const auto transfer = world.told.transfers.back().lock();
  REQUIRE(transfer != nullptr);
  CHECK(transfer->is_held_back());
  origin.say(kEmpty);
  world.run_until(origin, [&] { return first.is_done(); });
  world.lines.wake();
  CHECK_FALSE(transfer->is_held_back());
  world.run_until_asked(origin);
  CHECK(world.stats.origin_waits.get() == 1);
  // A refresh that is refused for its client's share says nothing of its origin.
  FetchReader third(world, world.request(request_of("GET")), refresh_plan());
  world.fetches.back()->check_timeouts(world.loop->now() + std::chrono::hours(1));
  world.run_until(origin, [&] { return third.is_done(); });
  REQUIRE(third.failure);
  CHECK(third.failure->of_the_client);
  CHECK(world.inflight.refresh_backoff().may_begin(third.request().hash, world.loop->now()));
  CHECK(world.failures() == 0);
}

TEST_CASE("the rest of a request behind its response goes on, and the connection is kept",
          "[origin][fetch]") {
  enum class Rest : std::uint8_t { kSent, kBytesCome, kLeft, kClosed };
  const Rest rest = GENERATE(Rest::kSent, Rest::kBytesCome, Rest::kLeft, Rest::kClosed);
  const bool is_blocked = GENERATE(true, false);
  CAPTURE(static_cast<int>(rest), is_blocked);
  Origin origin;
  World world({origin.url()});
  FetchReader reader(world, world.request(request_of("PUT", "Content-Length: 9000000\r\n")),
                     upload_plan());
  reader.appetite = 2;  // so that it stays
  world.run_until(origin, [&] { return reader.upload_calls != 0; });
  reader.producer()->upload("some", false, "");
  world.run_until(origin, [&] { return origin.asked.ends_with("some"); });
  origin.say("HTTP/1.1 202 OK\r\nContent-Length: 2\r\n\r\nok");
  world.run_until(origin, [&] { return reader.body == "ok"; });
  CHECK(world.fetches.size() == 1);
  REQUIRE(reader.producer()->takes_rest());
  CHECK(world.pool.size() == 0);
  const std::size_t sent = is_blocked ? 8'999'996 : 10;
  if (rest == Rest::kSent) {
    reader.producer()->upload(std::string(sent, 'x'), true, "");
  } else if (is_blocked) {
    reader.producer()->upload(std::string(sent, 'x'), false, "");
  }
  const int calls = reader.upload_calls;
  switch (rest) {
    case Rest::kSent:
      world.run_until(origin, [&] { return world.fetches.empty() && origin.asked.size() >= sent; });
      CHECK(world.pool.size() == 1);
      break;
    case Rest::kBytesCome:
      world.wastes_bytes = true;
      origin.say("HTTP/1.1 200 OK\r\n\r\n");
      world.run_until(origin, [&] { return world.fetches.empty(); });
      CHECK(world.pool.size() == 0);
      CHECK(reader.upload_calls > calls);
      break;
    case Rest::kClosed:
      origin.close();
      world.run_until(origin, [&] { return world.fetches.empty(); });
      CHECK(reader.upload_calls > calls);
      break;
    case Rest::kLeft:
      reader.leave();
      run_turns(world, origin);
      CHECK(world.fetches.empty());
      break;
  }
  CHECK(world.pool.size() == (rest == Rest::kSent ? 1 : 0));
  CHECK_FALSE(reader.failure);
  CHECK(world.failures() == 0);
}

TEST_CASE("a request whose rest nobody would take ends with its response", "[origin][fetch]") {
  struct Row {
    const char* fields;
    const char* connection;
    std::uint64_t behind;
    bool goes_on;
  };
  const Row row = GENERATE(values<Row>({
      {"", "", 1000, true},
      {"", "", 0, false},
      {"", "Connection: close\r\n", 1000, false},
      {"Expect: 100-continue\r\n", "", 1000, false},
  }));
  CAPTURE(row.fields, row.connection, row.behind);
  Origin origin;
  World world({origin.url()}, [&](config::Config& config) {
    config.limits.body_behind_response_bytes = row.behind;
  });
  FetchReader reader(
      world, world.request(request_of("PUT", std::string("Content-Length: 5\r\n") + row.fields)),
      upload_plan());
  reader.appetite = 2;
  world.run_until(origin, [&] { return reader.upload_calls != 0; });
  origin.say(std::string("HTTP/1.1 413 No\r\nContent-Length: 2\r\n") + row.connection + "\r\nno");
  world.run_until(origin, [&] { return reader.body == "no"; });
  CHECK(world.fetches.size() == (row.goes_on ? 1 : 0));
  CHECK((reader.producer() != nullptr && reader.producer()->takes_rest()) == row.goes_on);
  CHECK(world.pool.size() == 0);
}

}  // namespace
}  // namespace encore::server
