// An exchange that has found something in the cache, and what it asks the origin about it.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cache/payload_owner.h"
#include "proxy/exchange/exchange.h"
#include "proxy/request/sent_head.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/exchange_fixture.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

// The digest of "hello".
const std::string kBlobDigest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const std::string kFoundRest =
    " http://a.example/sha256:" + kBlobDigest + " HTTP/1.1\n" + "Host: a.example\n";

struct FoundShape {
  std::string method = "GET";
  std::string fields = {};
  std::uint16_t flags = 0;
  int age = 0;  // in seconds; it is fresh for 60
  std::uint32_t swr = 0;
  config::Rule rule = {};
  bool has_rule = true;
};

// A request for which this object was found.
class Finding final : private cache::PayloadOwner {
 public:
  explicit Finding(const FoundShape& shape)
      : memory_(std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}))) {
    config::Config config;
    config.cache.cache_status_admission = false;
    if (shape.has_rule) config.rule = {shape.rule};
    const std::string text = shape.method + kFoundRest + shape.fields;
    const auto request = some_request(text, some_runtime(config));
    http::StoredMeta meta;
    meta.flags = shape.flags;
    meta.lifetime_seconds = 60;
    meta.age_zero = monotonic_now() - seconds(shape.age);
    meta.fresh_until = meta.age_zero + seconds(60);
    meta.swr_seconds = shape.swr;
    object = make_object(*memory_, {.key = request->key, .http = meta});
    cache::KernelOptions options;
    options.capacity_bytes = 1U << 20U;
    options.admission.policy = cache::AdmissionPolicy::kAlways;
    auto kernel = std::move(*cache::Kernel::create(options, {.owner = this}, {}));
    store::ObjectRef kept = object;
    REQUIRE(kernel->commit({request->hash, request->key},
                           {.charge_bytes = object->charge(),
                            .fresh_until = meta.fresh_until,
                            .keep_until = meta.fresh_until + std::chrono::hours(1),
                            .payload = object.payload()},
                           0, monotonic_now()) == cache::CommitOutcome::kStored);
    (void)kept.detach();
    fixture.emplace(
        text, config,
        CacheView{
            .object = object, .disk = {}, .any_resident = true, .fresh_until = meta.fresh_until});
    fixture->kernel = std::move(kernel);
  }
  ~Finding() {
    for (const auto& transfer : fixture->origins.transfers) {
      if (transfer->can_be_found()) fixture->inflight.remove(*transfer);
    }
    if (!fixture->stream.ended) fixture->exchange->on_gone();
    fixture->exchange.reset();
    fixture->kernel.reset();
  }
  Finding(const Finding&) = delete;
  Finding& operator=(const Finding&) = delete;

  // Another one of its key, which is fresh.
  store::ObjectRef make_fresh() {
    http::StoredMeta meta;
    meta.lifetime_seconds = 60;
    meta.age_zero = monotonic_now();
    meta.fresh_until = meta.age_zero + seconds(60);
    return make_object(*memory_, {.key = fixture->request->key, .http = meta});
  }
  const OriginFetchOptions& ask(std::size_t number = 0) { return fixture->origins.asks.at(number); }
  Transfer& transfer(std::size_t number = 0) { return *fixture->origins.transfers.at(number); }
  void respond(std::size_t number, std::uint16_t status, std::string_view fields) {
    auto response = std::make_shared<SharedResponse>();
    response->head = "HTTP/1.1 " + std::to_string(status) + " Said\r\n" + std::string(fields);
    response->common_bytes = response->head.size();
    response->meta.status = status;
    response->length = 0;
    response->reason = http::StoreReason::kStatus;
    transfer(number).publish_response(response, {}, Joinable::kNo);
  }
  bool says(std::string_view text) const { return fixture->stream.response.head.contains(text); }
  bool is_permitted() const {
    const RequestContext& request = *fixture->request;
    return fixture->rechecks.is_allowed(fixture->rechecks.name(access_text(request)),
                                        fixture->loop->now());
  }

 private:
  void release(std::span<const cache::Payload> payloads) override { memory_->release(payloads); }
  std::unique_ptr<store::Store> memory_;

 public:
  store::ObjectRef object;
  std::optional<ExchangeFixture> fixture;
};

