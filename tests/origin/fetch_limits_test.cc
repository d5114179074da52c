// How long a fetch waits for its origin: in each of its states until the limit, and not a moment
// less; and for its client never.
#include <string>
#include <utility>

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

TEST_CASE("all of a fetch together has a limit of its own", "[origin][fetch]") {
  for (const int seconds : {0, 5}) {
    Waiting get(kGetIt, false, [&](config::Config& config) {
      config.timeouts.origin_response = Nanoseconds(0);
      config.upstream.total = std::chrono::seconds(seconds);
    });
    get.run_until([&] { return get.origin.asked.ends_with("\r\n\r\n"); });
    if (seconds == 0) {
      get.check_never();
      continue;
    }
    get.check_limit(std::chrono::seconds(seconds));
    REQUIRE(get.asker->failure);
    CHECK(get.asker->failure->status == 504);
    CHECK(get.asker->failure->detail == "total-timeout");
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

}  // namespace
}  // namespace encore::server
