// Connections of a link in all of its states: names that are asked for, pools with what will not
// do, and what each failure counts as.
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "proxy/origin/origin_link.h"
#include "tests/catch.h"
#include "tests/origin/mute_name_server.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Failure = OriginLink::AttemptFailure;
using Step = OriginLink::Progress;

constexpr Nanoseconds kInstant{1};

struct Heard final : public OriginLinkHandler {
  void on_link_open() override { ++opened; }
  void on_link_failed(const TransferFailure& why) override {
    ++failed;
    failure = why;
  }
  int opened = 0;
  int failed = 0;
  std::optional<TransferFailure> failure;
};

struct Linked {
  explicit Linked(World& world, const std::string& method = "GET")
      : request(world.request(method + " /a HTTP/1.1\r\nHost: h\r\n\r\n")),
        link(*world.services, *request, heard) {}
  Linked(World& world, std::shared_ptr<const RequestContext> of)
      : request(std::move(of)), link(*world.services, *request, heard) {}
  void open(World& world, Origin& origin) {
    const int before = heard.opened;
    if (link.acquire(OriginLink::Need::kAny) == Step::kOpen) return;
    world.run_until(origin, [&] { return heard.opened == before + 1; });
  }
  std::shared_ptr<const RequestContext> request;
  Heard heard;
  OriginLink link;
};

// Leaves an idle connection whose name was confirmed until `named_until`, made at `made`.
void pool_one(World& world, Origin& origin, MonotonicTime made, MonotonicTime named_until) {
  Linked link(world);
  link.open(world, origin);
  link.link.release(OriginLink::Fate::kKeep);
  PooledConnection connection =
      world.pool.take(link.link.pool_key(), [](const PooledConnection&) { return true; });
  REQUIRE(connection.stream != nullptr);
  connection.made = made;
  connection.named_until = named_until;
  world.pool.put(link.link.pool_key(), std::move(connection), {.per_server = 8, .in_all = 8});
  REQUIRE(world.pool.size() == 1);
}