config::Rule rechecking() {
  config::Rule rule;
  rule.authorization = config::AuthorizationUse::kRecheck;
  return rule;
}

TEST_CASE("what an origin allows each client by itself is sent to whom it allows it",
          "[exchange][rechecks]") {
  const std::uint16_t status =
      GENERATE(std::uint16_t{200}, std::uint16_t{204}, std::uint16_t{299}, std::uint16_t{199},
               std::uint16_t{300}, std::uint16_t{302}, std::uint16_t{401}, std::uint16_t{404});
  const bool is_allowed = status / 100 == 2;
  CAPTURE(status);
  Finding f({.fields = "Authorization: Bearer a\n",
             .flags = http::StoredMeta::kWantsPermission,
             .rule = rechecking()});
  f.fixture->exchange->start();
  REQUIRE(f.fixture->origins.asks.size() == 1);
  CHECK(f.fixture->stats.rechecks.get() == 1);
  CHECK(f.fixture->origins.requests[0]->head.method == http::Method::kHead);
  CHECK(f.ask().table == OriginFetchOptions::Table::kNotIn);
  CHECK(f.ask().whom == OriginFetchOptions::For::kAsker);
  CHECK_FALSE(f.ask().validates.object);
  CHECK_FALSE(f.transfer().can_be_found());
  CHECK(f.transfer().has_readers());
  CHECK_FALSE(f.fixture->stream.begun);
  CHECK_FALSE(f.is_permitted());
  f.respond(0, status, "Content-Length: 7\r\n");
  CHECK_FALSE(f.transfer().has_readers());
  CHECK(f.is_permitted() == is_allowed);
  if (is_allowed) {
    CHECK(f.fixture->ended_as(Outcome::kHit) == 1);
    CHECK(f.says("HTTP/1.1 200 OK\r\n"));
    CHECK(f.says("Cache-Status: encore; hit; ttl="));
    CHECK(f.fixture->origins.asks.size() == 1);
    return;
  }
  REQUIRE(f.fixture->origins.asks.size() == 2);
  CHECK(f.fixture->origins.requests[1] == f.fixture->request);
  CHECK(f.fixture->origins.requests[1]->head.method == http::Method::kGet);
  CHECK(f.ask(1).what == OriginRequestForm::kAsItIs);
  CHECK(f.ask(1).table == OriginFetchOptions::Table::kNotIn);
  CHECK_FALSE(f.ask(1).validates.object);
  CHECK_FALSE(f.ask(1).part);
  f.respond(1, 403, "Content-Length: 0\r\n");
  CHECK(f.says("HTTP/1.1 403 Said\r\n"));
  CHECK(f.says("Cache-Status: encore; fwd=request"));
}

TEST_CASE("who may have it is not asked for again, nor for a client that wants no origin",
          "[exchange][rechecks]") {
  const bool is_known = GENERATE(true, false);
  Finding f({.fields = "Cache-Control: only-if-cached\n",
             .flags = http::StoredMeta::kWantsPermission,
             .rule = rechecking()});
  if (is_known) {
    AuthorizationCache& rechecks = f.fixture->rechecks;
    rechecks.allow(rechecks.name(access_text(*f.fixture->request)), f.fixture->loop->now());
  }
  f.fixture->exchange->start();
  CHECK(f.fixture->origins.asks.empty());
  CHECK(f.fixture->stats.rechecks.get() == 0);
  CHECK(f.fixture->ended_as(is_known ? Outcome::kHit : Outcome::kOnlyIfCached) == 1);
  CHECK(f.says(is_known ? "HTTP/1.1 200 " : "HTTP/1.1 504 "));
}

TEST_CASE("without its rule what wants a permission is not there", "[exchange][rechecks]") {
  const bool wants = GENERATE(true, false);
  Finding f({.flags = wants ? std::uint16_t{http::StoredMeta::kWantsPermission} : std::uint16_t{0},
             .has_rule = false});
  f.fixture->exchange->start();
  REQUIRE(f.fixture->origins.asks.size() == (wants ? 1 : 0));
  if (wants) CHECK_FALSE(f.ask().validates.object);
  if (wants) CHECK_FALSE(f.ask().part);
  CHECK(f.fixture->ended_as(Outcome::kHit) == (wants ? 0 : 1));
}

