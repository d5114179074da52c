// A body on its way: how it is held back where its reader is slow or memory is short, and goes on.
#include "proxy/origin/response_body.h"

#include <chrono>
#include <string>

#include "tests/catch.h"
#include "tests/origin/ballast.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

// More than the sockets between hold, and less than the cache refuses.
constexpr std::size_t kSize = 8'000'000;
constexpr std::size_t kStoredSize = 1'500'000;
constexpr std::uint64_t kBuffer = 256 * 1024;
// Bytes that a read may bring beyond those that a reader may be behind.
constexpr std::uint64_t kOneRead = 2 * net::Loop::kScratchBytes;

// A long response that its reader takes as it likes.
struct Long {
  // `kept_to_join`: bytes that are kept for who might join; 0: nobody can.
  explicit Long(std::string_view control, std::size_t size = kSize, std::uint64_t kept_to_join = 0)
      : world({origin.url()},
              [kept_to_join](config::Config& config) {
                config.limits.transfer_buffer_bytes = kBuffer;
                config.cache.collapse_buffer_bytes = std::max(kBuffer, kept_to_join);
              }),
        reader(world, world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), [kept_to_join] {
          FetchPlan plan;
          plan.whole = true;
          plan.in_table = kept_to_join != 0;
          return plan;
        }()) {
    reader.appetite = 0;
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 200 OK\r\nCache-Control: " + std::string(control) +
               "\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
    for (std::size_t i = 0; i < size; ++i) body += static_cast<char>('a' + i % 23);
    world.run_until(origin, [&] { return !reader.head.empty(); });
  }
  // Sends what the origin can send now and receives it, until nothing moves any more.
  void run() {
    for (int still = 0; still < 20; ++still) {
      const std::size_t taken = origin.offer(std::string_view(body).substr(said));
      said += taken;
      if (taken != 0) still = 0;
      world.run_turn();
    }
  }
  std::uint64_t held() const { return world.store->stats().in_flight_bytes; }
  std::uint64_t read_in() const { return world.stats.bytes_from_origins.get(); }
  void finish() {
    reader.appetite = UINT64_MAX;
    reader.on_transfer();
    while (said != body.size()) run();
    world.run_until(origin, [&] { return reader.is_done(); });
    CHECK(reader.whole);
    CHECK((reader.body == body));
    CHECK(world.fetches.empty());
  }

  Origin origin;
  World world;
  FetchReader reader;
  std::string body;
  std::size_t said = 0;
};

TEST_CASE("a reader that takes nothing holds its origin back, and loses nothing",
          "[origin][response_body]") {
  Long response("no-store");
  response.run();
  CHECK(response.read_in() < kBuffer + 2 * kOneRead);
  CHECK(response.held() < kBuffer + 4 * kOneRead);
  CHECK(response.said < kSize);
  const std::uint64_t before = response.read_in();
  // It goes on once half of it is taken, and not for every byte.
  const std::uint64_t behind = response.held();
  REQUIRE(behind > kBuffer);
  response.reader.take(behind - kBuffer * 3 / 4);
  response.run();
  CHECK(response.read_in() == before);
  response.reader.take(kBuffer / 2);
  response.run();
  CHECK(response.read_in() > before);
  CHECK(response.held() < kBuffer + 4 * kOneRead);
  response.finish();
}

TEST_CASE("time in which its reader is waited for is not the origin's", "[origin][response_body]") {
  Long response("no-store");
  const Nanoseconds limit = config::Timeouts{}.origin_idle;
  response.run();
  response.world.fetches.front()->check_timeouts(response.world.loop->now() + 10 * limit);
  response.world.run_turn();
  REQUIRE(response.world.fetches.size() == 1);
  response.reader.take(UINT64_MAX / 2);
  response.run();
  REQUIRE(response.said == kSize);
  response.finish();
}

TEST_CASE("an origin that brings nothing more is given up in time", "[origin][response_body]") {
  Long response("no-store");
  const Nanoseconds limit = config::Timeouts{}.origin_idle;
  response.reader.appetite = UINT64_MAX;
  response.reader.on_transfer();
  response.origin.say("some");
  response.world.run_until(response.origin, [&] { return response.reader.body == "some"; });
  const MonotonicTime now = response.world.loop->now();
  response.world.fetches.front()->check_timeouts(now + limit - seconds(1));
  response.world.run_turn();
  CHECK_FALSE(response.reader.is_done());
  response.world.fetches.front()->check_timeouts(now + limit);
  response.world.run_until(response.origin, [&] { return response.reader.is_done(); });
  CHECK_FALSE(response.reader.whole);
}

