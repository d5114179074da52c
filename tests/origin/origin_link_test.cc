// Sources of a fetch's connection, and its next step when an attempt fails.
#include "proxy/origin/origin_link.h"

#include <string>

#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

const std::string kGetOverLink = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

struct Told final : public OriginLinkHandler {
  void on_link_open() override { ++opened; }
  void on_link_failed(const TransferFailure& why) override { failure = why; }
  int opened = 0;
  std::optional<TransferFailure> failure;
};

struct Link {
  explicit Link(World& world)
      : request(world.request(kGetOverLink)), link(*world.services, *request, told) {}
  std::shared_ptr<const RequestContext> request;
  Told told;
  OriginLink link;
};

using Progress = OriginLink::Progress;
using AttemptFailure = OriginLink::AttemptFailure;

TEST_CASE("a connection comes from the loop, and from the pool at once", "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  Link first(world);
  CHECK((first.link.acquire(OriginLink::Need::kAny) == Progress::kPending));
  CHECK(first.told.opened == 0);
  world.run_until(origin, [&] { return first.told.opened == 1; });
  CHECK(first.link.is_open());
  CHECK(world.stats.origin_connections.get() == 1);
  first.link.release(OriginLink::Fate::kKeep);
  CHECK(world.pool.size() == 1);
  Link second(world);
  CHECK((second.link.acquire(OriginLink::Need::kAny) == Progress::kOpen));
  CHECK(second.told.opened == 0);
  // If it will not do, another is made.
  second.link.release(OriginLink::Fate::kKeep);
  Link third(world);
  CHECK((third.link.acquire(OriginLink::Need::kNew) == Progress::kPending));
  CHECK(world.pool.size() == 1);
}

TEST_CASE("a server by name is looked up, and what is kept for its address is used again",
          "[origin][link]") {
  Origin origin;
  World world({"http://localhost:" + std::to_string(origin.port())});
  Link first(world);
  CHECK((first.link.acquire(OriginLink::Need::kAny) == Progress::kPending));
  world.run_until(origin, [&] { return first.told.opened == 1; });
  CHECK_FALSE(first.told.failure);
  CHECK(world.stats.origin_connections.get() == 1);
  first.link.release(OriginLink::Fate::kKeep);
  CHECK(world.pool.size() == 1);
  Link second(world);
  if (second.link.acquire(OriginLink::Need::kAny) == Progress::kPending) {
    world.run_until(origin, [&] { return second.told.opened == 1; });
  }
  CHECK_FALSE(second.told.failure);
  CHECK(world.pool.size() == 0);
  CHECK(origin.accepted == 1);
  second.link.release(OriginLink::Fate::kDrop);
}

TEST_CASE("a name that nobody knows is told", "[origin][link]") {
  Origin origin;
  World world({"http://does-not-exist.invalid:1"});
  Link link(world);
  CHECK((link.link.acquire(OriginLink::Need::kAny) == Progress::kPending));
  // A name server that is silent, too, ends it in time.
  for (int turn = 0; turn < 50 && !link.told.failure; ++turn) world.run_turn();
  if (!link.told.failure) {
    link.link.check_timeouts(world.loop->now() + config::Timeouts{}.dns);
    for (int turn = 0; turn < 50 && !link.told.failure; ++turn) world.run_turn();
  }
  REQUIRE(link.told.failure);
  CHECK(link.told.opened == 0);
  // Told by a name server, or by its silence.
  const int status = link.told.failure->status;
  CHECK((status == 502 || status == 504));
}

TEST_CASE("nothing is kept in a drain", "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  Link link(world);
  (void)link.link.acquire(OriginLink::Need::kAny);
  world.run_until(origin, [&] { return link.told.opened == 1; });
  world.draining = true;
  link.link.release(OriginLink::Fate::kKeep);
  CHECK(world.pool.size() == 0);
  CHECK(world.stats.origin_connections.get() == 0);
}

TEST_CASE("a server that refuses is left for the next one; when all do, the client is told",
          "[origin][link]") {
  Origin dead;
  dead.stop_listening();
  Origin origin;
  for (const bool other : {true, false}) {
    World world(other ? std::vector<std::string>{dead.url(), origin.url()}
                      : std::vector<std::string>{dead.url()});
    // In any order of turns one of two asks the dead one first.
    for (int round = 0; round < 2; ++round) {
      Link link(world);
      (void)link.link.acquire(OriginLink::Need::kNew);
      world.run_until(origin, [&] { return link.told.opened == 1 || link.told.failure; });
      CHECK((link.told.opened == 1) == other);
      if (!other) CHECK(link.told.failure->detail == "connect-refused");
    }
    CHECK((world.stats.origin_failovers.get() != 0) == other);
  }
}