TEST_CASE("a redirection to the blob at a host of the rule is a permission, and no other is",
          "[exchange][rechecks]") {
  enum class Odd : std::uint8_t {
    kNone,
    kStatus,
    kFollowsNot,
    kByUrl,
    kUnverified,
    kNoLocation,
    kTwoLocations,
    kSameHost,
    kOtherHost,
    kOtherBlob,
  };
  using enum Odd;
  const Odd odd = GENERATE(values({kNone, kStatus, kFollowsNot, kByUrl, kUnverified, kNoLocation,
                                   kTwoLocations, kSameHost, kOtherHost, kOtherBlob}));
  const std::uint16_t status =
      GENERATE(std::uint16_t{302}, std::uint16_t{303}, std::uint16_t{307}, std::uint16_t{308});
  const bool has_query = GENERATE(true, false);
  CAPTURE(static_cast<int>(odd), status, has_query);
  config::Rule rule = rechecking();
  rule.follow_redirects = odd != kFollowsNot;
  rule.key = odd == kByUrl ? config::RuleKey::kUrl : config::RuleKey::kDigest;
  rule.verify = odd == kUnverified ? config::Verify::kNone : config::Verify::kSha256;
  rule.follow_hosts = {"*.cdn.example", "a.example"};
  Finding f({.flags = http::StoredMeta::kWantsPermission, .rule = rule});
  f.fixture->exchange->start();
  REQUIRE(f.fixture->origins.asks.size() == 1);
  std::string location = "Location: http://";
  location += odd == kSameHost ? "a.example" : odd == kOtherHost ? "b.example" : "x.cdn.example";
  location += odd == kOtherBlob ? "/blob" : "/" + kBlobDigest;
  if (has_query) location += "?signed=1";
  location += "\r\n";
  std::string fields;
  if (odd != kNoLocation) fields += location;
  if (odd == kTwoLocations) fields += location;
  f.respond(0, odd == kStatus ? 301 : status, fields);
  // One that is signed may have another name.
  const bool is_allowed = odd == kNone || (odd == kOtherBlob && has_query);
  CHECK(f.is_permitted() == is_allowed);
  CHECK(f.fixture->origins.asks.size() == (is_allowed ? 1 : 2));
  CHECK(f.fixture->ended_as(Outcome::kHit) == (is_allowed ? 1 : 0));
}

TEST_CASE("what is served stale meanwhile is validated once, for nobody", "[exchange][stale]") {
  enum class Case : std::uint8_t { kUsual, kHead, kAlone, kUnderWay, kFailedLately };
  using enum Case;
  const Case which = GENERATE(values({kUsual, kHead, kAlone, kUnderWay, kFailedLately}));
  CAPTURE(static_cast<int>(which));
  config::Rule rule;
  if (which == kAlone) rule.collapse = false;
  Finding f({.method = which == kHead ? "HEAD" : "GET", .age = 100, .swr = 1000, .rule = rule});
  ExchangeFixture& fixture = *f.fixture;
  const RequestContext& request = *fixture.request;
  std::shared_ptr<Transfer> other;
  if (which == kUnderWay) {
    other = std::make_shared<Transfer>(fixture.home, request.hash,
                                       std::make_shared<const std::string>(request.key));
    fixture.inflight.enter(other);
  }
  if (which == kFailedLately) {
    fixture.inflight.refresh_backoff().note_failure(request.hash, fixture.loop->now());
  }
  fixture.exchange->start();
  CHECK(fixture.ended_as(Outcome::kStale) == 1);
  CHECK(f.says("Cache-Status: encore; hit; ttl=-"));
  CHECK(f.says("; detail=stale\r\n"));
  const bool asks = which != kUnderWay && which != kFailedLately;
  CHECK(fixture.stats.background_fetches.get() == (asks ? 1 : 0));
  REQUIRE(fixture.origins.asks.size() == (asks ? 1 : 0));
  if (other) fixture.inflight.remove(*other);
  if (!asks) return;
  CHECK(f.ask().whom == OriginFetchOptions::For::kNobody);
  CHECK(f.ask().validates.object.get() == f.object.get());
  CHECK_FALSE(f.ask().part);
  CHECK(f.ask().content == OriginFetchOptions::Content::kNone);
  CHECK((f.ask().table == OriginFetchOptions::Table::kIn) == (which == kUsual));
  CHECK(f.transfer().is_expected());
  CHECK(fixture.origins.requests[0] == fixture.request);
  // Another would wait for it, or leave it to it.
  const auto second = std::make_shared<Transfer>(fixture.home, request.hash,
                                                 std::make_shared<const std::string>(request.key));
  CHECK_FALSE(fixture.inflight.enter_if_absent(second));
}

