// Fetches that several requests share, and those that lead elsewhere: forward requests and
// redirections.
#include <string>
#include <utility>
#include <vector>

#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using std::chrono::seconds;
using Unshared = Inflight::Unshared;

const std::string kGetShared = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

FetchPlan table_plan() {
  FetchPlan plan;
  plan.whole = plan.in_table = true;
  return plan;
}
std::string shared_response(std::string_view control, std::size_t bytes) {
  return "HTTP/1.1 200 OK\r\nCache-Control: " + std::string(control) +
         "\r\nETag: \"v\"\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

TEST_CASE(
    "who joins before the head is counted, and reads the same; nobody joins what is not shared",
    "[origin][fetch]") {
  struct Row {
    const char* control;
    bool joins_behind;
    JoinOutcome behind;
  };
  const Row row = GENERATE(values<Row>({{"max-age=60", true, JoinOutcome::kBehindHead},
                                        {"no-cache", true, JoinOutcome::kUntilStored},
                                        {"no-store", false, JoinOutcome::kNo}}));
  CAPTURE(row.control);
  Origin origin;
  World world({origin.url()}, {}, [](cache::KernelOptions& options) {
    options.admission.policy = cache::AdmissionPolicy::kExactSecondHit;
    options.admission.filter.capacity = 1000;
  });
  const auto request = world.request(kGetShared);
  FetchReader first(world, request, table_plan());
  world.run_until_asked(origin);
  FetchReader second(FetchReader::Join{}, world, request);
  REQUIRE(second.joined == JoinOutcome::kBeforeHead);
  origin.say(shared_response(row.control, 10) + "01234");
  world.run_until(origin, [&] { return first.body == "01234"; });
  CHECK((second.body == "01234"));
  FetchReader third(FetchReader::Join{}, world, request);
  CHECK(third.joined == row.behind);
  CHECK(third.is_done() == !row.joins_behind);
  FetchReader awaits(FetchReader::Join{}, world, request, JoinScope::kBeingStored);
  CHECK((awaits.joined == JoinOutcome::kUntilStored) == (row.behind == JoinOutcome::kUntilStored));
  awaits.leave();
  CHECK(world.fetches.size() == 1);
  origin.say("56789");
  world.run_until(origin, [&] { return first.is_done() && second.is_done(); });
  CHECK(first.body == "0123456789");
  CHECK(second.body == "0123456789");
  CHECK(first.whole);
  CHECK(second.whole);
  if (row.behind == JoinOutcome::kBehindHead) CHECK(third.body == "0123456789");
  const bool is_stored = row.control != std::string("no-store");
  // Two requests at the same time already store.
  CHECK(static_cast<bool>(world.stored(*request)) == is_stored);
  if (is_stored) CHECK(first.outcome == Outcome::kSecondRequest);
  CHECK(world.stats.origin_requests.get() == 1);
  FetchReader late(FetchReader::Join{}, world, request);
  CHECK(late.joined == JoinOutcome::kNo);
}

TEST_CASE("a response is stored for who comes behind its head, as long as all of it is there",
          "[origin][fetch]") {
  const bool wants = GENERATE(true, false);
  const std::size_t kept = GENERATE(as<std::size_t>(), 4, 5);
  CAPTURE(wants, kept);
  Origin origin;
  World world(
      {origin.url()}, [&](config::Config& config) { config.cache.collapse_buffer_bytes = kept; },
      [](cache::KernelOptions& options) {
        options.admission.policy = cache::AdmissionPolicy::kExactSecondHit;
        options.admission.filter.capacity = 1000;
      });
  const auto request = world.request(kGetShared);
  FetchReader first(world, request, table_plan());
  world.run_until_asked(origin);
  origin.say(shared_response("max-age=60", 10) + "01234");
  world.run_until(origin, [&] { return first.body == "01234"; });
  CHECK(first.outcome == Outcome::kFirstRequest);
  CHECK(world.stats.stored.get() == 0);
  FetchReader second(FetchReader::Join{}, world, request);
  const bool is_kept = kept == 5;
  CHECK((second.joined == JoinOutcome::kBehindHead) == is_kept);
  const auto transfer = world.told.transfers.back().lock();
  REQUIRE(transfer != nullptr);
  if (wants) transfer->want_store();
  world.run_turn();
  CHECK((world.kernel->statistics().reserved_bytes != 0) == (wants && is_kept));
  origin.say("56789");
  world.run_until(origin, [&] { return first.is_done() && second.is_done(); });
  CHECK(first.body == "0123456789");
  if (is_kept) CHECK(second.body == "0123456789");
  CHECK(static_cast<bool>(world.stored(*request)) == (wants && is_kept));
  // The first response said that it is not stored.
  ++world.told.left;
}

TEST_CASE("what was invalidated since it was requested is neither stored nor joined",
          "[origin][fetch]") {
  enum class When : std::uint8_t { kBefore, kBeforeHead, kInBody };
  const When when = GENERATE(When::kBefore, When::kBeforeHead, When::kInBody);
  const std::string control = GENERATE(as<std::string>(), "max-age=60", "no-cache");
  CAPTURE(static_cast<int>(when), control);
  Origin origin;
  World world({origin.url()});
  const auto request = world.request(kGetShared);
  const auto invalidate = [&] { world.inflight.invalidate(request->hash, request->key); };
  if (when == When::kBefore) invalidate();
  FetchReader first(world, request, table_plan());
  world.run_until_asked(origin);
  if (when == When::kBeforeHead) invalidate();
  origin.say(shared_response(control, 10) + "01234");
  world.run_until(origin, [&] { return first.body == "01234"; });
  if (when == When::kInBody) invalidate();
  FetchReader second(FetchReader::Join{}, world, request);
  CHECK((second.joined == JoinOutcome::kNo) == (when != When::kBefore));
  origin.say("56789");
  world.run_until(origin, [&] { return first.is_done() && world.fetches.empty(); });
  CHECK(first.body == "0123456789");
  const bool is_stored = when == When::kBefore;
  CHECK(static_cast<bool>(world.stored(*request)) == is_stored);
  CHECK(world.stats.overtaken.get() == (is_stored ? 0 : 1));
  CHECK(first.response->overtaken == !is_stored);
  CHECK((first.response->stored != false) == is_stored);
}

TEST_CASE("a range whose whole is too large goes as it is, unless others wait for the whole",
          "[origin][fetch]") {
  enum class Why : std::uint8_t { kSmall, kTooLarge, kAwaited };
  const Why why = GENERATE(Why::kSmall, Why::kTooLarge, Why::kAwaited);
  CAPTURE(static_cast<int>(why));
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.cache.range_fetch_max_bytes = 1000; });
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n");
  const auto other = world.request(kGetShared);
  FetchReader first(world, request, table_plan());
  world.run_until_asked(origin);
  CHECK(origin.asked.find("Range: ") == std::string::npos);
  std::optional<FetchReader> second;
  if (why == Why::kAwaited) second.emplace(FetchReader::Join{}, world, other);
  const std::size_t size = why == Why::kSmall ? 1000 : 1001;
  world.wastes_bytes = true;
  origin.say(shared_response("max-age=60", size));
  if (why != Why::kTooLarge) {
    origin.say(std::string(size, 'x'));
    world.run_until(origin, [&] { return first.is_done(); });
    CHECK(first.body.size() == size);
    CHECK(origin.accepted == 1);
    CHECK(world.stored(*other));
    return;
  }
  world.run_until(origin, [&] {
    return origin.accepted == 2 && origin.asked.find("\r\n\r\n") != std::string::npos;
  });
  CHECK(origin.asked.find("Range: bytes=0-1\r\n") != std::string::npos);
  CHECK(world.inflight.are_ranges_alone(request->hash, world.loop->now()));
  FetchReader late(FetchReader::Join{}, world, other);
  CHECK(late.is_done());
  origin.say("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/1001\r\nContent-Length: 2\r\n\r\nxy");
  world.run_until(origin, [&] { return first.is_done(); });
  CHECK(first.body == "xy");
  CHECK(first.head.starts_with("HTTP/1.1 206"));
}

