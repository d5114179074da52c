#include "proxy/origin/entry.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/request/request_ids.h"
#include "tests/catch.h"
#include "tests/origin/receive.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using http::StoredMeta;
using std::chrono::seconds;

FetchPlan whole_plan() {
  FetchPlan plan;
  plan.whole = true;
  return plan;
}

const std::string kGetEntry = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TEST_CASE("the id of a request goes to nobody else with its response", "[origin][entry]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  for (const bool has_id : {true, false}) {
    const std::string text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, private=\"X-Own\"\r\n" +
                             (has_id ? std::string(kRequestIdName) + ": abc\r\n" : std::string()) +
                             "Content-Length: 0\r\n\r\n";
    ReceivedResponse received;
    receive(world, text, received);
    const auto stripped = governing_directives(*request, received).stripped_fields;
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(stripped,
                                 [&](const auto& each) { return std::string_view(each) == name; });
    };
    CHECK(has(kRequestIdName) == has_id);
    CHECK(stripped.size() == (has_id ? 2 : 1));
  }
}

TEST_CASE("an object is kept for the longest of what it may still be used for", "[origin][entry]") {
  // Each time limit is none, or one that no other is equal to.
  for (unsigned settings = 0; settings < 8; ++settings) {
    const seconds keep_stale((settings & 1U) != 0 ? 40 : 0);
    const bool serves_stale = (settings & 2U) != 0;
    const seconds if_error((settings & 4U) != 0 ? 50 : 0);
    World world({"http://127.0.0.1:1"}, [&](config::Config& config) {
      config.cache.keep_stale = keep_stale;
      config.cache.serve_stale_on_error = serves_stale;
      config.cache.stale_if_error = if_error;
    });
    const auto request = world.request(kGetEntry);
    ReceivedResponse received;
    received.time = MonotonicTime(seconds(1000));
    for (unsigned facts = 0; facts < 128; ++facts) {
      StoredMeta meta;
      if ((facts & 1U) != 0) meta.swr_seconds = 10;
      if ((facts & 2U) != 0) meta.sie_seconds = 45;
      if ((facts & 4U) != 0) meta.flags |= StoredMeta::kHasEtag;
      if ((facts & 8U) != 0) meta.last_modified = 7;
      if ((facts & 16U) != 0) meta.flags |= StoredMeta::kNeverFresh;
      if ((facts & 32U) != 0) meta.flags |= StoredMeta::kNeverStale;
      meta.fresh_until = received.time + seconds((facts & 64U) != 0 ? 5 : -5);
      const bool has_validator = (facts & 12U) != 0;
      const bool was_fresh = (facts & 16U) == 0;
      std::vector<seconds> uses = {seconds(meta.swr_seconds), seconds(meta.sie_seconds)};
      if (has_validator) uses.push_back(keep_stale);
      if (serves_stale && was_fresh) uses.push_back(keep_stale);
      if (was_fresh && (facts & 32U) == 0) uses.push_back(if_error);
      const MonotonicTime from = (facts & 64U) != 0 ? meta.fresh_until : received.time;
      CAPTURE(settings, facts);
      CHECK(keep_until(*request, received, meta) == from + std::ranges::max(uses));
    }
  }
}

// The windows after complete_meta(), as the configuration's pages say it.
struct Windows {
  std::uint32_t swr = 0;
  std::uint32_t sie = 0;
  bool has_sie = false;
};
Windows windows_of(const StoredMeta& before, const RequestPolicy& policy, bool states_swr) {
  Windows after{before.swr_seconds, before.sie_seconds, before.is(StoredMeta::kHasSie)};
  const bool never_fresh = before.is(StoredMeta::kNeverFresh);
  const bool by_rule = policy.store.freshness.rule.seconds.has_value();
  if (never_fresh && !by_rule) {
    if (policy.swr_seconds) after.swr = std::min(after.swr, *policy.swr_seconds);
    if (policy.sie_seconds) after.sie = std::min(after.sie, *policy.sie_seconds);
    return after;
  }
  if (policy.swr_seconds) after.swr = *policy.swr_seconds;
  if (!policy.swr_seconds && !states_swr && before.swr_seconds == 0) {
    after.swr = policy.swr_seconds_default;
  }
  if (policy.sie_seconds) {
    after.sie = *policy.sie_seconds;
    after.has_sie = true;
  } else if (never_fresh && !after.has_sie) {
    after.sie = policy.stale.error_status_seconds_max;
    after.has_sie = true;
  }
  return after;
}

