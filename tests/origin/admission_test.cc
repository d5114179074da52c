// Notices to kernel and table of transfers because of a response's head.
#include "proxy/origin/admission.h"

#include <string>

#include "tests/catch.h"
#include "tests/origin/receive.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using Use = ResponseBody::Use;
using Unshared = Inflight::Unshared;

constexpr std::uint64_t kThreshold = 1000;

void by_size(cache::KernelOptions& options) {
  options.admission.policy = cache::AdmissionPolicy::kSizeThreshold;
  options.admission.size_threshold_bytes = kThreshold;
}

struct Deciding {
  explicit Deciding(const std::function<void(cache::KernelOptions&)>& change = by_size,
                    const std::function<void(config::Config&)>& settings = {})
      : world({origin.url()}, settings, change),
        request(world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")) {}
  Use admit(const StoringPlan& plan, std::uint32_t joined = 0) {
    return server::admit(*world.services, *request, *request->request_policy, plan, joined,
                         response);
  }

  Origin origin;
  World world;
  std::shared_ptr<const RequestContext> request;
  SharedResponse response;
};

TEST_CASE("what becomes of a body follows from the plan and the kernel", "[origin][admission]") {
  struct Row {
    Admission admission;
    bool can_store;
    std::uint64_t size;
    Use use;
    Outcome outcome;
  };
  using enum Admission;
  const Row row = GENERATE(values<Row>({
      {kNone, true, 10, Use::kPass, Outcome::kBypass},
      {kAsk, true, 10, Use::kStore, Outcome::kAdmitted},
      {kAsk, false, 10, Use::kPass, Outcome::kUncacheable},
      // A request that comes while it is on its way may have it stored.
      {kAsk, true, kThreshold + 1, Use::kMayStore, Outcome::kNotAdmitted},
      {kAsk, true, std::uint64_t{1} << 40U, Use::kPass, Outcome::kTooLarge},
      {kCount, true, 10, Use::kPass, Outcome::kUncacheable},
  }));
  CAPTURE(static_cast<int>(row.admission), row.can_store, row.size);
  Deciding deciding;
  deciding.response.reason = http::StoreReason::kMethod;
  const bool shareable = GENERATE(true, false);
  const Use use = deciding.admit({.shareable = shareable,
                                  .admission = row.admission,
                                  .can_store = row.can_store,
                                  .size_bytes = row.size,
                                  .outcome = Outcome::kBypass});
  CHECK((use == row.use));
  CHECK(deciding.response.outcome == row.outcome);
  CHECK(deciding.response.shareable == shareable);
  // A request that is only counted is not said to be kept from the cache for another reason.
  CHECK((deciding.response.reason == http::StoreReason::kOk) == (row.admission == kCount));
}

TEST_CASE("those who joined count as requests, but not where one is only counted",
          "[origin][admission]") {
  const auto second = [](cache::KernelOptions& options) {
    options.admission.policy = cache::AdmissionPolicy::kExactSecondHit;
    options.admission.filter.capacity = 1000;
  };
  const StoringPlan ask{.admission = Admission::kAsk, .can_store = true, .size_bytes = 10};
  Deciding alone(second);
  CHECK((alone.admit(ask) == Use::kMayStore));
  CHECK(alone.response.outcome == Outcome::kFirstRequest);
  CHECK((alone.admit(ask) == Use::kStore));
  Deciding joined(second);
  CHECK((joined.admit(ask, 1) == Use::kStore));
  CHECK(joined.response.outcome == Outcome::kSecondRequest);
  Deciding counted(second);
  StoringPlan count = ask;
  count.admission = Admission::kCount;
  CHECK((counted.admit(count, 1) == Use::kPass));
  CHECK(counted.response.outcome == Outcome::kFirstRequest);
}

TEST_CASE("a Cache-Status is believed of servers that the configuration trusts",
          "[origin][admission]") {
  const bool trusted = GENERATE(true, false);
  Deciding deciding(
      [](cache::KernelOptions& options) {
        options.admission.policy = cache::AdmissionPolicy::kExactSecondHit;
        options.admission.filter.capacity = 1000;
      },
      [trusted](config::Config& config) {
        if (trusted) config.origin[0].admission_hint = config::AdmissionHint::kTrusted;
      });
  const auto hinted = [&](const RequestContext& request, const char* status) {
    const std::string text = "HTTP/1.1 200 OK\r\nCache-Status: " + std::string(status) + "\r\n\r\n";
    ReceivedResponse received;
    receive(deciding.world, text, received);
    return is_hinted(request, received);
  };
  CHECK(hinted(*deciding.request, "parent; hit") == trusted);
  CHECK_FALSE(hinted(*deciding.request, "parent; hit, x; fwd=miss"));
  CHECK_FALSE(hinted(*deciding.request, "parent; hit; ="));
  // The client's own field says nothing.
  const auto forging =
      deciding.world.request("GET /a HTTP/1.1\r\nHost: h\r\nCache-Status: parent; hit\r\n\r\n");
  CHECK_FALSE(hinted(*forging, "parent; fwd=miss"));

  const StoringPlan plan{
      .admission = Admission::kAsk, .can_store = true, .hinted = trusted, .size_bytes = 10};
  CHECK((deciding.admit(plan) == (trusted ? Use::kStore : Use::kMayStore)));
  CHECK(deciding.response.outcome == (trusted ? Outcome::kParentHint : Outcome::kFirstRequest));
}

TEST_CASE("what is refused for its size alone is told from what is not", "[origin][admission]") {
  Deciding deciding;
  const auto refused = [&](std::uint64_t bytes) {
    return is_refused_for_size(*deciding.world.services, *deciding.request,
                               *deciding.request->request_policy, bytes);
  };
  CHECK_FALSE(refused(10));
  CHECK(refused(kThreshold + 1));
  Deciding never([](cache::KernelOptions& options) {
    options.admission.policy = cache::AdmissionPolicy::kNever;
  });
  CHECK_FALSE(is_refused_for_size(*never.world.services, *never.request,
                                  *never.request->request_policy, kThreshold + 1));
}

TEST_CASE("what is not shared is remembered as long as is configured, or forgotten",
          "[origin][admission]") {
  Deciding deciding(by_size, [](config::Config& config) {
    config.cache.uncacheable_memory = std::chrono::seconds(100);
  });
  const Unshared why = GENERATE(Unshared::kAnswer, Unshared::kUncacheable);
  const auto known = [&](int seconds) {
    return deciding.world.inflight.unshared(
        deciding.request->hash, 0, deciding.world.loop->now() + std::chrono::seconds(seconds));
  };
  CHECK((known(0) == Unshared::kNo));
  remember_sharing(*deciding.world.services, *deciding.request, why);
  CHECK((known(0) == why));
  CHECK((known(98) == why));
  CHECK((known(101) == Unshared::kNo));
  remember_sharing(*deciding.world.services, *deciding.request, Unshared::kNo);
  CHECK((known(0) == Unshared::kNo));
}

// Stores a response to GET `path`; returns its request, by the key that clients' requests have.
std::shared_ptr<const RequestContext> put(World& world, Origin& origin, const std::string& path) {
  auto request = world.request("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx");
  world.run_until(origin, [&] { return reader.is_done(); });
  REQUIRE(world.stored(*request));
  return request;
}

bool is_fresh(World& world, const RequestContext& request) {
  const CacheView view = world.lookup(request);
  return view.object && world.loop->now() < view.fresh_until;
}

TEST_CASE("an unsafe method takes with it what its response names, and no more",
          "[origin][admission]") {
  Origin origin;
  World world({origin.url()});
  const auto target = put(world, origin, "/a");
  const auto named = put(world, origin, "/b");
  const auto other = put(world, origin, "/c");
  const std::string text =
      "HTTP/1.1 201 Created\r\nLocation: /b\r\nContent-Location: http://elsewhere/c\r\n"
      "Content-Length: 0\r\n\r\n";
  ReceivedResponse received;
  receive(world, text, received);
  invalidate_others(*world.services, *target, received.head);
  CHECK_FALSE(is_fresh(world, *target));
  CHECK_FALSE(is_fresh(world, *named));
  CHECK(is_fresh(world, *other));
  // Nor may what is on its way be used unasked.
  const auto& invalidations = world.inflight.invalidations();
  CHECK(invalidations.has_since(target->hash, received.invalidations_seen));
  CHECK(invalidations.has_since(named->hash, received.invalidations_seen));
  CHECK_FALSE(invalidations.has_since(other->hash, received.invalidations_seen));
}

TEST_CASE("what a response names beyond all routes takes nothing with it", "[origin][admission]") {
  Origin origin;
  World world({origin.url()}, [](config::Config& config) { config.origin[0].path = "/in"; });
  const auto target = put(world, origin, "/in/a");
  const auto other = put(world, origin, "/in/b");
  const std::string text =
      "HTTP/1.1 201 Created\r\nLocation: /out\r\nContent-Location: /in/b\r\n"
      "Content-Length: 0\r\n\r\n";
  ReceivedResponse received;
  receive(world, text, received);
  invalidate_others(*world.services, *target, received.head);
  CHECK_FALSE(is_fresh(world, *target));
  CHECK_FALSE(is_fresh(world, *other));
}

TEST_CASE("what is outdated goes, and only that variant", "[origin][admission]") {
  Origin origin;
  World world({origin.url()});
  const auto request = put(world, origin, "/a");
  const auto other = put(world, origin, "/b");
  drop_stored(*world.services, *request, *world.stored(*request));
  CHECK_FALSE(world.stored(*request));
  CHECK(world.stored(*other));
}

}  // namespace
}  // namespace encore::server