TEST_CASE("what is stored waits for no reader", "[origin][response_body]") {
  Long response("max-age=60", kStoredSize);
  response.run();
  CHECK(response.reader.body.empty());
  CHECK(response.world.stats.stored.get() == 1);
  CHECK(response.world.fetches.empty());
  response.finish();
  CHECK(response.world.stored(response.reader.request()));
}

TEST_CASE("without memory a response waits, tells so, and goes on where there is some",
          "[origin][response_body]") {
  Long response("no-store");
  Ballast ballast(*response.world.store);
  response.reader.appetite = UINT64_MAX;
  response.run();
  REQUIRE(response.world.fetches.size() == 1);
  Fetch& fetch = *response.world.fetches.front();
  REQUIRE(fetch.waits_for_memory());
  CHECK(response.world.waits_for_room > 0);
  CHECK(response.world.stats.memory_waits.get() == 1);
  CHECK(response.said < kSize);
  // Asking again changes nothing where there is none.
  const std::uint64_t before = response.read_in();
  CHECK_FALSE(fetch.retry_memory());
  response.run();
  CHECK(response.read_in() == before);
  SECTION("there is some") {
    ballast.drop(40);
    CHECK(fetch.retry_memory());
    CHECK_FALSE(fetch.waits_for_memory());
    response.finish();
    CHECK(response.world.stats.memory_failures.get() == 0);
  }
  SECTION("it gives way to others") {
    response.world.wastes_bytes = true;
    fetch.give_way();
    response.world.run_until(response.origin, [&] { return response.reader.is_done(); });
    CHECK_FALSE(response.reader.whole);
    CHECK(response.world.stats.memory_failures.get() == 1);
    CHECK(response.world.fetches.empty());
  }
  SECTION("there is none in time") {
    response.world.wastes_bytes = true;
    const Nanoseconds limit = config::Timeouts{}.origin_idle;
    fetch.check_timeouts(response.world.loop->now() + limit - seconds(5));
    response.world.run_turn();
    REQUIRE(response.world.fetches.size() == 1);
    fetch.check_timeouts(response.world.loop->now() + limit);
    response.world.run_until(response.origin, [&] { return response.reader.is_done(); });
    CHECK_FALSE(response.reader.whole);
    CHECK(response.world.stats.memory_failures.get() == 1);
    CHECK(response.world.fetches.empty());
  }
}

TEST_CASE("where memory can be made a response does not wait", "[origin][response_body]") {
  Long response("no-store");
  Ballast ballast(*response.world.store);
  int asked = 0;
  response.world.relieve = [&] {
    ++asked;
    ballast.drop(4);
    return true;
  };
  response.finish();
  CHECK(asked > 0);
  CHECK(response.world.stats.memory_waits.get() == 0);
}

TEST_CASE("for want of memory nothing is kept for who might join", "[origin][response_body]") {
  Long response("max-age=60", kStoredSize, 2 * kStoredSize);
  Ballast ballast(*response.world.store);
  ballast.drop(10);
  response.reader.appetite = UINT64_MAX;
  response.reader.on_transfer();
  response.run();
  // The bytes that the reader has passed are all that there is, and have come free.
  while (!response.world.fetches.empty() && response.world.fetches.front()->waits_for_memory()) {
    REQUIRE(response.world.fetches.front()->retry_memory());
    response.run();
  }
  REQUIRE(response.said == kStoredSize);
  response.finish();
  CHECK(response.world.stats.store_aborts.get() == 1);
}

TEST_CASE("for want of memory a response is no longer stored, but passed on",
          "[origin][response_body]") {
  Long response("max-age=60", kStoredSize);
  Ballast ballast(*response.world.store);
  ballast.drop(20);
  response.finish();
  CHECK(response.world.stats.store_aborts.get() == 1);
  CHECK(response.world.stats.stored.get() == 0);
  CHECK_FALSE(response.world.stored(response.reader.request()));
  CHECK(response.world.kernel->statistics().used_bytes == 0);
}

}  // namespace
}  // namespace encore::server