TEST_CASE("the windows of staleness are the origin's, narrowed or set by the operator",
          "[origin][entry]") {
  World world({"http://127.0.0.1:1"});
  const auto request = world.request(kGetEntry);
  for (unsigned facts = 0; facts < 1024; ++facts) {
    StoredMeta meta;
    if ((facts & 1U) != 0) meta.flags |= StoredMeta::kNeverFresh;
    if ((facts & 2U) != 0) meta.flags |= StoredMeta::kHasSie;
    if ((facts & 4U) != 0) meta.swr_seconds = 20;
    if ((facts & 8U) != 0) meta.sie_seconds = 30;
    RequestPolicy policy = *request->request_policy;
    if ((facts & 16U) != 0) policy.swr_seconds = (facts & 32U) != 0 ? 5 : 6000;
    if ((facts & 64U) != 0) policy.sie_seconds = (facts & 128U) != 0 ? 6 : 7000;
    if ((facts & 256U) != 0) policy.store.freshness.rule.seconds = 0;
    policy.swr_seconds_default = 600;
    policy.stale.error_status_seconds_max = 700;
    ReceivedResponse received;
    received.request_policy = &policy;
    if ((facts & 512U) != 0) received.directives.stale_while_revalidate = 0;
    received.private_origin = (facts & 3U) == 3;
    const Windows expected = windows_of(meta, policy, (facts & 512U) != 0);
    complete_meta(*request, received, meta);
    CAPTURE(facts);
    CHECK(meta.swr_seconds == expected.swr);
    CHECK(meta.sie_seconds == expected.sie);
    CHECK(meta.is(StoredMeta::kHasSie) == expected.has_sie);
    CHECK(meta.is(StoredMeta::kPrivateOrigin) == received.private_origin);
    CHECK_FALSE(meta.is(StoredMeta::kWantsPermission));
  }
}

TEST_CASE("a response under a rule that asks for permission is stored as such", "[origin][entry]") {
  World world({"http://127.0.0.1:1"}, [](config::Config& config) {
    config::Rule& rule = config.rule.emplace_back();
    rule.path = {"/a"};
    rule.authorization = config::AuthorizationUse::kRecheck;
  });
  const auto request = world.request(kGetEntry);
  REQUIRE(request->rule != nullptr);
  ReceivedResponse received;
  received.request_policy = request->request_policy;
  StoredMeta meta;
  complete_meta(*request, received, meta);
  CHECK(meta.is(StoredMeta::kWantsPermission));
}

TEST_CASE("freshness is guessed without a Cookie, or where the operator allows it",
          "[origin][entry]") {
  World world({"http://127.0.0.1:1"});
  for (unsigned facts = 0; facts < 8; ++facts) {
    const bool sends = (facts & 1U) != 0;
    const bool part = (facts & 2U) != 0;
    const bool allowed = (facts & 4U) != 0;
    const auto request = world.request(std::string("GET /a HTTP/1.1\r\nHost: h\r\n") +
                                       (sends ? "Cookie: a=1\r\n" : "") + "\r\n");
    RequestPolicy policy = *request->request_policy;
    policy.store.freshness.heuristic_with_cookie = allowed;
    ReceivedResponse received;
    received.request_policy = &policy;
    received.part_with_cookie = part;
    CAPTURE(facts);
    CHECK(came_with_cookie(*request, received) == (sends || part));
    CHECK((heuristic_for(*request, received) == http::Heuristic::kAllowed) ==
          (allowed || !(sends || part)));
  }
}

// A response in progress, in a world whose rules a reload may change.
struct Reloading {
  static config::Rule rule(std::vector<std::string> ignored) {
    config::Rule rule;
    rule.path = {"/a"};
    rule.ignore = std::move(ignored);
    return rule;
  }
  static void set(config::Config& config, const std::vector<config::Rule>& rules) {
    config.rule.assign(rules.begin(), rules.end());
  }
  explicit Reloading(const std::vector<config::Rule>& before)
      : world({"http://127.0.0.1:1"}, [&](config::Config& config) { set(config, before); }),
        request(world.request(kGetEntry)) {
    receive(world, text, received);
    received.request_policy = request->request_policy;
  }
  void reload(const std::vector<config::Rule>& rules) {
    config::Config config = world.runtime->config;
    set(config, rules);
    auto made = Runtime::create(config, {}, "test");
    REQUIRE(made.has_value());
    world.runtime = *made;
  }
  bool is_overtaken() const { return server::is_overtaken(*world.services, *request, received); }