TEST_CASE("what must be validated is, for all that are alike", "[exchange][stale]") {
  const bool is_get = GENERATE(true, false);
  Finding f({.method = is_get ? "GET" : "HEAD", .age = 100});
  f.fixture->exchange->start();
  REQUIRE(f.fixture->origins.asks.size() == 1);
  CHECK(f.ask().what == OriginRequestForm::kWhole);
  CHECK(f.ask().whom == OriginFetchOptions::For::kAsker);
  CHECK(f.ask().validates.object.get() == f.object.get());
  CHECK(f.ask().validates.fresh_until == meta_of(*f.object).http.fresh_until);
  CHECK_FALSE(f.ask().part);
  CHECK((f.ask().table == OriginFetchOptions::Table::kIn) == is_get);
  CHECK(f.transfer().is_expected());
  CHECK(f.transfer().can_be_found() == is_get);
  const bool is_stale = GENERATE(true, false);
  const int status = is_stale ? GENERATE(0, 503) : 0;
  const OriginVisit visit{.address = "192.0.2.1:80", .server = "http://a.example"};
  f.transfer().publish_validated({.object = f.object,
                                  .stale = is_stale,
                                  .status = status,
                                  .private_lines = "Set-Cookie: a=b\r\n",
                                  .visit = visit,
                                  .detail = is_stale ? "timeout" : ""});
  const auto record = f.fixture->record();
  CHECK(record["outcome"] == (is_stale ? "stale" : "revalidated"));
  CHECK(record.value("detail", "") == (is_stale ? "timeout" : ""));
  CHECK(record["origin"] == "192.0.2.1:80");
  CHECK(record["server"] == "http://a.example");
  std::string told = "Cache-Status: encore; fwd=stale; ";
  if (!is_stale) told += "fwd-status=304; ";
  if (status != 0) told += "fwd-status=503; ";
  CHECK(f.says(told + "ttl=-"));
  CHECK(f.says(is_stale ? "; detail=stale\r\n" : "; detail=revalidated\r\n"));
  CHECK(f.says("Set-Cookie: a=b\r\n"));
  CHECK_FALSE(f.transfer().has_readers());
}