TEST_CASE("the pool's key says what a connection is good for", "[origin][link]") {
  World world({"http://127.0.0.1:1"},
              [](config::Config& config) { config.forward.https = {"secure.example"}; });
  const auto key_of_target = [&](const std::string& target) {
    Linked link(world, world.forward_request("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK(link.link.server() == nullptr);
    CHECK_FALSE(link.link.asks_proxy());
    return link.link.pool_key();
  };
  CHECK(key_of_target("http://Host.Example/a") == "forward+http://host.example:80");
  CHECK(key_of_target("http://host.example:81/a") == "forward+http://host.example:81");
  CHECK(key_of_target("http://secure.example/a") == "forward+https://secure.example:443");
  CHECK(key_of_target("http://secure.example:81/a") == "forward+http://secure.example:81");
  World behind({"http://127.0.0.1:1"},
               [](config::Config& config) { config.forward.parent = {"http://parent:3128"}; });
  Linked link(behind, behind.forward_request("GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n"));
  CHECK(link.link.pool_key() == "parent+http://parent:3128");
  CHECK(link.link.asks_proxy());
}

TEST_CASE("a connection is kept unless a reload, its age or the pool's size forbid",
          "[origin][link]") {
  enum class Why : std::uint8_t { kNone, kDropped, kReload, kAge, kFull, kNoPool };
  const Why why =
      GENERATE(Why::kNone, Why::kDropped, Why::kReload, Why::kAge, Why::kFull, Why::kNoPool);
  CAPTURE(static_cast<int>(why));
  Origin origin;
  World world({origin.url()}, [&](config::Config& config) {
    if (why == Why::kAge) config.timeouts.pool_age = kInstant;
    config.upstream.pool_per_server = why == Why::kNoPool ? 0 : 1;
  });
  Linked link(world);
  CHECK(link.link.number() == 0);
  CHECK(link.link.moved_bytes() == 0);
  CHECK(link.link.connect_time().count() < 0);
  link.open(world, origin);
  CHECK(link.link.number() == 1);
  CHECK(link.link.connect_time().count() >= 0);
  CHECK(link.link.moved_bytes() == 0);
  Linked other(world);
  if (why == Why::kFull) {
    (void)other.link.acquire(OriginLink::Need::kNew);
    world.run_until(origin, [&] { return other.heard.opened == 1; });
  }
  if (why == Why::kReload) {
    auto run = Runtime::create(world.runtime->config, {}, "test");
    REQUIRE(run.has_value());
    world.runtime = *run;
  }
  world.run_turn();
  link.link.release(why == Why::kDropped ? OriginLink::Fate::kDrop : OriginLink::Fate::kKeep);
  CHECK_FALSE(link.link.is_open());
  other.link.release(OriginLink::Fate::kKeep);
  const bool is_kept = why == Why::kNone || why == Why::kFull;
  CHECK(world.pool.size() == (is_kept ? 1 : 0));
  world.run_turn();
  CHECK(world.stats.origin_connections.get() == (is_kept ? 1 : 0));
}

TEST_CASE("an idle connection is used if it is young, and made by the present settings",
          "[origin][link]") {
  enum class Why : std::uint8_t { kNone, kAge, kReload, kNeedsNew };
  const Why why = GENERATE(Why::kNone, Why::kAge, Why::kReload, Why::kNeedsNew);
  CAPTURE(static_cast<int>(why));
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.timeouts.pool_age = std::chrono::hours(1); });
  const MonotonicTime now = world.loop->now();
  pool_one(world, origin, now - (why == Why::kAge ? std::chrono::hours(1) : seconds(3590)),
           MonotonicTime::max());
  Linked link(world);
  if (why == Why::kReload) {
    auto run = Runtime::create(world.runtime->config, {}, "test");
    REQUIRE(run.has_value());
    world.runtime = *run;
  }
  const Step step =
      link.link.acquire(why == Why::kNeedsNew ? OriginLink::Need::kNew : OriginLink::Need::kAny);
  CHECK((step == Step::kOpen) == (why == Why::kNone));
  CHECK(world.stats.origin_reuses.get() == (why == Why::kNone ? 1 : 0));
  CHECK(world.pool.size() == (why == Why::kNone ? 0 : 1));
  if (step == Step::kOpen) {
    CHECK(link.link.number() == 1);
    CHECK(link.link.connect_time().count() < 0);
    CHECK(link.heard.opened == 0);
  }
}

TEST_CASE("a connection whose name is to be confirmed is used if the name has its address",
          "[origin][link]") {
  Origin origin;
  World world({"http://localhost:" + std::to_string(origin.port())});
  const MonotonicTime now = world.loop->now();
  pool_one(world, origin, now, now - seconds(1));
  Linked link(world);
  CHECK(link.link.acquire(OriginLink::Need::kAny) == Step::kPending);
  CHECK(world.pool.size() == 1);
  world.run_until(origin, [&] { return link.heard.opened == 1; });
  CHECK(origin.accepted == 1);
  CHECK(world.pool.size() == 0);
  CHECK(world.stats.origin_reuses.get() == 1);
  CHECK(world.stats.origin_connects.get() == 1);
  // For as long as the name server says.
  link.link.release(OriginLink::Fate::kKeep);
  const PooledConnection kept =
      world.pool.take(link.link.pool_key(), [](const PooledConnection&) { return true; });
  REQUIRE(kept.stream != nullptr);
  CHECK(kept.named_until > now);
}