  World world;
  std::shared_ptr<const RequestContext> request;
  std::string text = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n";
  ReceivedResponse received;
};

TEST_CASE("what a reload no longer lets a rule override is not stored by it", "[origin][entry]") {
  const std::vector<std::string> all = {"no-store",   "private",       "no-cache",
                                        "set-cookie", "authorization", "vary"};
  for (const std::string& each : all) {
    CAPTURE(each);
    Reloading took({Reloading::rule({each})});
    CHECK_FALSE(took.is_overtaken());
    // The same, as another runtime.
    took.reload({Reloading::rule({each})});
    CHECK_FALSE(took.is_overtaken());
    took.reload({Reloading::rule(all)});
    CHECK_FALSE(took.is_overtaken());
    std::vector<std::string> others = all;
    std::erase(others, each);
    took.reload({Reloading::rule(others)});
    CHECK(took.is_overtaken());
    took.reload({});
    CHECK(took.is_overtaken());
    Reloading gave({});
    gave.reload({Reloading::rule({each})});
    CHECK_FALSE(gave.is_overtaken());
  }
}

TEST_CASE("what was requested otherwise than it would be now is not stored", "[origin][entry]") {
  config::Rule changed = Reloading::rule({});
  changed.request_set.emplace_back("X-A: 1");
  Reloading one({});
  one.reload({changed});
  CHECK(one.is_overtaken());
  Reloading other({changed});
  other.reload({changed});
  CHECK_FALSE(other.is_overtaken());
  other.reload({Reloading::rule({})});
  CHECK(other.is_overtaken());
}

TEST_CASE("of two responses of a variant the newer one stays, unless it was purged since",
          "[origin][entry]") {
  World world({"http://127.0.0.1:1"});
  const auto request = world.request(kGetEntry);
  const LatestResponses::Variant variant{.key = request->hash, .number = 0};
  const MonotonicTime now = world.loop->now();
  ReceivedResponse received;
  const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  receive(world, text, received);
  const auto of = [&](http::UnixSeconds date) {
    return InvalidatedSinceRequest(
        *world.services, *request, received, variant,
        {.date = date, .requested = now - seconds(10), .fresh_until = now + seconds(100)});
  };
  CHECK_FALSE(of(1000).is_overtaken());
  of(2000).note();
  CHECK(of(1000).is_overtaken());
  CHECK_FALSE(of(2000).is_overtaken());
  CHECK_FALSE(of(3000).is_overtaken());
  // An older one that is noted does not hide it.
  of(1000).note();
  CHECK(of(1500).is_overtaken());
  // A request from before a purge is overtaken by that; one from behind it by nothing.
  world.inflight.invalidate(request->hash, request->key);
  CHECK(of(3000).is_overtaken());
  received.invalidations_seen = world.inflight.invalidations().count();
  CHECK_FALSE(of(3000).is_overtaken());
  // It was noted before that request, and is gone.
  const InvalidatedSinceRequest later(*world.services, *request, received, variant,
                                      {.date = 1000,
                                       .requested = world.loop->now() + seconds(1),
                                       .fresh_until = now + seconds(100)});
  CHECK_FALSE(later.is_overtaken());
  later.note();
  CHECK(of(900).is_overtaken());
}

TEST_CASE("a newer response that is not stored ends the older one, if it is of the whole",
          "[origin][entry]") {
  struct Row {
    const char* method;
    int status;
    bool is_invalidated;
    bool ends;
  };
  const Row row = GENERATE(values<Row>({{"GET", 200, false, true},
                                        {"GET", 404, false, true},
                                        {"GET", 206, false, false},
                                        {"HEAD", 200, false, false},
                                        {"GET", 200, true, false}}));
  CAPTURE(row.method, row.status, row.is_invalidated);
  Origin origin;
  World world({origin.url()});
  const auto get = world.request(kGetEntry);
  {
    FetchReader reader(world, get, whole_plan());
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx");
    world.run_until(origin, [&] { return reader.is_done(); });
    REQUIRE(world.stored(*get));
  }
  world.run_turn();
  const auto request = world.request(std::string(row.method) + kGetEntry.substr(3));
  ReceivedResponse received;
  const std::string text = "HTTP/1.1 " + std::to_string(row.status) +
                           " Status\r\nContent-Range: bytes 0-0/2\r\nContent-Length: 1\r\n\r\n";
  receive(world, text, received);
  if (row.is_invalidated) world.inflight.invalidate(get->hash, get->key);
  end_older(*world.services, *request, received, SharedResponse());
  CHECK(static_cast<bool>(world.stored(*get)) == !row.ends);
  // One that was requested before it is not stored any more.
  ReceivedResponse late;
  receive(world, text, late);
  late.invalidations_seen = world.inflight.invalidations().count();
  const InvalidatedSinceRequest check(*world.services, *get, late, {.key = get->hash, .number = 0},
                                      {.requested = received.request_time - Nanoseconds(1)});
  CHECK(check.is_overtaken() == row.ends);
}