TEST_CASE("later ranges go as they are where a whole of unknown length was fetched for one in vain",
          "[origin][fetch]") {
  const bool whole = GENERATE(true, false);
  const bool asks_range = GENERATE(true, false);
  const bool has_length = GENERATE(true, false);
  CAPTURE(whole, asks_range, has_length);
  Origin origin;
  World world({origin.url()}, {}, [](cache::KernelOptions& options) {
    options.admission.policy = cache::AdmissionPolicy::kNever;
  });
  world.wastes_bytes = true;
  const auto request =
      world.request("GET /a HTTP/1.1\r\nHost: h\r\n" +
                    std::string(asks_range ? "Range: bytes=0-1\r\n" : "") + "\r\n");
  FetchPlan plan = table_plan();
  plan.whole = whole;
  std::optional<FetchReader> reader(std::in_place, world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\n" + std::string(has_length ? "Content-Length: 10000\r\n\r\n01234"
                                                            : "Transfer-Encoding: chunked\r\n"
                                                              "\r\n5\r\n01234\r\n"));
  world.run_until(origin, [&] { return reader->body == "01234"; });
  reader.reset();
  world.run_until(origin, [&] { return world.fetches.empty(); });
  CHECK(world.inflight.are_ranges_alone(request->hash, world.loop->now()) ==
        (whole && asks_range && !has_length));
}

