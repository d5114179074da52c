// A request's place in the transfer of another: how long it waits there, and how it goes on.
#include "proxy/exchange/transfer_subscription.h"

#include <memory>
#include <optional>
#include <string>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

constexpr MonotonicTime kStarts{std::chrono::hours(1)};
constexpr std::string_view kAskIt = "GET http://a.example/ HTTP/1.1\nHost: a.example\n";

struct Silent final : TransferReader {
  explicit Silent(TransferHome& home) : TransferReader(home) {}
  void on_transfer() override {}
  void on_interim(std::string_view) override {}
};

// A thread that has requests.
struct Requests {
  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  TransferHome home{*loop};
  TransferHome::Turn turn{home};
  std::unique_ptr<Inflight> inflight = std::make_unique<Inflight>();

  std::shared_ptr<Transfer> make(const RequestContext& request) {
    return std::make_shared<Transfer>(home, request.hash,
                                      std::make_shared<const std::string>(request.key),
                                      Transfer::Requester{.settings = request.runtime->number,
                                                          .credentials = request.credentials(),
                                                          .client = request.client});
  }
};

// One of them.
struct Asking {
  Asking(Requests& all, std::string_view fields, std::shared_ptr<const Runtime> with)
      : request(some_request(std::string(kAskIt) + std::string(fields), std::move(with))),
        keys(request->head.fields, request->vary()),
        reader(all.home),
        subscription(*all.inflight, *request, reader) {}
  JoinOutcome join(const std::shared_ptr<Transfer>& fresh = nullptr, MonotonicTime now = kStarts) {
    return subscription.join(fresh, keys, false, now);
  }

  std::shared_ptr<const RequestContext> request;
  http::VariantKeys keys;
  Silent reader;
  TransferSubscription subscription;
};