TEST_CASE("who waits for another's answer takes what is for all, and asks where there is nothing",
          "[exchange][sharing]") {
  enum class Came : std::uint8_t {
    kConfirmed,
    kConfirmedForOne,
    kStale,
    kAnswer,
    kAnswerForOne,
    kFailure,
    kFailureOfOne,
  };
  using enum Came;
  const Came came = GENERATE(values(
      {kConfirmed, kConfirmedForOne, kStale, kAnswer, kAnswerForOne, kFailure, kFailureOfOne}));
  CAPTURE(static_cast<int>(came));
  Finding f({.age = 100});
  ExchangeFixture& fixture = *f.fixture;
  const RequestContext& request = *fixture.request;
  const auto other = std::make_shared<Transfer>(
      fixture.home, request.hash, std::make_shared<const std::string>(request.key),
      Transfer::Requester{.settings = request.runtime->number,
                          .credentials = request.credentials(),
                          .client = request.client});
  fixture.inflight.enter(other);
  fixture.exchange->start();
  CHECK(fixture.origins.asks.empty());
  CHECK(other->has_readers());
  std::string outcome;  // empty: it asks
  switch (came) {
    case kConfirmed:
    case kConfirmedForOne:
      other->publish_validated({.object = f.make_fresh(),
                                .shareable = came == kConfirmed,
                                .private_lines = "Set-Cookie: a=b\r\n"});
      if (came == kConfirmed) outcome = "revalidated";
      break;
    case kStale:
      other->publish_validated({.object = f.object, .stale = true});
      outcome = "stale";
      break;
    case kAnswer:
    case kAnswerForOne: {
      auto response = std::make_shared<SharedResponse>();
      response->head = "HTTP/1.1 203 Told\r\nContent-Length: 0\r\n";
      response->common_bytes = response->head.size();
      response->head += "Set-Cookie: a=b\r\n";
      response->meta = meta_of(*f.make_fresh()).http;
      response->meta.status = 203;
      response->length = 0;
      response->shareable = came == kAnswer;
      other->publish_response(response, {}, Joinable::kToRead);
      if (came == kAnswer) outcome = "collapsed";
      break;
    }
    case kFailure:
    case kFailureOfOne:
      other->publish_failure({.status = 504,
                              .outcome = Outcome::kOriginTimeout,
                              .detail = "timeout",
                              .of_the_client = came == kFailureOfOne});
      if (came == kFailure) outcome = "origin-timeout";
      break;
  }
  fixture.inflight.remove(*other);
  CHECK_FALSE(other->has_readers());
  CHECK(fixture.origins.asks.size() == (outcome.empty() ? 1 : 0));
  if (outcome.empty()) {
    // For itself: it has waited in vain.
    CHECK(f.ask().table == OriginFetchOptions::Table::kNotIn);
    CHECK(f.ask().validates.object.get() == f.object.get());
    CHECK_FALSE(fixture.stream.begun);
    return;
  }
  CHECK(fixture.record()["outcome"] == outcome);
  CHECK(f.says("; collapsed") == (came != kFailure));
  CHECK(f.says("\r\nAge: ") == (came != kFailure));
  CHECK_FALSE(f.says("Set-Cookie"));
}

TEST_CASE("a part that is stored is completed where the whole is asked for", "[exchange][part]") {
  const std::string range = GENERATE(as<std::string>(), "", "Range: bytes=0-1\n");
  Finding f({.fields = range, .flags = http::StoredMeta::kPartial});
  f.fixture->exchange->start();
  REQUIRE(f.fixture->origins.asks.size() == 1);
  CHECK((f.ask().what == OriginRequestForm::kWhole) == range.empty());
  CHECK(f.ask().part.get() == (range.empty() ? f.object.get() : nullptr));
  CHECK_FALSE(f.ask().validates.object);
  f.respond(0, 403, "Content-Length: 0\r\n");
  CHECK(f.says("Cache-Status: encore; fwd=partial"));
}

TEST_CASE("bytes that a connection took with it are not counted", "[exchange][log]") {
  const bool is_cut = GENERATE(true, false);
  Finding f({});
  FakeStream& stream = f.fixture->stream;
  stream.status = ClientStream::Status::kBlocked;
  stream.unsent = 30;
  f.fixture->exchange->start();
  REQUIRE(stream.begun);
  const bool is_lost = GENERATE(true, false);
  if (is_cut) {
    f.fixture->exchange->cut();
  } else {
    f.fixture->exchange->on_gone(
        {.outcome = Outcome::kClientAborted,
         .detail = "reset",
         .unsent = is_lost ? ClientGone::Unsent::kLost : ClientGone::Unsent::kSent});
  }
  const std::uint64_t lost = is_cut || is_lost ? 30 : 0;
  CHECK(f.fixture->record()["bytes"] == stream.sent_bytes() - lost);
  CHECK(f.fixture->record()["outcome"] == (is_cut ? "slow-reader" : "client-aborted"));
  CHECK(f.fixture->stats.slow_readers_cut.get() == (is_cut ? 1 : 0));
  stream.ended = ClientStream::End::kReset;
  stream.response.head = stream.response.head.substr(0, stream.response.head.size() - lost);
}

}  // namespace
}  // namespace encore::server