// A response that is stored in memory and on a disk, which may be opened anew.
struct StoredWithDisk {
  StoredWithDisk() : disks(open()) {
    world.emplace(
        std::vector<std::string>{origin.url()}, [](config::Config&) {},
        [&](cache::KernelOptions& options) { use(options); });
    disks->start(*world->kernel);
    world->services->disks = disks.get();
    request = world->request(kGetEntry);
    FetchReader reader(*world, request, whole_plan());
    world->run_until_asked(origin);
    origin.say(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=6000\r\nETag: \"v\"\r\n"
        "Content-Length: 5\r\n\r\nhello");
    world->run_until(origin, [&] { return reader.is_done(); });
    disks->tick();
    REQUIRE(is_on_disk());
  }
  StoredWithDisk(const StoredWithDisk&) = delete;
  StoredWithDisk& operator=(const StoredWithDisk&) = delete;
  ~StoredWithDisk() { (void)disks->stop({}); }

  std::unique_ptr<disk::Disks> open() const {
    auto opened = disk::Disks::open(
        {.disks = {{.path = directory / "disk", .bytes = 8U << 20U, .segment_bytes = 1U << 20U}},
         .identity_seed = {1, 2},
         .is_inline = true});
    REQUIRE(opened.has_value());
    return std::move(*opened);
  }
  void use(cache::KernelOptions& options) const {
    options.disks = disks->kernel_disks();
    options.identity_seed = {1, 2};
  }
  cache::DiskView find() const {
    cache::DiskView found;
    (void)world->kernel->lookup(cache_key(*request), world->loop->now(), 0, &found);
    return found;
  }
  bool is_on_disk() {
    (void)world->kernel->make_room({.bytes = 1U << 30U, .victims_max = 1000}, world->loop->now());
    return find().place.bytes != 0;
  }
  void restart() {
    disks->tick();
    (void)disks->stop({});
    world->services->disks = nullptr;
    world.reset();
    disks.reset();
    disks = open();
    world.emplace(
        std::vector<std::string>{origin.url()}, [](config::Config&) {},
        [&](cache::KernelOptions& options) { use(options); });
    disks->start(*world->kernel);
    world->services->disks = disks.get();
    for (int turn = 0; turn < 100; ++turn) disks->tick();
    request = world->request(kGetEntry);
  }

  TemporaryDirectory directory;
  Origin origin;
  std::unique_ptr<disk::Disks> disks;
  std::optional<World> world;
  std::shared_ptr<const RequestContext> request;
};

TEST_CASE("a removed object does not come back from its disk, nor is a stale one fresh again",
          "[origin][entry][disk]") {
  enum class Done : std::uint8_t { kNothing, kRemoved, kInvalidated, kStale };
  const Done done = GENERATE(Done::kNothing, Done::kRemoved, Done::kInvalidated, Done::kStale);
  CAPTURE(static_cast<int>(done));
  StoredWithDisk stored;
  World& world = *stored.world;
  switch (done) {
    case Done::kNothing:
      break;
    case Done::kRemoved:
      remove_entry(*world.services, *stored.request, 0);
      break;
    case Done::kInvalidated:
      invalidate_entries(*world.services, cache_key(*stored.request));
      break;
    case Done::kStale:
      mark_entries_stale(*world.services, *stored.request);
      break;
  }
  for (const bool is_new : {false, true}) {
    CAPTURE(is_new);
    if (is_new) stored.restart();
    const bool is_on_disk = stored.is_on_disk();
    if (done != Done::kStale) CHECK(is_on_disk == (done == Done::kNothing));
    const bool is_fresh = is_on_disk && stored.find().fresh_until > stored.world->loop->now();
    CHECK(is_fresh == (done == Done::kNothing));
  }
}

}  // namespace
}  // namespace encore::server
