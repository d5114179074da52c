// Purges that clients ask for, as the process gets them.
#include "proxy/process/purge_executor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/process/shared.h"
#include "proxy/transfer/transfer_home.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

struct Executed {
  Executed() : loop(std::move(*net::Loop::create())), home(*loop), executor(shared, *loop) {
    shared.purge = [this](PurgeOrder given, const std::function<void(const PurgeResult&)>& done) {
      order = std::move(given);
      done(result);
    };
  }
  // Returns the answer to it.
  TransferFailure ask(PurgeRequest request) {
    const auto transfer = std::make_shared<Transfer>(home, filter::Hash128{},
                                                     std::make_shared<const std::string>("purge"));
    executor.purge(transfer, std::move(request));
    loop->stop();
    loop->run();
    return transfer->failure();
  }

  std::unique_ptr<net::Loop> loop;
  TransferHome home;
  Shared shared;
  PurgeExecutor executor;
  PurgeOrder order;
  PurgeResult result{.count = 3};
};

TEST_CASE("a client's ban keeps each of its patterns", "[server][purge]") {
  Executed executed;
  const TransferFailure answer = executed.ask({.forward = true,
                                               .soft = true,
                                               .host = "h",
                                               .url = "u",
                                               .content_type = "c",
                                               .tags = {"t1", "t2"}});
  CHECK(answer.status == 200);
  REQUIRE(executed.order.ban);
  const BanOrder& ban = *executed.order.ban;
  CHECK(ban.forward);
  CHECK(executed.order.soft);
  CHECK(ban.host == "h");
  CHECK(ban.url == "u");
  CHECK(ban.content_type == "c");
  CHECK(ban.tags == std::vector<std::string>{"t1", "t2"});
  CHECK(executed.order.keys.empty());
}

TEST_CASE("a client's purge of a URL says whether anything was there", "[server][purge]") {
  Executed executed;
  CHECK(executed.ask({.keys = {"one", "two"}}).status == 200);
  CHECK(executed.order.keys == std::vector<std::string>{"one", "two"});
  CHECK_FALSE(executed.order.ban);
  CHECK_FALSE(executed.order.soft);
  executed.result = {};
  CHECK(executed.ask({.keys = {"one"}}).status == 404);
  executed.result.durable = fail("no device");
  CHECK(executed.ask({.keys = {"one"}}).status == 500);
  executed.result.refusal = "busy";
  CHECK(executed.ask({.keys = {"one"}}).status == 503);
  executed.result.refusal = "no-such-pattern";
  CHECK(executed.ask({.keys = {"one"}}).status == 400);
}

TEST_CASE("a client's purge says which nodes have not confirmed it", "[server][purge]") {
  Executed executed;
  const auto said = [&](FleetPurge fleet) {
    executed.result.fleet = std::move(fleet);
    const TransferFailure answer = executed.ask({.keys = {"one"}});
    CHECK(answer.status == 200);
    CHECK(answer.detail == "purged 3");
    return answer.why;
  };
  CHECK(said({.is_published = true, .confirmed = {"a", "b"}}).empty());
  CHECK(said({.is_published = true, .unconfirmed = {"b", "c"}}) == "not confirmed by b, c");
  CHECK(said({.is_published = false}) == "other nodes purge once the engine is back");
  const std::vector<std::string> many(20, "n");
  CHECK(said({.is_published = true, .unconfirmed = many}).ends_with(", n and 4 more"));
}

TEST_CASE("a client's purge that no other node will learn of is refused", "[server][purge]") {
  Executed executed;
  executed.result.fleet = FleetPurge{.is_dropped = true};
  const TransferFailure answer = executed.ask({.keys = {"one"}});
  CHECK(answer.status == 503);
  CHECK(answer.outcome == Outcome::kBadRequest);
  CHECK(answer.detail == "too-many-purges-wait");
}

}  // namespace
}  // namespace encore::server