TEST_CASE("a whole that the cache refuses for its size is not fetched for a range",
          "[origin][fetch]") {
  constexpr std::size_t kLargest = 1000;
  const std::size_t size = GENERATE_COPY(as<std::size_t>(), kLargest, kLargest + 1);
  const std::string range = GENERATE(as<std::string>(), "", "Range: bytes=0-1\r\n");
  CAPTURE(size, range);
  Origin origin;
  World world({origin.url()}, {}, [](cache::KernelOptions& options) {
    options.admission.policy = cache::AdmissionPolicy::kSizeThreshold;
    options.admission.size_threshold_bytes = kLargest;
  });
  world.wastes_bytes = true;
  FetchReader reader(world, world.request("GET /a HTTP/1.1\r\nHost: h\r\n" + range + "\r\n"),
                     table_plan());
  world.run_until_asked(origin);
  const bool asks_as_told = size > kLargest && !range.empty();
  origin.say(shared_response("max-age=60", size) + std::string(size, 'x'));
  world.run_until(origin, [&] {
    return reader.is_done() || origin.asked.find("\r\n\r\n") != std::string::npos;
  });
  CHECK(reader.is_done() == !asks_as_told);
  if (asks_as_told) {
    CHECK(origin.asked.find(range) != std::string::npos);
  } else {
    CHECK(reader.body.size() == size);
  }
}

TEST_CASE("what later requests may wait for follows from what became of those that did",
          "[origin][fetch]") {
  const std::string control = GENERATE(as<std::string>(), "max-age=60", "no-cache", "no-store");
  const bool is_admitted = GENERATE(true, false);
  const bool joins = GENERATE(true, false);
  CAPTURE(control, is_admitted, joins);
  Origin origin;
  World world({origin.url()}, {}, [&](cache::KernelOptions& options) {
    options.admission.policy =
        is_admitted ? cache::AdmissionPolicy::kAlways : cache::AdmissionPolicy::kNever;
  });
  const auto request = world.request(kGetShared);
  FetchReader first(world, request, table_plan());
  world.run_until_asked(origin);
  std::optional<FetchReader> second;
  if (joins) second.emplace(FetchReader::Join{}, world, request);
  origin.say(shared_response(control, 4) + "0123");
  world.run_until(origin, [&] { return first.is_done() && world.fetches.empty(); });
  CHECK(static_cast<bool>(world.stored(*request)) == (is_admitted && control != "no-store"));
  Unshared expected = Unshared::kNo;
  if (control == "no-store") expected = Unshared::kUncacheable;
  if (control == "no-cache") {
    expected = joins && !is_admitted ? Unshared::kAnswer : Unshared::kValidated;
  }
  CHECK(world.inflight.unshared(request->hash, 0, world.loop->now()) == expected);
}

TEST_CASE("a HEAD's response is compared with what is stored, and a POST's ends it",
          "[origin][fetch]") {
  struct Row {
    const char* method;
    const char* response;
    bool stays_fresh;
  };
  const Row row = GENERATE(values<Row>({
      {"HEAD", "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 1\r\n\r\n", true},
      {"HEAD", "HTTP/1.1 200 OK\r\nETag: \"w\"\r\nContent-Length: 1\r\n\r\n", false},
      {"POST", "HTTP/1.1 204 Done\r\n\r\n", false},
      {"POST", "HTTP/1.1 409 No\r\nContent-Length: 0\r\n\r\n", true},
      {"OPTIONS", "HTTP/1.1 204 Done\r\n\r\n", true},
  }));
  CAPTURE(row.method, row.response);
  Origin origin;
  World world({origin.url()});
  const auto get = world.request(kGetShared);
  {
    FetchReader reader(world, get, table_plan());
    world.run_until_asked(origin);
    origin.say(shared_response("max-age=60", 1) + "x");
    world.run_until(origin, [&] { return reader.is_done(); });
  }
  FetchPlan plan;
  if (std::string(row.method) == "HEAD") {
    plan.stored = world.stored(*get);
    plan.stored_fresh_until = world.loop->now();
  }
  FetchReader reader(world, world.request(row.method + kGetShared.substr(3)), std::move(plan));
  world.run_until_asked(origin);
  origin.say(row.response);
  world.run_until(origin, [&] { return reader.is_done(); });
  const CacheView now = world.lookup(*get);
  CHECK((now.object && now.fresh_until > world.loop->now()) == row.stays_fresh);
}

