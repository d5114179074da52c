// How long a fetch waits for its origin: in each of its states until the limit, and not a moment
// less; and for its client never.
#include <string>
#include <utility>

#include "proxy/origin/fetch.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

constexpr Nanoseconds kMoment{1};
constexpr Nanoseconds kResponse = std::chrono::seconds(7);
constexpr Nanoseconds kIdle = std::chrono::seconds(11);

const std::string kGetIt = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kPutIt = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n";

void set_limits(config::Config& config) {
  config.timeouts.origin_response = kResponse;
  config.timeouts.origin_idle = kIdle;
}

// One fetch whose clock the test moves.
struct Waiting {
  Waiting(std::string text, bool has_upload, const std::function<void(config::Config&)>& change)
      : world({origin.url()}, change) {
    FetchPlan plan;
    plan.has_upload = has_upload;
    asker.emplace(world, world.request(text), std::move(plan));
  }
  // Runs until `done`; what is waited for since then began between `from` and `to`.
  void run_until(const std::function<bool()>& done) {
    from = world.loop->now();
    world.run_until(origin, done);
    world.run_turn();
    to = world.loop->now();
  }
  // Whether it has failed once its time limits were looked at.
  bool fails_at(MonotonicTime now) {
    REQUIRE(world.fetches.size() == 1);
    world.fetches.front()->check_timeouts(now);
    world.run_turn();
    return world.fetches.empty();
  }
  void check_limit(Nanoseconds limit) {
    CHECK_FALSE(fails_at(from + limit - kMoment));
    CHECK(fails_at(to + limit));
  }
  void check_never() { CHECK_FALSE(fails_at(to + std::chrono::hours(1000))); }
  // Brings content until the connection takes no more of it.
  void fill() {
    const std::string content(60'000, 'x');
    bool is_full = false;
    while (!is_full) {
      REQUIRE(uploaded + content.size() < 9'000'000);
      asker->producer()->upload(content, false, "");
      uploaded += content.size();
      is_full = !asker->producer()->accepts_upload();
    }
  }

  Origin origin;
  World world;
  std::optional<FetchReader> asker;
  MonotonicTime from;
  MonotonicTime to;
  std::uint64_t uploaded = 0;
};

TEST_CASE("a response that does not begin is waited for until the limit", "[origin][fetch]") {
  Waiting get(kGetIt, false, set_limits);
  get.run_until([&] { return get.origin.asked.ends_with("\r\n\r\n"); });
  get.check_limit(kResponse);
  REQUIRE(get.asker->failure);
  CHECK(get.asker->failure->status == 504);
  CHECK(get.asker->failure->detail == "response-timeout");
  CHECK(get.world.failures(ServerFailure::kSilent) == 1);
}

TEST_CASE("the shorter of two limits for a response holds, and none if neither is set",
          "[origin][fetch]") {
  for (const auto& [response, first_byte, limit] :
       {std::tuple{7, 3, 3}, std::tuple{3, 7, 3}, std::tuple{0, 7, 7}, std::tuple{7, 0, 7},
        std::tuple{0, 0, 0}}) {
    CAPTURE(response, first_byte);
    Waiting get(kGetIt, false, [&](config::Config& config) {
      config.timeouts.origin_response = std::chrono::seconds(response);
      config.upstream.first_byte = std::chrono::seconds(first_byte);
    });
    get.run_until([&] { return get.origin.asked.ends_with("\r\n\r\n"); });
    if (limit == 0) {
      get.check_never();
    } else {
      get.check_limit(std::chrono::seconds(limit));
    }
  }
}

TEST_CASE("a body that stops is waited for until the limit, from its last byte on",
          "[origin][fetch]") {
  Waiting get(kGetIt, false, set_limits);
  get.run_until([&] { return get.origin.asked.ends_with("\r\n\r\n"); });
  get.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
  get.run_until([&] { return get.asker->body == "he"; });
  CHECK_FALSE(get.fails_at(get.from + kIdle - kMoment));
  get.origin.say("l");
  get.run_until([&] { return get.asker->body == "hel"; });
  get.check_limit(kIdle);
  CHECK_FALSE(get.asker->whole);
}

TEST_CASE("a request that its origin takes in pieces has the limit from the last piece on",
          "[origin][fetch]") {
  Waiting put(kPutIt, true, set_limits);
  put.run_until([&] { return put.asker->upload_calls != 0; });
  const auto read = [&](std::size_t bytes) {
    const std::uint64_t before = put.world.stats.bytes_to_origins.get();
    for (int turn = 0; turn < 3000 && put.world.stats.bytes_to_origins.get() == before; ++turn) {
      put.origin.read_some(bytes);
      put.from = put.world.loop->now();
      put.world.run_turn();
      put.to = put.world.loop->now();
    }
    REQUIRE(put.world.stats.bytes_to_origins.get() > before);
  };
  // More than lies in sockets.
  put.asker->producer()->upload(std::string(8'999'000, 'x'), false, "");
  for (int turn = 0; turn < 5; ++turn) put.world.run_turn();
  put.world.run_turn();
  REQUIRE_FALSE(put.asker->producer()->accepts_upload());
  read(100'000);
  REQUIRE_FALSE(put.asker->producer()->accepts_upload());
  CHECK(put.world.stats.bytes_to_origins.get() < 8'999'000);
  put.check_limit(kResponse);
}

TEST_CASE("a connection that does not come about counts for the limit of all of a fetch",
          "[origin][fetch]") {
  Origin silent;
  silent.fall_silent();
  World world({silent.url()},
              [](config::Config& config) { config.upstream.total = std::chrono::seconds(5); });
  const MonotonicTime from = world.loop->now();
  FetchReader asker(world, world.request(kGetIt), {});
  world.run_turn();
  REQUIRE(world.fetches.size() == 1);
  Fetch& fetch = *world.fetches.front();
  fetch.check_timeouts(from + std::chrono::seconds(5) - kMoment);
  CHECK_FALSE(asker.is_done());
  fetch.check_timeouts(world.loop->now() + std::chrono::seconds(5));
  REQUIRE(asker.is_done());
  CHECK(asker.failure->detail == "total-timeout");
  CHECK(world.failures(ServerFailure::kSilent) == 0);
}

TEST_CASE("all of a fetch together has a limit of its own", "[origin][fetch]") {
  for (const int limit : {0, 5}) {
    Waiting get(kGetIt, false, [&](config::Config& config) {
      config.timeouts.origin_response = Nanoseconds(0);
      config.upstream.total = std::chrono::seconds(limit);
    });
    get.run_until([&] { return get.origin.asked.ends_with("\r\n\r\n"); });
    if (limit == 0) {
      get.check_never();
      continue;
    }
    get.check_limit(std::chrono::seconds(limit));
    REQUIRE(get.asker->failure);
    CHECK(get.asker->failure->status == 504);
    CHECK(get.asker->failure->detail == "total-timeout");
    CHECK(get.world.failures(ServerFailure::kSilent) == 1);
  }
}

TEST_CASE("while its client brings content an origin has no limit; then it has",
          "[origin][fetch]") {
  Waiting put(kPutIt, true, set_limits);
  put.run_until([&] { return put.asker->upload_calls != 0; });
  put.check_never();
  // The origin takes no more: it is waited for now.
  put.from = put.world.loop->now();
  put.fill();
  put.to = put.world.loop->now();
  put.check_limit(kResponse);
  REQUIRE(put.asker->failure);
  CHECK(put.asker->failure->detail == "response-timeout");
}

TEST_CASE("what is left of a request behind its response waits for its origin until the limit",
          "[origin][fetch]") {
  for (const bool is_limited : {true, false}) {
    Waiting put(kPutIt, true, [&](config::Config& config) {
      set_limits(config);
      if (!is_limited) config.timeouts.origin_idle = Nanoseconds(0);
    });
    put.run_until([&] { return put.asker->upload_calls != 0; });
    put.asker->producer()->upload("some", false, "");
    put.asker->appetite = 2;  // so that it stays
    put.run_until([&] { return put.origin.asked.ends_with("some"); });
    put.origin.say("HTTP/1.1 202 OK\r\nContent-Length: 2\r\n\r\nok");
    put.run_until([&] { return put.asker->body == "ok"; });
    REQUIRE(put.asker->producer()->takes_rest());
    // Its client pauses: the limit is not the origin's.
    put.check_never();
    put.from = put.world.loop->now();
    put.fill();
    put.to = put.world.loop->now();
    if (!is_limited) {
      put.check_never();
      continue;
    }
    CHECK_FALSE(put.fails_at(put.from + kIdle - kMoment));
    // It takes some more, and then no more.
    put.run_until([&] {
      return put.asker->producer()->accepts_upload() && put.origin.asked.size() > 1'000'000;
    });
    put.from = put.world.loop->now();
    put.fill();
    put.to = put.world.loop->now();
    put.check_limit(kIdle);
    // Its response was whole.
    CHECK_FALSE(put.asker->failure);
  }
}

TEST_CASE("content of a request that goes on behind a begun response counts as motion",
          "[origin][fetch]") {
  Waiting put(kPutIt, true, set_limits);
  put.run_until([&] { return put.asker->upload_calls != 0; });
  put.origin.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
  put.run_until([&] { return put.asker->body == "he"; });
  put.from = put.world.loop->now();
  put.asker->producer()->upload("some", false, "");
  put.to = put.world.loop->now();
  put.run_until([&] { return put.origin.asked.ends_with("some"); });
  CHECK_FALSE(put.fails_at(put.from + kIdle - kMoment));
}

}  // namespace
}  // namespace encore::server
