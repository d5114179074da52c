// A fetch from its connection to the stored object, in a world without a worker.
#include "proxy/origin/fetch.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "proxy/net/timer.h"
#include "tests/catch.h"
#include "tests/origin/ballast.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

const std::string kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kStorable =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: "
    "5\r\n\r\nhello";

FetchPlan whole() {
  FetchPlan plan;
  plan.whole = true;
  return plan;
}

TEST_CASE("a response is handed on, stored, and its connection kept", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  FetchReader asker(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  CHECK(origin.asked.starts_with("GET /a HTTP/1.1\r\n"));
  origin.say(kStorable);
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK(asker.body == "hello");
  CHECK(asker.whole);
  CHECK(asker.head.find("ETag: \"v1\"") != std::string::npos);
  const store::ObjectRef stored = world.stored(asker.request());
  REQUIRE(stored);
  CHECK(stored->body_size() == 5);
  CHECK(stored_head_of(*stored).find("Content-Length: 5\r\n") != std::string_view::npos);
  CHECK(world.pool.size() == 1);
  CHECK(world.fetches.empty());
  // The next one goes on the same connection.
  FetchReader next(world, world.request(kGet), whole());
  CHECK(world.pool.size() == 0);
  world.run_until_asked(origin);
  CHECK(origin.accepted == 1);
  origin.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  world.run_until(origin, [&] { return next.is_done(); });
  CHECK(world.pool.size() == 0);
}

TEST_CASE("what comes behind a body is no answer, also where it is left in the kernel",
          "[origin][fetch]") {
  // The last read of a large body goes to a place that has space for its rest alone.
  const std::size_t size = GENERATE(as<std::size_t>(), 10, 100'000);
  const std::string more =
      GENERATE(as<std::string>(), "", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  CAPTURE(size, more);
  Origin origin;
  World world({origin.url()});
  world.wastes_bytes = !more.empty();
  FetchReader asker(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
  world.run_until(origin, [&] { return !asker.head.empty(); });
  origin.say(std::string(size, 'x') + more);
  world.run_until(origin, [&] { return world.fetches.empty(); });
  CHECK(world.pool.size() == (more.empty() ? 1 : 0));
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK(asker.whole);
  CHECK(asker.body == std::string(size, 'x'));
}

TEST_CASE("what comes behind a body is no answer, where memory for the body was short",
          "[origin][fetch]") {
  const std::string more = GENERATE(as<std::string>(), "", "HTTP/1.1 200 OK\r\n\r\nevil");
  CAPTURE(more);
  Origin origin;
  World world({origin.url()});
  world.wastes_bytes = !more.empty();
  FetchReader asker(world, world.request(kGet), whole());
  asker.appetite = 0;
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  world.run_until(origin, [&] { return !asker.head.empty(); });
  // A block of memory is begun. There is no other for the end of what one read takes whole.
  const std::string begin(0x2710, 'b');
  origin.say("2710\r\n" + begin + "\r\n");
  asker.take(begin.size());
  world.run_until(origin, [&] { return asker.body == begin; });
  const std::string rest(0xfff3, 'r');
  const std::string end = "fff3\r\n" + rest + "\r\n0\r\n\r\n";
  REQUIRE(end.size() == world.loop->scratch().size());
  {
    const Ballast ballast(*world.store);
    origin.say(end + more);
    world.run_until(origin, [&] { return world.waits_for_room != 0; });
  }
  asker.take(UINT64_MAX - 1);
  std::size_t kept = 0;
  REQUIRE(world.fetches.size() == 1);
  // As an event of a turn, which hears of what is in the kernel in the next one.
  bool had_memory = false;
  net::Timer retry(*world.loop, [&] { had_memory = world.fetches.front()->retry_memory(); });
  retry.start(Nanoseconds::zero());
  world.run_until(origin, [&] {
    kept = std::max(kept, world.pool.size());
    return asker.is_done();
  });
  CHECK(had_memory);
  CHECK(kept == (more.empty() ? 1 : 0));
  CHECK(asker.body == begin + rest);
}

TEST_CASE("however its bytes are cut, a chunked response is whole, and its trailers are stored",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  FetchReader asker(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  const std::string response =
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\nSet-Cookie: no\r\n\r\n";
  for (const char c : response) {
    origin.say(std::string_view(&c, 1));
    world.run_turn();
  }
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK(asker.interim.starts_with("HTTP/1.1 103 Early Hints\r\n"));
  CHECK(asker.body == "hello");
  const store::ObjectRef stored = world.stored(asker.request());
  REQUIRE(stored);
  CHECK(stored->body_size() == 5);
  CHECK(trailers_of(*stored).find("X-T: 1\r\n") != std::string_view::npos);
}

TEST_CASE("what breaks off is stored nowhere, and its room comes back", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto used = world.kernel->statistics().used_bytes;
  FetchReader asker(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 50\r\n\r\nhello");
  world.run_until(origin, [&] { return asker.body == "hello"; });
  origin.close();
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK_FALSE(asker.whole);
  CHECK_FALSE(world.stored(asker.request()));
  CHECK(world.kernel->statistics().used_bytes == used);
  CHECK(world.stats.store_aborts.get() == 1);
  CHECK(world.pool.size() == 0);
}

const std::string kUpgrade =
    "GET /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: raw/1\r\n\r\n";

TEST_CASE("a connection that goes over to another protocol is given away as it is",
          "[origin][fetch][rfc9110][7.8]") {
  Origin origin;
  World world({origin.url()});
  world.wastes_bytes = true;  // on the other protocol
  world.lines.use({.connections = 1});
  {
    FetchReader asker(world, world.request(kUpgrade), {});
    world.run_until_asked(origin);
    CHECK(origin.asked.find("\r\nConnection: upgrade\r\nUpgrade: raw/1\r\n") != std::string::npos);
    origin.say(
        "HTTP/1.1 101 Go\r\nConnection: upgrade, x-hop\r\nUpgrade: raw/1\r\nX-Hop: 1\r\n"
        "X-Kept: 2\r\nContent-Length: 3\r\n\r\nraw bytes");
    world.run_until(origin, [&] { return asker.is_done(); });
    REQUIRE(asker.switched);
    const std::string& head = asker.switched->head;
    CHECK(
        head.starts_with("HTTP/1.1 101 Go\r\nX-Kept: 2\r\nConnection: upgrade\r\n"
                         "Upgrade: raw/1\r\nVia: "));
    CHECK(head.ends_with("\r\n\r\n"));
    REQUIRE(asker.switched->origin != nullptr);
    CHECK(asker.switched->origin->kept_bytes() == 9);
    CHECK(world.fetches.empty());
    CHECK(world.pool.size() == 0);
    CHECK(world.stats.origin_connections.get() == 1);
    CHECK_FALSE(
        world.lines.claim(world.runtime->router.match("", "/")->group().servers()[0].pool_key));
  }
  CHECK(world.stats.origin_connections.get() == 0);
  CHECK(world.lines.size() == 0);
}

TEST_CASE("what answers a request for another protocol is not stored, nor counted",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  int decisions = 0;
  world.on_decision = [&](const cache::Event&) { ++decisions; };
  for (int i = 0; i < 3; ++i) {
    FetchReader asker(world, world.request(kUpgrade), {});
    world.run_until_asked(origin);
    origin.asked.clear();
    origin.say(kStorable);
    world.run_until(origin, [&] { return asker.is_done(); });
    CHECK(asker.body == "hello");
    CHECK_FALSE(world.stored(asker.request()));
  }
  CHECK(world.stats.stored.get() == 0);
}

TEST_CASE("a head that makes no sense is a 502, and says why", "[origin][fetch]") {
  const std::pair<const char*, const char*> rows[] = {
      {"HTTP/1.1 304 Not Modified\r\n\r\n", "unasked-304"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "framing"},
      {"HTTP/1.1 101 Switching\r\n\r\n", "unasked-upgrade"},
  };
  for (const auto& [response, why] : rows) {
    Origin origin;
    World world({origin.url()});
    FetchReader asker(world, world.request(kGet), whole());
    world.run_until_asked(origin);
    origin.say(response);
    world.run_until(origin, [&] { return asker.is_done(); });
    REQUIRE(asker.failure);
    CHECK(asker.failure->status == 502);
    CHECK(asker.failure->detail == why);
  }
}

TEST_CASE("a validation confirms what is stored; an error leaves it", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  FetchReader first(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say(kStorable);
  world.run_until(origin, [&] { return first.is_done(); });
  FetchPlan plan = whole();
  plan.stored = world.stored(first.request());
  REQUIRE(plan.stored);
  const FetchPlan again = plan;
  FetchReader second(world, world.request(kGet), std::move(plan));
  world.run_until_asked(origin);
  CHECK(origin.asked.find("If-None-Match: \"v1\"\r\n") != std::string::npos);
  origin.say("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nX-New: 1\r\n\r\n");
  world.run_until(origin, [&] { return second.is_done(); });
  REQUIRE(second.validated);
  CHECK(second.validated->status == 304);
  const store::ObjectRef fresh = world.stored(second.request());
  REQUIRE(fresh);
  CHECK(stored_head_of(*fresh).find("X-New: 1") != std::string_view::npos);
  CHECK(fresh->body_size() == 5);
  CHECK(world.pool.size() == 1);
  // Another 5xx: it is handed on, and the stored object stays.
  FetchReader third(world, world.request(kGet), again);
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
  world.run_until(origin, [&] { return third.is_done(); });
  CHECK(third.head.starts_with("HTTP/1.1 500"));
  CHECK(world.stored(third.request()));
}

TEST_CASE("a 304 that confirms another is asked again without conditions", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  FetchReader first(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say(kStorable);
  world.run_until(origin, [&] { return first.is_done(); });
  FetchPlan plan = whole();
  plan.stored = world.stored(first.request());
  FetchReader second(world, world.request(kGet), std::move(plan));
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n");
  world.run_until(origin, [&] { return origin.accepted == 2 && !origin.asked.empty(); });
  world.run_until_asked(origin);
  CHECK(origin.asked.find("If-None-Match") == std::string::npos);
  origin.say(kStorable);
  world.run_until(origin, [&] { return second.is_done(); });
  CHECK(second.body == "hello");
}

TEST_CASE("a kept connection that its origin closes is replaced once", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  FetchReader first(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  world.run_until(origin, [&] { return first.is_done(); });
  FetchReader second(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.close();
  world.run_until(origin, [&] { return origin.accepted == 2 && !origin.asked.empty(); });
  CHECK(world.stats.origin_retries.get() == 1);
  origin.say(kStorable);
  world.run_until(origin, [&] { return second.is_done(); });
  CHECK(second.body == "hello");
}

TEST_CASE("what was answered in part is not asked again", "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  world.wastes_bytes = true;  // half a head
  FetchReader asker(world, world.request(kGet), whole());
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 O");
  for (int turn = 0; turn < 20; ++turn) world.run_turn();
  origin.close();
  world.run_until(origin, [&] { return asker.is_done(); });
  REQUIRE(asker.failure);
  CHECK(asker.failure->detail == "origin-closed");
  CHECK(origin.accepted == 1);
}

TEST_CASE("a body goes to the origin as its client brings it, on a connection of its own",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
  FetchPlan plan;
  plan.has_upload = true;
  FetchReader asker(world, request, std::move(plan));
  world.run_until(origin, [&] { return asker.upload_calls != 0; });
  REQUIRE(asker.producer()->accepts_upload());
  asker.producer()->upload("he", false, "");
  CHECK(asker.upload_calls == 1);  // not from within the call
  REQUIRE(asker.producer()->accepts_upload());
  asker.producer()->upload("llo", true, "");
  world.run_until(origin, [&] { return origin.asked.ends_with("\r\n\r\nhello"); });
  // It was answered, and wholly sent: the connection is in step.
  origin.say("HTTP/1.1 204 Done\r\n\r\n");
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK(world.pool.size() == 1);
}

TEST_CASE("an answer before the request's end leaves the connection out of step",
          "[origin][fetch]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
  FetchPlan plan;
  plan.has_upload = true;
  FetchReader asker(world, request, std::move(plan));
  world.run_until(origin, [&] { return asker.upload_calls != 0; });
  asker.producer()->upload("he", false, "");
  origin.say("HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n");
  world.run_until(origin, [&] { return asker.is_done(); });
  CHECK(asker.head.starts_with("HTTP/1.1 413"));
  CHECK(world.pool.size() == 0);
}

TEST_CASE("a fetch that nobody reads ends, and one that is stored is finished", "[origin][fetch]") {
  for (const bool storable : {false, true}) {
    Origin origin;
    World world({origin.url()});
    FetchReader asker(world, world.request(kGet), whole());
    world.run_until_asked(origin);
    origin.say(std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: ") +
               (storable ? "max-age=60" : "no-store") + "\r\n\r\nhe");
    world.run_until(origin, [&] { return asker.body == "he"; });
    asker.leave();
    world.run_turn();
    CHECK(world.fetches.empty() != storable);
    if (!storable) continue;
    origin.say("llo");
    world.run_until(origin, [&] { return world.fetches.empty(); });
    CHECK(world.stored(asker.request()));
  }
}

TEST_CASE("a body that nobody reads is finished for the cache, if it is not too much",
          "[origin][fetch]") {
  constexpr std::size_t kMuch = 10'000;
  const bool background = GENERATE(true, false);
  // A request that nobody waits for ends.
  const bool is_early = GENERATE(true, false);
  const bool leaves_before_head = background && is_early;
  const bool storable = GENERATE(true, false);
  const bool chunked = GENERATE(true, false);
  const std::size_t size = GENERATE(as<std::size_t>(), 8'000, 30'000);
  CAPTURE(background, leaves_before_head, storable, chunked, size);
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.cache.background_finish_bytes = kMuch; });
  world.wastes_bytes = true;
  FetchPlan plan = whole();
  plan.background = background;
  FetchReader asker(world, world.request(kGet), std::move(plan));
  world.run_until_asked(origin);
  if (leaves_before_head) {
    asker.leave();
    world.run_turn();
    REQUIRE(world.fetches.size() == 1);
  }
  const auto say = [&](std::size_t bytes) {
    char length[32] = "";
    if (chunked) (void)std::snprintf(length, sizeof length, "%zx\r\n", bytes);
    origin.say(length + std::string(bytes, 'x') + (chunked ? "\r\n" : ""));
  };
  const auto run = [&] {
    for (int turn = 0; turn < 10; ++turn) world.run_turn();
  };
  origin.say(std::string("HTTP/1.1 200 OK\r\nCache-Control: ") +
             (storable ? "max-age=60" : "no-store") + "\r\n" +
             (chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                      : "Content-Length: " + std::to_string(size) + "\r\n\r\n"));
  say(4'000);
  if (!leaves_before_head) {
    world.run_until(origin, [&] { return asker.body.size() == 4'000; });
    asker.leave();
  }
  run();
  bool goes_on = storable && (background || chunked || size - 4'000 <= kMuch);
  CHECK(world.fetches.empty() == !goes_on);
  if (goes_on) {
    // Nobody knows how many chunks come: as soon as they are too much it ends.
    say(size == 8'000 ? 2'000 : 8'000);
    run();
    goes_on = background || !chunked || size == 8'000;
    CHECK(world.fetches.empty() == !goes_on);
  }
  if (goes_on) {
    say(size == 8'000 ? 2'000 : 18'000);
    if (chunked) origin.say("0\r\n\r\n");
    world.run_until(origin, [&] { return world.fetches.empty(); });
  }
  CHECK(static_cast<bool>(world.stored(asker.request())) == goes_on);
  CHECK(world.stats.store_aborts.get() == (storable && !goes_on ? 1 : 0));
}

TEST_CASE("what nobody reads ends where it turns out too large to be stored", "[origin][fetch]") {
  // One that others wait for, to validate it, and one that they may read.
  const std::string control = GENERATE(as<std::string>(), "no-cache", "max-age=60");
  CAPTURE(control);
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.cache.max_object_bytes = 10'000; });
  FetchPlan plan = whole();
  plan.in_table = true;
  FetchReader asker(world, world.request(kGet), std::move(plan));
  world.run_until_asked(origin);
  origin.say("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: " + control +
             "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  world.run_until(origin, [&] { return asker.body == "hello"; });
  asker.leave();
  world.run_turn();
  CHECK(world.fetches.size() == 1);
  origin.say("4e20\r\n" + std::string(20'000, 'x') + "\r\n");
  world.run_until(origin, [&] { return world.fetches.empty(); });
  CHECK_FALSE(world.stored(asker.request()));
}

}  // namespace
}  // namespace encore::server