TEST_CASE("a POST's own response is newer than what it ends", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request("POST /a HTTP/1.1\r\nHost: h\r\n\r\n");
  FetchReader reader(world, request, {});
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Location: /a\r\n"
      "Content-Length: 1\r\n\r\nx");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(static_cast<bool>(world.stored(*request)) == (world.stats.stored.get() == 1));
  CHECK(world.stats.overtaken.get() == 0);
}

// --- requests that name their origin
// --------------------------------------------------------------

std::string get_from(const std::string& url, const std::string& fields = {}) {
  return "GET " + url + " HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

TEST_CASE("what a forward request brings from this machine is not for every client",
          "[origin][fetch]") {
  Origin origin;
  World world({"http://127.0.0.1:1"});
  const auto request = world.forward_request(get_from(origin.url() + "/a"));
  FetchReader reader(world, request, table_plan());
  world.run_until_asked(origin);
  CHECK(origin.asked.starts_with("GET /a HTTP/1.1\r\n"));
  origin.say(shared_response("max-age=60", 1) + "x");
  world.run_until(origin, [&] { return reader.is_done(); });
  const store::ObjectRef stored = world.stored(*request);
  REQUIRE(stored);
  CHECK(meta_of(*stored).http.is(http::StoredMeta::kPrivateOrigin));
  CHECK(world.pool.size() == 1);
  // The next one takes the same connection, whatever the case of its host.
  FetchReader next(world, world.forward_request(get_from(origin.url() + "/b")), {});
  world.run_until_asked(origin);
  CHECK(origin.accepted == 1);
}

TEST_CASE("a client that may not go there is refused, also on a kept connection",
          "[origin][fetch]") {
  const auto allowed =
      GENERATE(config::PrivateDestinations::kNever, config::PrivateDestinations::kLoopbackClients);
  Origin origin;
  World world({"http://127.0.0.1:1"},
              [&](config::Config& config) { config.forward.private_destinations = allowed; });
  const auto request = world.forward_request(get_from(origin.url() + "/a"));
  FetchReader reader(world, request, {});
  world.run_until(origin, [&] {
    return reader.is_done() || origin.asked.find("\r\n\r\n") != std::string::npos;
  });
  CHECK(reader.is_done() == (allowed == config::PrivateDestinations::kNever));
  if (!reader.is_done()) return;
  REQUIRE(reader.failure);
  CHECK(reader.failure->status == 403);
  CHECK(reader.failure->outcome == Outcome::kDenied);
  CHECK(reader.failure->of_the_client);
  CHECK(origin.accepted == 0);
}

struct Redirecting {
  explicit Redirecting(std::vector<std::string> hosts = {})
      : world({"http://127.0.0.1:1"}, [&](config::Config& config) {
          config::Rule& rule = config.rule.emplace_back();
          rule.path = {"/*"};
          rule.follow_redirects = true;
          rule.follow_hosts = std::move(hosts);
        }) {}
  // Its first request is answered so.
  void redirect(FetchReader& reader, const std::string& location, int status = 302) {
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 " + std::to_string(status) +
               " Away\r\nCache-Control: max-age=60\r\nLocation: " + location +
               "\r\nContent-Length: 0\r\n\r\n");
    world.run_until(other, [&] {
      origin.look();
      return reader.is_done() || origin.asked.find("\r\n\r\n") != std::string::npos ||
             other.asked.find("\r\n\r\n") != std::string::npos;
    });
  }

  Origin origin;
  Origin other;
  World world;
};

TEST_CASE("a redirection is followed, and its end stored as what was asked for",
          "[origin][fetch]") {
  Redirecting redirecting;
  World& world = redirecting.world;
  const auto request = world.forward_request(get_from(redirecting.origin.url() + "/a"));
  REQUIRE(request->rule != nullptr);
  FetchReader reader(world, request, table_plan());
  redirecting.redirect(reader, "/b");
  REQUIRE_FALSE(reader.is_done());
  CHECK(redirecting.origin.asked.starts_with("GET /b HTTP/1.1\r\n"));
  CHECK(world.stats.redirects_followed.get() == 1);
  redirecting.origin.say(shared_response("max-age=60", 3) + "end");
  world.run_until(redirecting.origin, [&] { return reader.is_done(); });
  CHECK(reader.body == "end");
  CHECK(world.stored(*request));
  FetchReader late(FetchReader::Join{}, world, request);
  CHECK(late.is_done());
}

