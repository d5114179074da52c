// Stored responses that go out on the spot, and the fields that they add to their heads.
#include "proxy/intake/plain_hit.h"

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/intake/intake_world.h"

namespace encore::server {
namespace {

constexpr std::string_view kGetHit = "GET /a HTTP/1.1\nHost: h\n";

std::string written(const IntakeWorld& world, HitForm form = HitForm::kIdentity) {
  const HitLines lines(*world.runtime, world.view, form);
  http::StoredMeta meta;
  meta.lifetime_seconds = 60;
  std::string room(lines.bytes_max(), '\0');
  const std::size_t length = lines.write(meta, MonotonicTime{}, room.data());
  REQUIRE(length <= room.size());
  return room.substr(0, length);
}

}  // namespace

TEST_CASE("a hit says its age, its way and what the cache did", "[intake][hit]") {
  IntakeWorld world;
  (void)world.take<Intake::Start>(kGetHit);
  const std::string via = world.runtime->via_field_11;
  CHECK(written(world) == "Age: 0\r\n" + via + "Cache-Status: encore; hit; ttl=60\r\n");
  CHECK(written(world, HitForm::kVaries) == "Age: 0\r\n" + via +
                                                "Cache-Status: encore; hit; ttl=60\r\n" +
                                                std::string(http::kVaryByCodingField));
}

TEST_CASE("a listener may keep its words back", "[intake][hit]") {
  IntakeWorld world([](config::Config& config) {
    config.listen[0].via = false;
    config.listen[0].cache_status = false;
  });
  (void)world.take<Intake::Start>(kGetHit);
  CHECK(written(world) == "Age: 0\r\n");
}

TEST_CASE("a hit has the fields of its rule and its id", "[intake][hit]") {
  IntakeWorld world([](config::Config& config) {
    config.rule = {{}};
    config.rule[0].path = {"*"};
    config.rule[0].response_add = {"X-By: rule"};
    config.log.request_id = config::RequestIds::kRespond;
  });
  (void)world.take<Intake::Start>(kGetHit);
  world.put();
  (void)world.take<Intake::Hit>(kGetHit);
  CHECK(written(world).ends_with(
      "\r\nX-By: rule\r\nX-Request-Id: " + std::string(world.view.request_id) + "\r\n"));
  CHECK(world.view.request_id.size() == 32);
}

TEST_CASE("the record of a hit is made of its view", "[intake][hit]") {
  IntakeWorld world;
  (void)world.take<Intake::Start>(kGetHit);
  RequestRecord record = record_of(world.view, {.status = 200, .sent_bytes = 30, .body_bytes = 10},
                                   world.listener, world.identity->client());
  CHECK(record.outcome == Outcome::kHit);
  CHECK(record.head == world.view.head);
  CHECK(record.client == &world.identity->client());
  CHECK(record.listener_name == "front");
  CHECK(record.sent_bytes == 30);
  set_unsent(record);
  CHECK(record.outcome == Outcome::kClientAborted);
  CHECK(record.detail == "reset");
  CHECK(record.sent_bytes + record.body_bytes == 0);
}

TEST_CASE("a stored response is a plain hit for as long as it is fresh", "[intake][hit]") {
  IntakeWorld world;
  (void)world.take<Intake::Start>(kGetHit);
  world.put();
  (void)world.take<Intake::Hit>(kGetHit);
  CacheView found = world.found;
  const MonotonicTime now = world.loop->now();
  CHECK(is_plain_hit(world.view, found, *world.runtime, now));
  // By the kernel, which a soft purge has told.
  found.fresh_until = now;
  CHECK_FALSE(is_plain_hit(world.view, found, *world.runtime, now));
  // By its own time.
  found.fresh_until = MonotonicTime::max();
  CHECK_FALSE(is_plain_hit(world.view, found, *world.runtime, now + std::chrono::hours(2)));
  world.view.framing = {.kind = http::BodyKind::kLength, .length = 1};
  CHECK_FALSE(is_plain_hit(world.view, found, *world.runtime, now));
  world.view.framing.length = 0;
  CHECK(is_plain_hit(world.view, found, *world.runtime, now));
  found.object = {};
  CHECK_FALSE(is_plain_hit(world.view, found, *world.runtime, now));
}

}  // namespace encore::server
