// A fetch for each combination of request, response and end: its reader, the cache, the pool, and
// the counters of its server agree with a plain statement of the rules.
#include <string>
#include <utility>
#include <vector>

#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using Unshared = Inflight::Unshared;

enum class FramedBy : std::uint8_t { kLength, kChunks, kUntilClosed };
enum class Ending : std::uint8_t { kWhole, kWholeAndClosed, kCutInHead, kCutInBody, kBadChunk };

struct Scenario {
  int status = 200;
  std::string control;
  FramedBy framed = FramedBy::kLength;
  Ending ending = Ending::kWhole;
  bool says_close = false;
  bool in_table = false;
  bool background = false;
  bool reload = false;  // its client wants no stored response

  std::string text() const {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " Status\r\n";
    if (!control.empty()) text += "Cache-Control: " + control + "\r\n";
    text += "ETag: \"v\"\r\n";
    if (says_close) text += "Connection: close\r\n";
    if (framed == FramedBy::kLength) text += "Content-Length: 10\r\n";
    if (framed == FramedBy::kChunks) text += "Transfer-Encoding: chunked\r\n";
    if (ending == Ending::kCutInHead) return text;
    text += "\r\n";
    const bool is_cut = ending == Ending::kCutInBody || ending == Ending::kBadChunk;
    if (framed == FramedBy::kChunks) text += "5\r\n";
    text += "01234";
    if (ending == Ending::kBadChunk) return text + "\r\nzz\r\n";
    if (is_cut) return text;
    if (framed == FramedBy::kChunks) text += "\r\n5\r\n";
    text += "56789";
    if (framed == FramedBy::kChunks) text += "\r\n0\r\n\r\n";
    return text;
  }
  bool closes() const { return ending != Ending::kWhole || framed == FramedBy::kUntilClosed; }
  // As its reader sees it: what ends with the connection cannot be cut.
  bool is_whole() const {
    return ending == Ending::kWhole || ending == Ending::kWholeAndClosed ||
           (ending == Ending::kCutInBody && framed == FramedBy::kUntilClosed);
  }
  bool has_head() const { return ending != Ending::kCutInHead; }
  std::string body() const {
    if (!has_head()) return {};
    return ending == Ending::kCutInBody || ending == Ending::kBadChunk ? "01234" : "0123456789";
  }
  // By its lifetime, or as a 200 that is validated each time.
  bool is_storable() const {
    return control == "max-age=60" || (control == "no-cache" && status == 200);
  }
  bool is_kept() const {
    return is_whole() && ending == Ending::kWhole && framed != FramedBy::kUntilClosed &&
           !says_close;
  }
};

