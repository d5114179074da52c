// Requests in the form for simulated caches.
#include "proxy/exchange/shadow_requests.h"

#include <span>
#include <string>

#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using Served = ShadowTap::Served;

std::unique_ptr<store::Store> some_store() {
  auto store = store::make_memory_store({.limit_bytes = 8 << 20});
  REQUIRE(store);
  return std::move(*store);
}

}  // namespace

TEST_CASE("Each outcome is what it was to the cache, or nothing to it", "[exchange][shadow]") {
  const auto store = some_store();
  const auto object = make_object(*store, {.key = "forward:http://h/"});
  const auto request = some_request("GET http://h/ HTTP/1.1\nHost: h\n");
  const SharedResponse response;
  for (std::size_t i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    CAPTURE(to_string(outcome));
    const auto served = served_as(outcome, {*request, &response, object.get()});
    const OutcomeClass group = class_of(outcome);
    const bool is_hit = group == OutcomeClass::kHit;
    // Also "uncacheable", where the response could have been stored and was not.
    const bool is_miss = group == OutcomeClass::kMiss;
    REQUIRE(served.has_value() == (is_hit || is_miss));
    if (is_miss) CHECK(*served == Served::kMissed);
    if (is_hit) {
      CHECK(*served == (outcome == Outcome::kHit ? Served::kFresh : Served::kValidated));
    }
    // Without what it was answered from there is nothing to tell.
    CHECK_FALSE(served_as(outcome, {*request}).has_value());
  }
}

TEST_CASE("What no other policy could have is not told", "[exchange][shadow]") {
  const auto store = some_store();
  const auto request = some_request("GET http://h/ HTTP/1.1\nHost: h\n");
  SharedResponse response;
  response.reason = http::StoreReason::kPrivate;
  CHECK_FALSE(served_as(Outcome::kCollapsed, {*request, &response}));
  CHECK_FALSE(served_as(Outcome::kUncacheable, {*request, &response}));
  response.reason = http::StoreReason::kOk;
  CHECK(served_as(Outcome::kCollapsed, {*request, &response}));
  response.whole = false;
  CHECK_FALSE(served_as(Outcome::kFirstRequest, {*request, &response}));
  const auto head = some_request("HEAD http://h/ HTTP/1.1\nHost: h\n");
  response.whole = true;
  CHECK_FALSE(served_as(Outcome::kFirstRequest, {*head, &response}));
  http::StoredMeta part;
  part.flags = http::StoredMeta::kPartial;
  const auto partial = make_object(*store, {.key = "forward:http://h/", .http = part});
  CHECK_FALSE(served_as(Outcome::kHit, {*request, nullptr, partial.get()}));
}

TEST_CASE("An object and the response that it was made of are told alike", "[exchange][shadow]") {
  const auto store = some_store();
  http::StoredMeta meta;
  meta.lifetime_seconds = 60;
  const std::string key = "forward:http://h/";
  const auto object = make_object(*store, {.key = key, .http = meta});
  const auto request = some_request("GET http://h/ HTTP/1.1\nHost: h\n");
  REQUIRE(request->key == key);
  SharedResponse response;
  response.head = stored_head_of(*object);
  response.common_bytes = response.head.size();
  response.length = 0;
  response.meta = meta;
  const auto of_object = shadow_request(*object, request->hash, {});
  const auto of_response = shadow_request(response, *request, 0);
  CHECK(of_object.key == of_response.key);
  CHECK(of_object.variant == of_response.variant);
  CHECK(of_object.object_bytes == of_response.object_bytes);
  CHECK(of_object.charge_bytes == of_response.charge_bytes);
  CHECK(of_object.charge_bytes == object->charge());
  CHECK(of_object.fresh_seconds == 60);
  CHECK(of_response.fresh_seconds == 60);
  CHECK(of_response.rule == 0);
  // And so is a rule.
  const cache::AdmissionRule rule{.kind = cache::AdmissionRule::Kind::kNthHit, .parameter = 3};
  response.admission = rule;
  CHECK(shadow_request(response, *request, 0).rule == rule.encoded());
  CHECK(shadow_request(*object, request->hash, rule).rule == rule.encoded());
  // If nobody said a length, the sent bytes are known.
  response.length.reset();
  CHECK(shadow_request(response, *request, 1234).object_bytes == 1234);
  // A response that is never used without validation is not fresh to anybody.
  response.meta.flags = http::StoredMeta::kNoCache;
  CHECK(shadow_request(response, *request, 0).fresh_seconds == 0);
}

TEST_CASE("An object on disk alone is told as if it lay in memory", "[exchange][shadow]") {
  const auto store = some_store();
  const std::string key = "forward:http://h/";
  const std::string body(3'000'000, 'b');
  const LargeBody parts{.number = 1, .length = body.size()};
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n";
  const std::string text = head + write_large_body(parts);
  ObjectMeta meta;
  meta.http.head_bytes = static_cast<std::uint32_t>(head.size());
  meta.primary_bytes = static_cast<std::uint32_t>(key.size());
  meta.large_bytes = kLargeBodyBytes;
  const store::ObjectParts made = {
      .key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = text};
  const auto alone = store->make_small(made, {});
  REQUIRE(alone);
  auto writer = store->reserve({.key = key, .length = body.size(), .body = {}});
  REQUIRE(writer);
  REQUIRE((*writer)->body()->append(std::as_bytes(std::span(body))) == body.size());
  (*writer)->body()->complete();
  const auto whole = (*writer)->commit(made);
  REQUIRE(whole);
  REQUIRE(is_on_disk_alone(**alone));
  REQUIRE_FALSE(is_on_disk_alone(**whole));
  for (const auto* const object : {&**alone, &**whole}) {
    const auto told = shadow_request(*object, {}, {});
    CHECK(told.object_bytes == body.size());
    CHECK(told.charge_bytes == (*whole)->charge());
  }
}

}  // namespace encore::server