// A request that asks, and one that has joined it.
struct Joined {
  explicit Joined(int seconds_max = 5, std::string_view second_fields = "") {
    config::Config config;
    config.timeouts.collapse = seconds(seconds_max);
    runtime = some_runtime(config);
    first.emplace(all, "", runtime);
    const auto transfer = all.make(*first->request);
    CHECK(first->join(transfer) == JoinOutcome::kNo);
    first->subscription.lead(transfer);
    second.emplace(all, second_fields, runtime);
    REQUIRE(second->join() == JoinOutcome::kBeforeHead);
  }
  ~Joined() {
    if (first->subscription.transfer() != nullptr) {
      all.inflight->remove(*first->subscription.transfer());
    }
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  Requests all;
  std::shared_ptr<const Runtime> runtime;
  std::optional<Asking> first;
  std::optional<Asking> second;
};

TEST_CASE("who waits for another's head waits until the limit, and who asks has none",
          "[exchange][sharing]") {
  Joined two;
  const TransferSubscription& waits = two.second->subscription;
  CHECK(waits.has_joined());
  CHECK_FALSE(waits.is_asker());
  CHECK_FALSE(waits.has_waited_long_enough(kStarts + seconds(5) - Nanoseconds(1)));
  CHECK(waits.has_waited_long_enough(kStarts + seconds(5)));
  const TransferSubscription& asks = two.first->subscription;
  CHECK(asks.is_asker());
  CHECK_FALSE(asks.has_joined());
  CHECK_FALSE(asks.has_waited_long_enough(kStarts + std::chrono::hours(9)));
  two.second->subscription.leave();
  CHECK_FALSE(waits.has_waited_long_enough(kStarts + seconds(5)));
}

TEST_CASE("where the limit is 0 a request waits as long as the one that asks",
          "[exchange][sharing]") {
  Joined two(0);
  CHECK_FALSE(two.second->subscription.has_waited_long_enough(kStarts + std::chrono::hours(9)));
}

TEST_CASE("who has the head waits for no limit, but for the end of one that is to be stored",
          "[exchange][sharing]") {
  Joined two;
  auto response = std::make_shared<SharedResponse>();
  response->shareable = true;
  two.first->subscription.transfer()->publish_response(response, {}, Joinable::kToRead);
  CHECK_FALSE(two.second->subscription.has_waited_long_enough(kStarts + std::chrono::hours(9)));
  two.second->subscription.wait_for_store();
  CHECK(two.second->subscription.waits_for_store());
  CHECK_FALSE(
      two.second->subscription.has_waited_long_enough(kStarts + seconds(5) - Nanoseconds(1)));
  CHECK(two.second->subscription.has_waited_long_enough(kStarts + seconds(5)));
  CHECK(two.second->subscription.give_up() == ShareDecision::kAskAlone);
}

TEST_CASE("who has waited in vain asks for others the first time, and then alone",
          "[exchange][sharing]") {
  Joined two;
  CHECK(two.second->subscription.is_alike());
  CHECK(two.second->subscription.give_up() == ShareDecision::kAskAgain);
  // Nobody else begins to wait for that one.
  Asking third(two.all, "", two.runtime);
  CHECK(third.join() == JoinOutcome::kNo);
  two.second->subscription.learn(ShareDecision::kAskAgain);
  CHECK(two.second->subscription.may_follow());
  two.second->subscription.forget();
  CHECK_FALSE(two.second->subscription.has_joined());

  // Another has begun meanwhile.
  two.all.inflight->remove(*two.first->subscription.transfer());
  const auto transfer = two.all.make(*third.request);
  CHECK(third.join(transfer) == JoinOutcome::kNo);
  third.subscription.lead(transfer);
  REQUIRE(two.second->join() == JoinOutcome::kBeforeHead);
  CHECK(two.second->subscription.give_up() == ShareDecision::kAskAlone);
  two.second->subscription.learn(ShareDecision::kAskAlone);
  CHECK_FALSE(two.second->subscription.may_follow());
  two.second->subscription.leave();
  two.all.inflight->remove(*transfer);
}

TEST_CASE("who has waited for other credentials waits for its own next", "[exchange][sharing]") {
  Joined two(5, "Authorization: Basic YTpi\n");
  CHECK_FALSE(two.second->subscription.is_alike());
  CHECK(two.second->subscription.give_up() == ShareDecision::kAskApart);
  two.second->subscription.learn(ShareDecision::kAskApart);
  CHECK(two.second->subscription.may_follow());
  two.second->subscription.leave();
  // The other's is not for it, but one with its own credentials is.
  Asking other(two.all, "", two.runtime);
  two.all.inflight->remove(*two.first->subscription.transfer());
  const auto others = two.all.make(*other.request);
  CHECK(other.join(others) == JoinOutcome::kNo);
  other.subscription.lead(others);
  CHECK(two.second->join() == JoinOutcome::kNo);
  two.all.inflight->remove(*others);
  Asking alike(two.all, "Authorization: Basic YTpi\n", two.runtime);
  const auto own = two.all.make(*alike.request);
  CHECK(alike.join(own) == JoinOutcome::kNo);
  alike.subscription.lead(own);
  CHECK(two.second->join() == JoinOutcome::kBeforeHead);
  two.second->subscription.leave();
  two.all.inflight->remove(*own);
}

TEST_CASE("what an answer to others teaches depends on whose it was", "[exchange][sharing]") {
  struct Row {
    const char* fields;
    ShareDecision take;
    bool follows;
  };
  const Row row = GENERATE(values<Row>({
      {"", ShareDecision::kYes, true},
      {"", ShareDecision::kAskAgain, true},
      {"", ShareDecision::kAskApart, true},
      {"", ShareDecision::kAskAlone, false},
      {"", ShareDecision::kOnceStored, false},
      {"Authorization: Basic YTpi\n", ShareDecision::kOnceStored, true},
      {"Authorization: Basic YTpi\n", ShareDecision::kAskAlone, false},
  }));
  CAPTURE(row.fields, static_cast<int>(row.take));
  Joined two(5, row.fields);
  two.second->subscription.learn(row.take);
  CHECK(two.second->subscription.may_follow() == row.follows);
}

TEST_CASE("after three transfers of others a request joins no more", "[exchange][sharing]") {
  Joined two;
  for (int i = 1; i <= 3; ++i) {
    CHECK(two.second->subscription.has_joined_enough() == (i == 3));
    if (i == 3) break;
    two.second->subscription.forget();
    REQUIRE(two.second->join() == JoinOutcome::kBeforeHead);
  }
}

TEST_CASE("where a response was for one client alone, others wait for no head of another's",
          "[exchange][sharing]") {
  Joined two;
  const filter::Hash128 hash = two.first->request->hash;
  const MonotonicTime until = kStarts + seconds(9);
  two.all.inflight->remember_unshared(hash, 77, Inflight::Unshared::kUncacheable, until);
  Asking alike(two.all, "", two.runtime);
  CHECK(alike.join() == JoinOutcome::kBeforeHead);
  Asking other(two.all, "Authorization: Basic YTpi\n", two.runtime);
  CHECK(other.join() == JoinOutcome::kNo);
  CHECK(other.join(nullptr, until) == JoinOutcome::kBeforeHead);
  alike.subscription.leave();
  other.subscription.leave();
}

TEST_CASE("who asks for what is new does not take another's answer", "[exchange][sharing]") {
  Joined two;
  const bool is_new = GENERATE(true, false);
  Asking third(two.all, is_new ? "Cache-Control: no-cache\n" : "", two.runtime);
  CHECK((third.join() == JoinOutcome::kBeforeHead) == !is_new);
  third.subscription.leave();
}

TEST_CASE("a place in a transfer says how it came about, and is lost with it",
          "[exchange][sharing]") {
  Joined two;
  auto response = std::make_shared<SharedResponse>();
  response->shareable = true;
  const auto transfer = two.first->subscription.transfer();
  transfer->publish_response(response, {}, Joinable::kToRead);
  Asking late(two.all, "", two.runtime);
  REQUIRE(late.join() == JoinOutcome::kBehindHead);
  CHECK(late.subscription.has_joined());
  CHECK(late.subscription.has_joined_late());
  CHECK_FALSE(late.subscription.waits_for_store());
  CHECK_FALSE(late.subscription.is_asker());
  CHECK_FALSE(two.second->subscription.has_joined_late());
  CHECK_FALSE(two.first->subscription.has_joined_late());
  late.subscription.leave();
  CHECK(late.subscription.transfer() == nullptr);
  two.second->subscription.leave();
  CHECK(transfer->has_readers());
  two.all.inflight->remove(*transfer);
  two.first->subscription.leave();
  CHECK_FALSE(transfer->has_readers());
}

}  // namespace
}  // namespace encore::server