TEST_CASE("who finds as many connections as there may be waits in line, or is told",
          "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 1, .waiting = 1});
  Link first(world);
  (void)first.link.acquire(OriginLink::Need::kAny);
  world.run_until(origin, [&] { return first.told.opened == 1; });
  Link second(world);
  CHECK((second.link.acquire(OriginLink::Need::kAny) == Progress::kPending));
  Link third(world);
  CHECK((third.link.acquire(OriginLink::Need::kAny) == Progress::kNone));
  CHECK(world.stats.origin_busy.get() == 1);
  first.link.release(OriginLink::Fate::kKeep);
  CHECK(second.told.opened == 0);
  world.lines.wake();
  CHECK(second.told.opened == 1);
  CHECK(origin.accepted == 1);
}

TEST_CASE("who waits in line for too long is told", "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 1, .waiting = 1});
  Link first(world);
  (void)first.link.acquire(OriginLink::Need::kAny);
  Link second(world);
  (void)second.link.acquire(OriginLink::Need::kAny);
  const Nanoseconds limit = world.runtime->config.timeouts.origin_connect;
  second.link.check_timeouts(world.loop->now() + limit - std::chrono::milliseconds(100));
  CHECK_FALSE(second.told.failure);
  second.link.check_timeouts(world.loop->now() + limit);
  REQUIRE(second.told.failure);
  CHECK(second.told.failure->detail == "origin-busy");
}

TEST_CASE("what is refused for its client's share is no failure of the server", "[origin][link]") {
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 4, .per_client = 1, .waiting = 1});
  Link first(world);
  (void)first.link.acquire(OriginLink::Need::kAny);
  world.run_until(origin, [&] { return first.told.opened == 1; });
  Link second(world);
  CHECK((second.link.acquire(OriginLink::Need::kAny) == Progress::kPending));
  CHECK(second.link.waits_for_share());
  Link third(world);
  CHECK((third.link.acquire(OriginLink::Need::kAny) == Progress::kNone));
  second.link.check_timeouts(world.loop->now() + world.runtime->config.timeouts.origin_connect);
  REQUIRE(second.told.failure);
  for (const TransferFailure& failure : {third.link.busy_failure(), *second.told.failure}) {
    CHECK(failure.of_the_client);
    CHECK(failure.status == 503);
    CHECK(failure.outcome == Outcome::kDenied);
    CHECK(failure.detail == "origin-share");
  }
  CHECK(world.stats.origin_share_refusals.get() == 2);
  CHECK(world.stats.origin_busy.get() == 0);
  CHECK(world.stats.origin_failovers.get() == 0);
}

TEST_CASE("an attempt is repeated where that does no harm, and as often as it may be",
          "[origin][link]") {
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.upstream.retries = 1; });
  Link link(world);
  (void)link.link.acquire(OriginLink::Need::kAny);
  world.run_until(origin, [&] { return link.told.opened == 1; });
  const OriginLink::Attempt closed = {.failure = AttemptFailure::kClosed, .why = "closes"};
  CHECK_FALSE(link.link.try_again(closed));
  CHECK(link.link.is_open());  // as it was
  OriginLink::Attempt repeatable = closed;
  repeatable.repeatable = true;
  const auto progress = link.link.try_again(repeatable);
  REQUIRE(progress);
  CHECK((*progress == Progress::kPending));
  world.run_until(origin, [&] { return link.told.opened == 2; });
  CHECK_FALSE(link.link.try_again(repeatable));
  CHECK(world.stats.origin_retries.get() == 1);
}

TEST_CASE("a server that closes again and again is left for one that is set aside",
          "[origin][link]") {
  Origin closing;
  Origin living;
  World world({closing.url(), living.url()}, [](config::Config& config) {
    config.upstream.retries = 2;
    config.upstream.eject_after = 1;
  });
  Link link(world);
  const ServerGroup& group = link.request->route->group();
  REQUIRE(group.note_failure(group.servers()[1], world.loop->now()));
  OriginLink::Attempt closed = {.failure = AttemptFailure::kClosed, .why = "closes"};
  closed.repeatable = true;
  (void)link.link.acquire(OriginLink::Need::kNew);
  for (int opened = 1; opened <= 3; ++opened) {
    world.run_until(opened < 3 ? closing : living, [&] { return link.told.opened == opened; });
    CHECK(link.link.server() == &group.servers()[opened < 3 ? 0 : 1]);
    CHECK(link.link.try_again(closed).has_value() == (opened < 3));
  }
}

}  // namespace
}  // namespace encore::server