void check(const Scenario& of) {
  CAPTURE(of.text(), of.in_table, of.background, of.reload);
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.upstream.retries = 0; });
  world.wastes_bytes = !of.has_head() || of.ending == Ending::kBadChunk;
  const auto request = world.request(std::string("GET /a HTTP/1.1\r\nHost: h\r\n") +
                                     (of.reload ? "Cache-Control: no-cache\r\n" : "") + "\r\n");
  FetchPlan plan;
  plan.whole = true;
  plan.in_table = of.in_table;
  plan.background = of.background;
  const std::uint64_t used = world.kernel->statistics().used_bytes;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  CHECK(world.stats.origin_requests.get() == 1);
  origin.say(of.text());
  if (of.closes() && of.ending != Ending::kBadChunk) origin.end();
  world.run_until(origin, [&] { return reader.is_done() && world.fetches.empty(); });

  // The reader.
  CHECK(reader.head.empty() == !of.has_head());
  CHECK(reader.body == of.body());
  CHECK(reader.whole == of.is_whole());
  CHECK(reader.failure.has_value() == !of.has_head());
  if (reader.failure) {
    CHECK(reader.failure->status == 502);
    CHECK(reader.failure->outcome == Outcome::kOriginAborted);
    CHECK(reader.failure->detail == "origin-closed");
    CHECK_FALSE(reader.failure->of_the_client);
    CHECK(reader.failure->visit.server == origin.url());
    CHECK_FALSE(reader.failure->visit.address.empty());
    CHECK(reader.failure->visit.connect.count() >= 0);
    CHECK(reader.failure->visit.answer.count() < 0);
  }
  // The cache.
  const bool is_stored = of.is_storable() && of.is_whole();
  const store::ObjectRef stored = world.stored(*request);
  CHECK(static_cast<bool>(stored) == is_stored);
  CHECK(world.stats.stored.get() == (is_stored ? 1 : 0));
  CHECK(world.stats.store_aborts.get() ==
        (of.is_storable() && of.has_head() && !of.is_whole() ? 1 : 0));
  if (stored) {
    CHECK(stored->body_size() == of.body().size());
    CHECK(meta_of(*stored).http.status == of.status);
    CHECK(reader.outcome == Outcome::kAdmitted);
    CHECK(cache::is_stored(reader.response->admitted));
  } else {
    CHECK(world.kernel->statistics().used_bytes == used);
  }
  if (of.has_head()) {
    CHECK((reader.response->stored != false) == is_stored);
    CHECK_FALSE(reader.response->overtaken);
    CHECK((reader.response->reason == http::StoreReason::kOk) == of.is_storable());
    CHECK(reader.response->length.has_value() == (of.framed == FramedBy::kLength));
    CHECK(reader.response->whole == (of.status == 200));
  }
  // The pool, which sees in time that its connection has ended, and the server.
  if (!of.is_kept()) world.run_until(origin, [&] { return world.pool.size() == 0; });
  CHECK(world.pool.size() == (of.is_kept() ? 1 : 0));
  CHECK(world.stats.origin_connections.get() == world.pool.size());
  CHECK(world.stats.origin_retries.get() == 0);
  CHECK(world.failures(ServerFailure::kClosed) == (of.has_head() ? 0 : 1));
  CHECK(world.failures(ServerFailure::kInvalid) == (of.ending == Ending::kBadChunk ? 1 : 0));
  CHECK(world.failures(ServerFailure::kBroken) ==
        (of.ending == Ending::kCutInBody && !of.is_whole() ? 1 : 0));
  CHECK(world.failures() == (of.is_whole() ? 0 : 1));
  // Others learn whether a stored response may be refreshed now, and whether to wait.
  const bool has_failed = !of.is_whole() || of.status >= 500;
  CHECK(world.inflight.refresh_backoff().may_begin(request->hash, world.loop->now()) ==
        !(of.background && has_failed));
  const Unshared unshared = world.inflight.unshared(request->hash, 0, world.loop->now());
  Unshared expected = Unshared::kNo;
  if (of.in_table && of.has_head()) {
    if (!of.is_storable()) expected = Unshared::kUncacheable;
    if (of.is_storable() && of.control == "no-cache") expected = Unshared::kValidated;
  }
  CHECK(unshared == expected);
  // A request that comes now finds a cached object, and no transfer.
  FetchReader late(FetchReader::Join{}, world, request);
  CHECK(late.is_done());
}

TEST_CASE("each end of a fetch is what its response makes it", "[origin][fetch]") {
  for (const int status : {200, 503}) {
    for (const char* control : {"max-age=60", "no-store", "no-cache"}) {
      for (const FramedBy framed : {FramedBy::kLength, FramedBy::kChunks, FramedBy::kUntilClosed}) {
        for (const Ending ending : {Ending::kWhole, Ending::kWholeAndClosed, Ending::kCutInHead,
                                    Ending::kCutInBody, Ending::kBadChunk}) {
          if (ending == Ending::kBadChunk && framed != FramedBy::kChunks) continue;
          // The rest in turns: each pair of values comes about.
          static unsigned turn = 0;
          turn = turn * 5 + 3;
          check({.status = status,
                 .control = control,
                 .framed = framed,
                 .ending = ending,
                 .says_close = (turn >> 3U) % 2 != 0,
                 .in_table = (turn >> 4U) % 2 != 0,
                 .background = (turn >> 5U) % 2 != 0,
                 .reload = (turn >> 6U) % 2 != 0});
        }
      }
    }
  }
}

