// Responses under rules of an operator: what is verified, rechecked, or treated by its type.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/net/dns_server.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

// The digest of "hello".
const std::string kHelloDigest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const std::string kHelloPath = "/sha256:" + kHelloDigest;

struct Ruled {
  explicit Ruled(const std::function<void(config::Rule&)>& change)
      : world({origin.url()}, [&](config::Config& config) {
          config::Rule& rule = config.rule.emplace_back();
          rule.path = {"/*"};
          change(rule);
        }) {}
  // Has it asked for, whole, and answered so.
  void fetch(const std::string& path, const std::string& response, bool in_table = false) {
    request = world.request("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
    FetchPlan plan;
    plan.whole = true;
    plan.in_table = in_table;
    reader.emplace(world, request, std::move(plan));
    world.run_until_asked(origin);
    origin.say(response);
    world.run_until(origin, [&] { return reader->is_done() && world.fetches.empty(); });
  }

  Origin origin;
  World world;
  std::shared_ptr<const RequestContext> request;
  std::optional<FetchReader> reader;
};

TEST_CASE("a body that is not what its path says breaks off, and is stored for nobody",
          "[origin][fetch]") {
  const bool is_right = GENERATE(true, false);
  const bool chunked = GENERATE(true, false);
  const bool in_table = GENERATE(true, false);
  CAPTURE(is_right, chunked, in_table);
  Ruled ruled([](config::Rule& rule) { rule.verify = config::Verify::kSha256; });
  World& world = ruled.world;
  const std::string body = is_right ? "hello" : "hullo";
  ruled.fetch(kHelloPath,
              std::string("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n") +
                  (chunked ? "Transfer-Encoding: chunked\r\n\r\n5\r\n" + body + "\r\n0\r\n\r\n"
                           : "Content-Length: 5\r\n\r\n" + body),
              in_table);
  FetchReader& reader = *ruled.reader;
  CHECK(world.stats.digest_mismatches.get() == (is_right ? 0 : 1));
  CHECK(static_cast<bool>(world.stored(*ruled.request)) == is_right);
  CHECK(reader.whole == is_right);
  CHECK(world.pool.size() == (is_right ? 1 : 0));
  CHECK(world.failures(ServerFailure::kInvalid) == (is_right ? 0 : 1));
  if (is_right) {
    CHECK(reader.body == body);
    // Nothing is cut of what is not known to be right.
    CHECK_FALSE(reader.response->whole);
  } else {
    REQUIRE(reader.failure);
    CHECK(reader.failure->status == 502);
    CHECK(reader.failure->detail == "wrong-digest");
  }
}

TEST_CASE("what cannot be verified is passed on, and stored unless it is content",
          "[origin][fetch]") {
  struct Row {
    std::string path;
    const char* head;
    bool is_stored;
  };
  const Row row = GENERATE(values<Row>({
      {"/a", "200 OK\r\n", false},
      {kHelloPath, "200 OK\r\nContent-Encoding: gzip\r\n", false},
      {kHelloPath, "203 Told\r\n", true},
      {kHelloPath, "404 No\r\n", true},
      {kHelloPath, "301 Moved\r\nLocation: /b\r\n", true},
  }));
  CAPTURE(row.path, row.head);
  Ruled ruled([](config::Rule& rule) { rule.verify = config::Verify::kSha256; });
  ruled.fetch(row.path, "HTTP/1.1 " + std::string(row.head) +
                            "Cache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhullo");
  FetchReader& reader = *ruled.reader;
  CHECK(reader.body == "hullo");
  CHECK(reader.whole);
  CHECK(static_cast<bool>(ruled.world.stored(*ruled.request)) == row.is_stored);
  CHECK((reader.response->reason == http::StoreReason::kOk) == row.is_stored);
  if (!row.is_stored) CHECK(reader.response->reason == http::StoreReason::kRule);
  CHECK(ruled.world.stats.digest_mismatches.get() == 0);
}

TEST_CASE("of what is rechecked successes alone are stored, and no redirection's end",
          "[origin][fetch]") {
  const bool rechecks = GENERATE(true, false);
  const int status = GENERATE(200, 203, 404);
  CAPTURE(rechecks, status);
  Ruled ruled([&](config::Rule& rule) {
    if (rechecks) rule.authorization = config::AuthorizationUse::kRecheck;
  });
  ruled.fetch("/a", "HTTP/1.1 " + std::to_string(status) +
                        " Status\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx");
  const store::ObjectRef stored = ruled.world.stored(*ruled.request);
  CHECK(static_cast<bool>(stored) == (!rechecks || status < 300));
  if (stored) {
    CHECK(meta_of(*stored).http.is(http::StoredMeta::kWantsPermission) == rechecks);
  }
}

TEST_CASE("a redirection to a name waits for its addresses, and its response for the decision",
          "[origin][fetch]") {
  enum class How : std::uint8_t { kFollowed, kRefused, kTimeout };
  const How how = GENERATE(How::kFollowed, How::kRefused, How::kTimeout);
  // One that comes with its head, and one that comes behind the decision.
  const std::size_t size = GENERATE(as<std::size_t>(), 5, 300'000);
  const bool closes = GENERATE(true, false);
  CAPTURE(static_cast<int>(how), size, closes);
  auto names = net::Loop::create();
  REQUIRE(names.has_value());
  net::DnsServer dns(**names);
  dns.names["name.test"] = {"127.0.0.1"};
  if (how == How::kTimeout) dns.silent = {"name.test"};
  const auto answer = [&] {
    (*names)->stop();
    (*names)->run();
  };
  Origin origin;
  Origin other;
  World world({origin.url()}, [&](config::Config& config) {
    config.upstream.nameservers = {dns.address.to_string()};
    config.timeouts.dns = std::chrono::seconds(20);
    if (how == How::kRefused) {
      config.forward.private_destinations = config::PrivateDestinations::kNever;
    }
    config::Rule& rule = config.rule.emplace_back();
    rule.path = {"/*"};
    rule.follow_redirects = true;
    rule.follow_hosts = {"name.test"};
  });
  world.wastes_bytes = how != How::kRefused;  // the body of what is not passed on
  // The server of an origin may be private, what it leads to may not.
  const auto request =
      how == How::kRefused
          ? world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
          : world.forward_request("GET " + origin.url() + "/a HTTP/1.1\r\nHost: h\r\n\r\n");
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  const std::string body(size, 'm');
  origin.say("HTTP/1.1 302 Away\r\nCache-Control: max-age=60\r\nLocation: http://name.test:" +
             std::to_string(other.port()) + "/b\r\n" + (closes ? "Connection: close\r\n" : "") +
             "Content-Length: " + std::to_string(size) + "\r\n\r\n");
  std::size_t said = size == 5 ? origin.offer(body) : 0;
  if (closes && said == size) origin.end();
  for (int turn = 0; turn < 10; ++turn) world.run_turn();
  REQUIRE(world.fetches.size() == 1);
  CHECK(reader.head.empty());
  // No more is read than came with the head.
  const std::uint64_t read = world.stats.bytes_from_origins.get();
  CHECK(read < 300);
  // Other connections read to there as well.
  std::ranges::fill(world.loop->scratch(), std::byte{'?'});
  if (how == How::kTimeout) {
    const MonotonicTime now = world.loop->now();
    world.fetches.front()->check_timeouts(now + std::chrono::seconds(18));
    world.run_turn();
    CHECK(world.stats.redirects_followed.get() == 0);
    CHECK(reader.head.empty());
    // The attempt to connect tells what is wrong with the name.
    world.fetches.front()->check_timeouts(now + std::chrono::seconds(20));
    world.run_turn();
    CHECK(world.stats.redirects_followed.get() == 1);
    CHECK_FALSE(reader.is_done());
    return;
  }
  world.run_until(other, [&] {
    answer();
    origin.look();
    if (!reader.head.empty()) said += origin.offer(std::string_view(body).substr(said));
    return reader.is_done() || other.asked.ends_with("\r\n\r\n");
  });
  CHECK(world.stats.redirects_followed.get() == (how == How::kFollowed ? 1 : 0));
  if (how == How::kFollowed) {
    CHECK(other.asked.starts_with("GET /b HTTP/1.1\r\n"));
    CHECK(dns.asked["name.test"] > 0);
    other.say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend");
    world.run_until(other, [&] { return reader.is_done(); });
    CHECK(reader.body == "end");
    return;
  }
  CHECK(other.accepted == 0);
  CHECK(reader.head.starts_with("HTTP/1.1 302 Away\r\n"));
  CHECK(reader.response->unfollowed == RedirectRefusal::kPrivate);
  CHECK((reader.body == body));
  CHECK(reader.whole);
  CHECK(world.pool.size() == (closes ? 0 : 1));
  CHECK(world.stored(*request));
}

TEST_CASE("what a redirection led to is not stored where each client is rechecked",
          "[origin][fetch]") {
  const bool rechecks = GENERATE(true, false);
  Origin origin;
  World world({"http://127.0.0.1:1"}, [&](config::Config& config) {
    config::Rule& rule = config.rule.emplace_back();
    rule.path = {"/*"};
    rule.follow_redirects = true;
    if (rechecks) rule.authorization = config::AuthorizationUse::kRecheck;
  });
  const auto request =
      world.forward_request("GET " + origin.url() + "/a HTTP/1.1\r\nHost: h\r\n\r\n");
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 302 Away\r\nCache-Control: max-age=60\r\nLocation: /b\r\nContent-Length: "
      "0\r\n\r\n");
  world.run_until(origin, [&] { return origin.asked.starts_with("GET /b "); });
  origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx");
  world.run_until(origin, [&] { return reader.is_done(); });
  CHECK(reader.body == "x");
  CHECK(static_cast<bool>(world.stored(*request)) == !rechecks);
}

TEST_CASE("a rule for a type of content holds for responses of it, which count for it",
          "[origin][fetch]") {
  const std::string type = GENERATE(as<std::string>(), "text/html; charset=utf-8", "text/css", "");
  CAPTURE(type);
  Ruled ruled([](config::Rule& rule) {
    rule.content_type = {"text/html"};
    rule.fresh = std::chrono::seconds(600);
  });
  World& world = ruled.world;
  const bool holds = type.starts_with("text/html");
  const std::string type_line = type.empty() ? "" : "Content-Type: " + type + "\r\n";
  ruled.fetch("/a",
              "HTTP/1.1 200 OK\r\nETag: \"v\"\r\n" + type_line + "Content-Length: 1\r\n\r\nx");
  const store::ObjectRef stored = world.stored(*ruled.request);
  REQUIRE(stored);
  const auto is_fresh = [&] {
    return world.lookup(*ruled.request).fresh_until > world.loop->now() + std::chrono::seconds(500);
  };
  CHECK(is_fresh() == holds);
  const Rule* const rule = ruled.request->rule_of("text/html");
  REQUIRE(rule != nullptr);
  CHECK(rule->counts(world.stats.number).responses.get() == (holds ? 1 : 0));
  CHECK(ruled.reader->response->content_type == type);
  // A 304 is of the type of the stored response.
  FetchPlan plan;
  plan.whole = true;
  plan.stored = stored;
  FetchReader reader(world, ruled.request, std::move(plan));
  world.run_until_asked(ruled.origin);
  ruled.origin.say("HTTP/1.1 304 Same\r\nETag: \"v\"\r\n\r\n");
  world.run_until(ruled.origin, [&] { return reader.is_done(); });
  REQUIRE(reader.validated);
  CHECK(rule->counts(world.stats.number).responses.get() == (holds ? 2 : 0));
  CHECK(is_fresh() == holds);
}

}  // namespace
}  // namespace encore::server