TEST_CASE("while its name servers are silent an idle connection is used all the same, in time",
          "[origin][link]") {
  const MuteNameServer mute;
  Origin origin;
  World world({"http://name.test:" + std::to_string(origin.port())},
              [&](config::Config& config) { mute.use(config); });
  // As if its name had been known.
  World there({origin.url()});
  Linked made(there);
  made.open(there, origin);
  made.link.release(OriginLink::Fate::kKeep);
  Linked link(world);
  const MonotonicTime now = world.loop->now();
  {
    net::Socket near(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(origin.port());
    REQUIRE(::connect(near.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    world.pool.put(link.link.pool_key(),
                   {.stream = std::make_unique<net::Stream>(
                        *world.loop, std::move(near),
                        *net::Address::parse_ip("127.0.0.1", origin.port()), nullptr),
                    .slot = {},
                    .count = ConnectionCount(world.stats),
                    .made = now,
                    .named_until = now},
                   {.per_server = 8, .in_all = 8});
  }
  REQUIRE(world.pool.size() == 1);
  CHECK(link.link.acquire(OriginLink::Need::kAny) == Step::kPending);
  const MonotonicTime asked = world.loop->now();
  link.link.check_timeouts(asked + seconds(1) - milliseconds(1));
  CHECK(link.heard.opened == 0);
  link.link.check_timeouts(world.loop->now() + seconds(1));
  CHECK(link.heard.opened == 1);
  CHECK(link.link.is_open());
  link.link.release(OriginLink::Fate::kKeep);
  const PooledConnection kept =
      world.pool.take(link.link.pool_key(), [](const PooledConnection&) { return true; });
  REQUIRE(kept.stream != nullptr);
  // Half a minute, and it is asked again.
  CHECK(kept.named_until >= asked + seconds(30));
  CHECK(kept.named_until <= world.loop->now() + seconds(30));
}

TEST_CASE("a name for which nobody answers fails in time, or leads to the next server",
          "[origin][link]") {
  const bool has_other = GENERATE(true, false);
  const bool is_limited = GENERATE(true, false);
  const MuteNameServer mute;
  Origin origin;
  std::vector<std::string> servers = {"http://name.test:" + std::to_string(origin.port())};
  if (has_other) servers.push_back(origin.url());
  World world(servers, [&](config::Config& config) {
    mute.use(config);
    config.timeouts.dns = is_limited ? seconds(20) : seconds(0);
  });
  // In any order of turns one of two asks the one by name first.
  for (int round = 0; round < 2; ++round) {
    Linked link(world);
    if (link.link.server()->host != "name.test") continue;
    const MonotonicTime from = world.loop->now();
    CHECK(link.link.acquire(OriginLink::Need::kAny) == Step::kPending);
    link.link.check_timeouts(from + seconds(20) - kInstant);
    CHECK(link.heard.failed == 0);
    link.link.check_timeouts(world.loop->now() + seconds(20));
    if (!is_limited) {
      CHECK(link.heard.failed == 0);
      CHECK(link.heard.opened == 0);
      continue;
    }
    CHECK(world.failures(ServerFailure::kName) == 1);
    CHECK(world.failures() == 1);
    if (has_other) {
      world.run_until(origin, [&] { return link.heard.opened == 1; });
      CHECK(link.link.server()->url == origin.url());
      CHECK(world.stats.origin_failovers.get() == 1);
      break;
    }
    REQUIRE(link.heard.failure);
    CHECK(link.heard.failure->status == 504);
    CHECK(link.heard.failure->outcome == Outcome::kOriginTimeout);
    CHECK(link.heard.failure->detail == "dns-timeout");
    break;
  }
}

TEST_CASE("a server that takes no connection fails by the limit", "[origin][link]") {
  Origin silent;
  silent.fall_silent();
  World world({silent.url()},
              [](config::Config& config) { config.timeouts.origin_connect = milliseconds(20); });
  Linked link(world);
  CHECK(link.link.acquire(OriginLink::Need::kAny) == Step::kPending);
  for (int turn = 0; turn < 3000 && link.heard.failed == 0; ++turn) {
    world.run_turn();
    ::usleep(1000);
  }
  REQUIRE(link.heard.failure);
  CHECK(link.heard.failure->status == 504);
  CHECK(link.heard.failure->outcome == Outcome::kOriginTimeout);
  CHECK(link.heard.failure->detail == "connect-timeout");
  CHECK(world.failures(ServerFailure::kConnectTimeout) == world.failures());
  CHECK(world.failures() > 0);
}

TEST_CASE("each failure counts as what it is, and one of a kept connection not at all",
          "[origin][link]") {
  struct Row {
    Failure failure;
    bool is_kept;
    std::optional<ServerFailure> counts;
  };
  const Row row = GENERATE(values<Row>({
      {Failure::kClosed, false, ServerFailure::kClosed},
      {Failure::kClosed, true, {}},
      {Failure::kReset, false, ServerFailure::kClosed},
      {Failure::kReset, true, ServerFailure::kClosed},
      {Failure::kRefused, false, {}},
      {Failure::kRefused, true, {}},
      {Failure::kSilent, false, ServerFailure::kSilent},
      {Failure::kSilent, true, ServerFailure::kSilent},
      {Failure::kConnectTimeout, false, ServerFailure::kConnectTimeout},
      {Failure::kBusy, false, ServerFailure::kBusy},
      {Failure::kShare, false, ServerFailure::kBusy},
  }));
  const bool answered = GENERATE(true, false);
  CAPTURE(static_cast<int>(row.failure), row.is_kept, answered);
  Origin origin;
  World world({origin.url(), "http://127.0.0.1:1"},
              [](config::Config& config) { config.upstream.eject_after = 1; });
  const ServerGroup& group = world.runtime->router.match("", "/")->group();
  const OriginServer& server = group.servers()[0];
  // In turns: one of two begins with the living one.
  std::optional<Linked> link;
  for (int round = 0; round < 2; ++round) {
    link.emplace(world);
    if (link->link.server() == &server) break;
  }
  REQUIRE(link->link.server() == &server);
  link->open(world, origin);
  if (row.is_kept) {
    link->link.release(OriginLink::Fate::kKeep);
    link->open(world, origin);
  }
  (void)link->link.try_again(
      {.failure = row.failure, .why = "this is why", .answered = answered, .repeatable = false});
  CHECK(link->link.is_open());
  CHECK(world.failures() == (row.counts ? 1 : 0));
  if (row.counts) CHECK(world.failures(*row.counts) == 1);
  CHECK(group.counters(server)->last_failure().why == (row.counts ? "this is why" : ""));
  CHECK(world.stats.origins_set_aside.get() == (row.counts && !answered ? 1 : 0));
  CHECK(world.stats.origin_retries.get() == 0);
}

TEST_CASE("a server whose kept connection was closed was not tried, and may be asked again",
          "[origin][link]") {
  const bool is_kept = GENERATE(true, false);
  Origin first;
  Origin second;
  World world({first.url(), second.url()},
              [](config::Config& config) { config.upstream.retries = 3; });
  const ServerGroup& group = world.runtime->router.match("", "/")->group();
  std::optional<Linked> link;
  for (int round = 0; round < 2; ++round) {
    link.emplace(world);
    if (link->link.server() == &group.servers()[0]) break;
  }
  REQUIRE(link->link.server() == &group.servers()[0]);
  link->open(world, first);
  if (is_kept) {
    link->link.release(OriginLink::Fate::kKeep);
    link->open(world, first);
  }
  const OriginLink::Attempt closed{
      .failure = Failure::kClosed, .why = "closes", .repeatable = true};
  const int opened = link->heard.opened;
  REQUIRE(link->link.try_again(closed));
  CHECK(link->link.server() == &group.servers()[1]);
  world.run_until(second, [&] { return link->heard.opened == opened + 1; });
  REQUIRE(link->link.try_again(closed));
  CHECK(link->link.server() == &group.servers()[is_kept ? 0 : 1]);
  world.run_until(is_kept ? first : second, [&] { return link->link.is_open(); });
}

TEST_CASE("the kind of a failure that is known counts in place of the attempt's",
          "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  Linked link(world);
  link.open(world, origin);
  (void)link.link.try_again(
      {.failure = Failure::kClosed, .why = "why", .kind = ServerFailure::kTls});
  CHECK(world.failures(ServerFailure::kTls) == 1);
  CHECK(world.failures() == 1);
}

TEST_CASE("attempts that are repeated are counted, up to the limit", "[origin][link]") {
  const std::uint32_t retries = GENERATE(0U, 1U, 2U);
  const Failure failure =
      GENERATE(Failure::kClosed, Failure::kReset, Failure::kRefused, Failure::kSilent);
  CAPTURE(retries, static_cast<int>(failure));
  Origin origin;
  World world({origin.url()}, [&](config::Config& config) { config.upstream.retries = retries; });
  Linked link(world);
  link.open(world, origin);
  std::uint32_t done = 0;
  while (link.link.try_again({.failure = failure, .why = "why", .repeatable = true})) {
    ++done;
    REQUIRE(done < 10);
    world.run_until(origin, [&] { return link.link.is_open(); });
    CHECK(link.link.number() == done + 1);
  }
  // A server that is silent has no other address to be asked at.
  CHECK(done == (failure == Failure::kSilent ? 0 : retries));
  CHECK(world.stats.origin_retries.get() == done);
  CHECK(world.stats.origin_failovers.get() == 0);
  const auto sums = link.request->route->group().counters(*link.link.server())->sums();
  CHECK(sums.retries == done);
}

TEST_CASE("a line that is full, or waits too long, is left for another server", "[origin][link]") {
  Origin first;
  Origin second;
  World world({first.url(), second.url()});
  world.lines.use({.connections = 1, .waiting = 0});
  Linked holder(world);
  holder.open(world, first);
  Linked other(world);
  CHECK(other.link.acquire(OriginLink::Need::kAny) == Step::kPending);
  world.run_until(second, [&] {
    first.look();
    return other.heard.opened == 1;
  });
  CHECK(other.link.server() != holder.link.server());
  Linked third(world);
  CHECK(third.link.acquire(OriginLink::Need::kAny) == Step::kNone);
  const TransferFailure busy = third.link.busy_failure();
  CHECK(busy.status == 503);
  CHECK(busy.detail == "origin-busy");
  CHECK_FALSE(busy.of_the_client);
  CHECK(world.stats.origin_busy.get() == 1);
  CHECK(world.failures(ServerFailure::kBusy) == 1);
  // An idle connection of its server gives way.
  holder.link.release(OriginLink::Fate::kKeep);
  CHECK(world.pool.size() == 1);
  Linked fourth(world);
  const Step step = fourth.link.acquire(OriginLink::Need::kNew);
  CHECK(step == Step::kPending);
  CHECK(world.pool.size() == 0);
}

TEST_CASE("in a drain a fetch is quiet once nothing moves, and ends if nobody reads it",
          "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  FetchPlan plan;
  plan.whole = plan.in_table = true;
  FetchReader reader(world, world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), std::move(plan));
  const auto transfer = world.told.transfers.back().lock();
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 9\r\n\r\n");
  world.run_until(origin, [&] { return !reader.head.empty(); });
  Fetch& fetch = *world.fetches.front();
  fetch.end_if_quiet();
  CHECK_FALSE(transfer->is_quiet());
  for (int look = 0; look < 3; ++look) fetch.end_if_quiet();
  CHECK(transfer->is_quiet());
  origin.say("abc");
  world.run_until(origin, [&] { return reader.body == "abc"; });
  fetch.end_if_quiet();
  CHECK_FALSE(transfer->is_quiet());
  // It is stored, and finished for that; in a drain it is not waited for.
  reader.leave();
  world.run_turn();
  REQUIRE(world.fetches.size() == 1);
  for (int look = 0; look < 3 && !world.fetches.empty(); ++look) fetch.end_if_quiet();
  world.run_turn();
  CHECK(world.fetches.empty());
  CHECK_FALSE(world.stored(reader.request()));
}

}  // namespace
}  // namespace encore::server