// A whole response is stored under the key; then it is validated.
struct Validating {
  explicit Validating(std::string_view control,
                      const std::function<void(config::Config&)>& change = {})
      : world({origin.url()}, change),
        request(world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")) {
    FetchPlan plan;
    plan.whole = true;
    FetchReader reader(world, request, std::move(plan));
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 200 OK\r\nCache-Control: " + std::string(control) +
               "\r\nETag: \"v\"\r\nContent-Length: 5\r\n\r\nhello");
    world.run_until(origin, [&] { return reader.is_done(); });
    old = world.stored(*request);
    REQUIRE(old);
  }
  FetchPlan plan(bool background, bool in_table = false) const {
    FetchPlan plan;
    plan.whole = true;
    plan.background = background;
    plan.in_table = in_table;
    plan.stored = old;
    plan.stored_fresh_until = world.loop->now();
    return plan;
  }
  bool may_refresh() const {
    return world.inflight.refresh_backoff().may_begin(request->hash, world.loop->now());
  }

  Origin origin;
  World world;
  std::shared_ptr<const RequestContext> request;
  store::ObjectRef old;
};

TEST_CASE("an error to a validation leaves what is stored, and is served or hidden",
          "[origin][fetch]") {
  const bool background = GENERATE(true, false);
  const bool allowed = GENERATE(true, false);
  CAPTURE(background, allowed);
  Validating validating(allowed ? "max-age=60, stale-if-error=600" : "max-age=60, must-revalidate");
  World& world = validating.world;
  FetchReader reader(world, validating.request, validating.plan(background, true));
  world.run_until_asked(validating.origin);
  CHECK(world.stats.revalidations.get() == 1);
  validating.origin.say("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
  world.run_until(validating.origin, [&] { return reader.is_done() && world.fetches.empty(); });
  if (allowed) {
    REQUIRE(reader.validated);
    CHECK(reader.validated->stale);
    CHECK(reader.validated->status == 503);
    CHECK(reader.validated->detail == "status-503");
    CHECK(reader.validated->object.payload() == validating.old.payload());
    CHECK_FALSE(reader.validated->shareable);
  } else {
    CHECK_FALSE(reader.validated);
    CHECK(reader.head.starts_with("HTTP/1.1 503"));
  }
  CHECK(world.stored(*validating.request).payload() == validating.old.payload());
  CHECK(validating.may_refresh() == !background);
}

TEST_CASE("an origin that does not answer a validation: what is stored may be served stale",
          "[origin][fetch]") {
  enum class Away : std::uint8_t { kRefuses, kCloses };
  const Away away = GENERATE(Away::kRefuses, Away::kCloses);
  const bool background = GENERATE(true, false);
  const bool allowed = GENERATE(true, false);
  CAPTURE(static_cast<int>(away), background, allowed);
  Validating validating(allowed ? "max-age=60, stale-if-error=600" : "max-age=60, must-revalidate",
                        [](config::Config& config) { config.upstream.retries = 0; });
  World& world = validating.world;
  world.pool.close_all();
  world.run_turn();
  if (away == Away::kRefuses) validating.origin.stop_listening();
  FetchReader reader(world, validating.request, validating.plan(background, true));
  if (away == Away::kCloses) {
    world.run_until_asked(validating.origin);
    validating.origin.close();
  }
  world.run_until(validating.origin, [&] { return reader.is_done() && world.fetches.empty(); });
  const std::string detail = away == Away::kRefuses ? "connect-refused" : "origin-closed";
  if (allowed) {
    REQUIRE(reader.validated);
    CHECK(reader.validated->stale);
    CHECK(reader.validated->status == 0);
    CHECK(reader.validated->detail == detail);
    CHECK(reader.validated->visit.server == validating.origin.url());
    CHECK(reader.validated->object.payload() == validating.old.payload());
  } else {
    REQUIRE(reader.failure);
    CHECK(reader.failure->detail == detail);
    CHECK(reader.failure->visit.server == validating.origin.url());
  }
  CHECK(world.stored(*validating.request).payload() == validating.old.payload());
  CHECK(validating.may_refresh() == !background);
  CHECK(world.failures(away == Away::kRefuses ? ServerFailure::kConnect : ServerFailure::kClosed) ==
        1);
  CHECK(world.failures() == 1);
}

TEST_CASE("a confirmed response may be refreshed again, and says if others may have it",
          "[origin][fetch]") {
  const bool background = GENERATE(true, false);
  const bool in_table = GENERATE(true, false);
  const std::string control = GENERATE(as<std::string>(), "max-age=60", "no-cache");
  const std::string connection = GENERATE(as<std::string>(), "", "Connection: close\r\n");
  CAPTURE(background, in_table, control, connection);
  Validating validating("max-age=60");
  World& world = validating.world;
  const auto& hash = validating.request->hash;
  world.inflight.refresh_backoff().note_failure(hash, world.loop->now());
  world.inflight.remember_unshared(hash, 0, Unshared::kAnswer,
                                   world.loop->now() + std::chrono::hours(1));
  REQUIRE_FALSE(validating.may_refresh());
  FetchReader reader(world, validating.request, validating.plan(background, in_table));
  world.run_until_asked(validating.origin);
  validating.origin.say("HTTP/1.1 304 Same\r\nETag: \"v\"\r\nSet-Cookie: a=1\r\nCache-Control: " +
                        control + "\r\n" + connection + "\r\n");
  world.run_until(validating.origin, [&] { return reader.is_done() && world.fetches.empty(); });
  REQUIRE(reader.validated);
  const bool shareable = control == "max-age=60";
  CHECK_FALSE(reader.validated->stale);
  CHECK(reader.validated->status == 304);
  CHECK(reader.validated->shareable == shareable);
  CHECK(reader.validated->private_lines == "Set-Cookie: a=1\r\n");
  CHECK(reader.validated->unstored == nullptr);
  CHECK(reader.validated->object.payload() == world.stored(*validating.request).payload());
  CHECK(validating.may_refresh() == background);
  CHECK(world.pool.size() == (connection.empty() ? 1 : 0));
  const Unshared known = world.inflight.unshared(hash, 0, world.loop->now());
  CHECK(known == (shareable ? Unshared::kNo : in_table ? Unshared::kValidated : Unshared::kAnswer));
}

TEST_CASE("a new response in place of a validated one replaces it, or ends it", "[origin][fetch]") {
  struct Row {
    const char* head;
    bool is_stored;
    bool old_goes;
  };
  const Row row = GENERATE(values<Row>({
      {"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n", true, true},
      {"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n", false, true},
      {"HTTP/1.1 404 No\r\nCache-Control: max-age=60\r\n", true, true},
      {"HTTP/1.1 500 No\r\nCache-Control: no-store\r\n", false, false},
      {"HTTP/1.1 429 No\r\nCache-Control: no-store\r\n", false, false},
  }));
  CAPTURE(row.head);
  Validating validating("max-age=60, must-revalidate");
  World& world = validating.world;
  FetchReader reader(world, validating.request, validating.plan(false));
  world.run_until_asked(validating.origin);
  validating.origin.say(std::string(row.head) + "ETag: \"w\"\r\nContent-Length: 3\r\n\r\nnew");
  world.run_until(validating.origin, [&] { return reader.is_done() && world.fetches.empty(); });
  CHECK(reader.body == "new");
  const store::ObjectRef now = world.stored(*validating.request);
  CHECK(static_cast<bool>(now) == (row.is_stored || !row.old_goes));
  if (now) CHECK((now.payload() == validating.old.payload()) == !row.old_goes);
}

TEST_CASE("a new response that is too large to be stored ends what it was to replace",
          "[origin][fetch]") {
  Validating validating("max-age=60",
                        [](config::Config& config) { config.cache.max_object_bytes = 100; });
  World& world = validating.world;
  FetchReader reader(world, validating.request, validating.plan(false));
  world.run_until_asked(validating.origin);
  validating.origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 200\r\n\r\n" +
      std::string(200, 'n'));
  world.run_until(validating.origin, [&] { return reader.is_done() && world.fetches.empty(); });
  CHECK(reader.body == std::string(200, 'n'));
  CHECK_FALSE(world.stored(*validating.request));
}

}  // namespace
}  // namespace encore::server