TEST_CASE("what was invalidated before a redirection's end is not stored", "[origin][fetch]") {
  Redirecting redirecting;
  World& world = redirecting.world;
  const auto request = world.forward_request(get_from(redirecting.origin.url() + "/a"));
  FetchReader reader(world, request, table_plan());
  world.run_until_asked(redirecting.origin);
  world.inflight.invalidate(request->hash, request->key);
  redirecting.redirect(reader, "/b");
  REQUIRE_FALSE(reader.is_done());
  redirecting.origin.say(shared_response("max-age=60", 3) + "end");
  world.run_until(redirecting.origin, [&] { return reader.is_done(); });
  CHECK(reader.body == "end");
  CHECK_FALSE(world.stored(*request));
  CHECK(world.stats.overtaken.get() == 1);
}

TEST_CASE("behind a redirection no validator of the first place is sent", "[origin][fetch]") {
  Redirecting redirecting;
  World& world = redirecting.world;
  const auto request = world.forward_request(get_from(redirecting.origin.url() + "/a"));
  {
    FetchReader reader(world, request, table_plan());
    world.run_until_asked(redirecting.origin);
    redirecting.origin.say(shared_response("max-age=60", 1) + "x");
    world.run_until(redirecting.origin, [&] { return reader.is_done(); });
  }
  FetchPlan plan = table_plan();
  plan.stored = world.stored(*request);
  REQUIRE(plan.stored);
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(redirecting.origin);
  CHECK(redirecting.origin.asked.find("If-None-Match: \"v\"") != std::string::npos);
  redirecting.redirect(reader, "/b");
  REQUIRE_FALSE(reader.is_done());
  CHECK(redirecting.origin.asked.find("If-None-Match") == std::string::npos);
  CHECK(world.stats.revalidations.get() == 1);
}

TEST_CASE("another host's response brings nothing that is for its host", "[origin][fetch]") {
  const std::string connection = GENERATE(as<std::string>(), "", "Connection: close\r\n");
  const std::string version = GENERATE(as<std::string>(), "1.1", "1.0");
  Redirecting redirecting({"127.0.0.1"});
  World& world = redirecting.world;
  Origin& other = redirecting.other;
  const auto request =
      world.forward_request(get_from(redirecting.origin.url() + "/a", "Cookie: a=1\r\n"));
  FetchReader reader(world, request, table_plan());
  redirecting.redirect(reader, other.url() + "/b");
  REQUIRE_FALSE(reader.is_done());
  REQUIRE(other.asked.starts_with("GET /b HTTP/1.1\r\n"));
  CHECK(other.asked.find("Cookie") == std::string::npos);
  if (version == "1.1") other.say("HTTP/1.1 103 Hint\r\nLink: </x>\r\n\r\n");
  other.say("HTTP/" + version + " 200 OK\r\nCache-Control: max-age=60\r\nSet-Cookie: b=2\r\n" +
            "Alt-Svc: h3\r\nLocation: /c#d\r\nX-A: 1\r\n" + connection +
            "Transfer-Encoding: chunked\r\n\r\n3\r\nend\r\n0\r\nX-T: 1\r\nSet-Cookie: c=3\r\n\r\n");
  if (version == "1.0") world.wastes_bytes = true;
  world.run_until(other, [&] { return reader.is_done(); });
  if (version == "1.0") return;  // which knows no chunks
  CHECK(reader.interim.empty());
  CHECK(reader.body == "end");
  CHECK(reader.head.find("Set-Cookie") == std::string::npos);
  CHECK(reader.head.find("Alt-Svc") == std::string::npos);
  CHECK(reader.head.find("X-A: 1\r\n") != std::string::npos);
  CHECK(reader.head.find("Location: " + other.url() + "/c#d\r\n") != std::string::npos);
  CHECK(reader.response->trailers == "X-T: 1\r\n");
  CHECK(world.pool.size() == (connection.empty() ? 1 : 0));
}

TEST_CASE("a redirection that is not followed is passed on, and says why", "[origin][fetch]") {
  Redirecting redirecting;
  World& world = redirecting.world;
  FetchReader reader(world, world.forward_request(get_from(redirecting.origin.url() + "/a")),
                     table_plan());
  redirecting.redirect(reader, "http://elsewhere.invalid/b");
  REQUIRE(reader.is_done());
  CHECK(reader.head.starts_with("HTTP/1.1 302"));
  CHECK(reader.response->unfollowed == RedirectRefusal::kHost);
  CHECK(world.stats.redirects_followed.get() == 0);
  CHECK(redirecting.other.accepted == 0);
}

}  // namespace
}  // namespace encore::server
