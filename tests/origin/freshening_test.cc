// Updates of a stored response by a validation's answer, or a HEAD's.
#include "proxy/origin/freshening.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "tests/catch.h"
#include "tests/origin/ballast.h"
#include "tests/origin/receive.h"
#include "tests/origin/world.h"
#include "tests/temporary_directory.h"
#include "tests/transfer/made_form.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

const std::string kGetGerman = "GET /a HTTP/1.1\r\nHost: h\r\nAccept-Language: de\r\n\r\n";

// A response is stored; then something is said of it.
struct StoredOne {
  explicit StoredOne(std::string_view fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n",
                     bool large = false, disk::Disks* disks = nullptr,
                     std::string_view status = "200 OK", const std::string& asked = kGetGerman)
      : world({origin.url()}, {},
              [disks](cache::KernelOptions& options) {
                if (disks == nullptr) return;
                options.disks = disks->kernel_disks();
                options.identity_seed = {1, 2};
              }),
        request(world.request(asked)),
        body(large ? 100'000 : 5, 'x') {
    if (disks != nullptr) disks->start(*world.kernel);
    world.services->disks = disks;
    FetchPlan plan;
    plan.whole = true;
    FetchReader reader(world, request, std::move(plan));
    world.run_until_asked(origin);
    origin.say("HTTP/1.1 " + std::string(status) + "\r\nX-Old: 1\r\nSurrogate-Key: old\r\n" +
               std::string(fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
               body);
    world.run_until(origin, [&] { return reader.is_done(); });
    old = world.stored(*request);
    REQUIRE(old);
  }
  Confirmed freshen(std::string text) {
    answer = std::move(text);
    receive(world, answer, received);
    return freshen_stored(*world.services, *request, received, old);
  }
  void head(std::string text) {
    answer = std::move(text);
    receive(world, answer, received, http::Method::kHead);
    update_by_head(*world.services, *request, received, old, http::ValidatorStrength::kUsual);
  }
  // Until when the cache holds it for fresh.
  Nanoseconds fresh_for() { return world.lookup(*request).fresh_until - world.loop->now(); }

  Origin origin;
  World world;
  std::shared_ptr<const RequestContext> request;
  std::string body;
  store::ObjectRef old;
  std::string answer;
  ReceivedResponse received;
};

TEST_CASE("a 304 renews fields and lifetime, and the bytes stay", "[origin][freshening]") {
  const bool large = GENERATE(false, true);
  StoredOne one("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", large);
  CHECK(one.fresh_for() <= seconds(60));
  const Confirmed confirmed = one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\nX-New: 2\r\n"
      "X-Old: 2\r\n\r\n");
  CHECK(confirmed.stays);
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(now.payload() == confirmed.object.payload());
  const std::string_view head = stored_head_of(*now);
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.find("X-New: 2\r\n") != std::string_view::npos);
  CHECK(head.find("X-Old: 2\r\n") != std::string_view::npos);
  CHECK(head.find("X-Old: 1\r\n") == std::string_view::npos);
  CHECK(tags_of(*now) == "old\n");
  CHECK(now->body_size() == one.body.size());
  CHECK(now->body() == one.old->body());
  CHECK(one.fresh_for() > seconds(500));
  CHECK(meta_of(*now).plain == 1);
  CHECK(one.world.kernel->statistics().objects == 1);
  CHECK(one.world.kernel->statistics().used_bytes ==
        now->charge() + one.world.kernel->charge_of_entry());
}

TEST_CASE(
    "without room for its new head a response is told as the 304 left it, and stays as it was",
    "[origin][freshening]") {
  const bool large = GENERATE(false, true);
  StoredOne one("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", large);
  Confirmed confirmed;
  {
    const Ballast ballast(*one.world.store);
    // The rest of a block, too.
    const std::string page(4096, 'p');
    std::vector<store::BodyRef> rest;
    do {
      auto made = one.world.store->make_body({});
      REQUIRE(made);
      rest.push_back(std::move(*made));
    } while (rest.back()->append(std::as_bytes(std::span(page))) == page.size());
    // Longer than any slot.
    const std::string filling(25'000, 'f');
    confirmed = one.freshen(
        "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\nX-Old: 2\r\n"
        "X-Filling: " +
        filling + "\r\n\r\n");
    for (const store::BodyRef& body : rest) body->abort();
  }
  CHECK_FALSE(confirmed.stays);
  CHECK(confirmed.object.get() == one.old.get());
  REQUIRE(confirmed.unstored);
  const HeadParts told{.meta = confirmed.unstored->meta, .head = confirmed.unstored->head};
  CHECK(told.stored_head().find("X-Old: 2\r\n") != std::string_view::npos);
  CHECK(told.stored_head().find("X-Old: 1\r\n") == std::string_view::npos);
  CHECK(told.tags() == "old\n");
  CHECK(told.meta.http.fresh_until > meta_of(*one.old).http.fresh_until);
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(now.payload() == one.old.payload());
  CHECK(stored_head_of(*now).find("X-Old: 1\r\n") != std::string_view::npos);
}

// A response that is stored in memory and on a disk.
struct StoredOnDisk {
  StoredOnDisk()
      : disks(open(directory / "disk")),
        one("Cache-Control: max-age=6000\r\nETag: \"v1\"\r\n", false, disks.get()) {
    disks->tick();
  }
  StoredOnDisk(const StoredOnDisk&) = delete;
  StoredOnDisk& operator=(const StoredOnDisk&) = delete;
  // While what uses them is still there.
  ~StoredOnDisk() { (void)disks->stop({}); }

  static std::unique_ptr<disk::Disks> open(const std::filesystem::path& path) {
    auto opened = disk::Disks::open(
        {.disks = {{.path = path, .bytes = 8U << 20U, .segment_bytes = 1U << 20U}},
         .identity_seed = {1, 2},
         .is_inline = true});
    REQUIRE(opened.has_value());
    return std::move(*opened);
  }
  MonotonicTime now() const { return one.world.loop->now(); }
  cache::Kernel& kernel() { return *one.world.kernel; }
  cache::Key key() const { return {one.request->hash, one.request->key}; }
  cache::DiskView find() {
    cache::DiskView found;
    (void)kernel().lookup(key(), now(), 0, &found);
    return found;
  }
  void leave_memory() {
    (void)kernel().make_room({.bytes = 1U << 30U, .victims_max = 1000}, now());
  }
  Confirmed confirm() {
    return one.freshen(
        "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60000\r\nETag: \"v1\"\r\n"
        "X-Old: 2\r\n\r\n");
  }

  TemporaryDirectory directory;
  std::unique_ptr<disk::Disks> disks;
  StoredOne one;
};

TEST_CASE("a record behind what was freshened in memory is validated before it is used again",
          "[origin][freshening]") {
  StoredOnDisk on_disk;
  (void)on_disk.confirm();
  CHECK(on_disk.kernel().lookup(on_disk.key(), on_disk.now(), 0).state ==
        cache::LookupState::kFresh);
  on_disk.leave_memory();
  const cache::DiskView found = on_disk.find();
  REQUIRE(found.place.bytes != 0);
  CHECK(found.fresh_until <= on_disk.now());
  CHECK(found.keep_until > on_disk.now());
}

TEST_CASE("what lies on disk alone is not fresh where there is no room for its new head",
          "[origin][freshening]") {
  const bool has_room = GENERATE(true, false);
  StoredOnDisk on_disk;
  cache::Kernel& kernel = on_disk.kernel();
  const cache::Key key = on_disk.key();
  on_disk.leave_memory();
  REQUIRE(on_disk.find().place.bytes != 0);
  CHECK(kernel.mark_stale(key, on_disk.now()) != 0);
  // An object on its way cannot be evicted, and evicts all else.
  std::uint64_t others = 0;
  for (const std::uint64_t step : {500'000U, 1'000U, 1U}) {
    while (kernel.reserve(key, step, on_disk.now()) == cache::ReserveOutcome::kReserved) {
      others += step;
    }
  }
  REQUIRE(kernel.statistics().objects == 0);
  CHECK(on_disk.find().fresh_until <= on_disk.now());
  if (has_room) kernel.abort(key, std::exchange(others, 0), on_disk.now());
  const Confirmed confirmed = on_disk.confirm();
  CHECK(confirmed.stays == has_room);
  CHECK(stored_head_of(*confirmed.object).find("X-Old: 2\r\n") != std::string_view::npos);
  cache::DiskView found;
  const cache::LookupState state = kernel.lookup(key, on_disk.now(), 0, &found).state;
  CHECK((state == cache::LookupState::kFresh || found.fresh_until > on_disk.now()) == has_room);
  if (others != 0) kernel.abort(key, others, on_disk.now());
}

TEST_CASE("tags that a 304 brings take the place of those there were", "[origin][freshening]") {
  StoredOne one;
  (void)one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n"
      "Surrogate-Key: new\r\n\r\n");
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(tags_of(*now) == "new\n");
}

TEST_CASE("a 304 that forbids storing ends what is stored, but answers who asked",
          "[origin][freshening]") {
  StoredOne one;
  const Confirmed confirmed =
      one.freshen("HTTP/1.1 304 Not Modified\r\nCache-Control: no-store\r\nETag: \"v1\"\r\n\r\n");
  CHECK_FALSE(confirmed.stays);
  REQUIRE(confirmed.object);
  CHECK(confirmed.object->inline_body() == one.body);
  CHECK_FALSE(one.world.stored(*one.request));
  CHECK(one.world.kernel->statistics().used_bytes == 0);
}

TEST_CASE("a 304 that names other selecting fields moves it to another variant",
          "[origin][freshening]") {
  StoredOne one;
  const Confirmed confirmed = one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n"
      "Vary: Accept-Language\r\n\r\n");
  CHECK(confirmed.stays);
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(names_of(*now) == "accept-language");
  CHECK_FALSE(variant_key_of(*now).empty());
  CHECK(primary_key_of(*now) == one.request->key);
  CHECK(meta_of(*now).variant != meta_of(*one.old).variant);
  CHECK(one.world.kernel->statistics().objects == 1);
  CHECK(one.world.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE("a 304 that an invalidation has overtaken freshens nothing", "[origin][freshening]") {
  StoredOne one;
  one.answer = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n\r\n";
  receive(one.world, one.answer, one.received);
  one.world.inflight.invalidate(one.request->hash, one.request->key);
  (void)freshen_stored(*one.world.services, *one.request, one.received, one.old);
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(meta_of(*now).http.fresh_until == meta_of(*one.old).http.fresh_until);
}

TEST_CASE("a 304 freshens nothing that came since it was requested", "[origin][freshening]") {
  StoredOne one;
  one.answer = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n\r\n";
  receive(one.world, one.answer, one.received);
  const bool came = GENERATE(true, false);
  if (came) {
    one.world.inflight.latest_responses().note(
        {.key = one.request->hash, .number = meta_of(*one.old).variant},
        {.date = http::kNoDate, .requested = one.received.request_time},
        one.received.request_time + std::chrono::seconds(1));
  }
  (void)freshen_stored(*one.world.services, *one.request, one.received, one.old);
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK((meta_of(*now).http.fresh_until == meta_of(*one.old).http.fresh_until) == came);
}

TEST_CASE("what was invalidated as it moved to another variant is not stored",
          "[origin][freshening]") {
  StoredOne one;
  one.world.on_decision = [&](const cache::Event& event) {
    if (event.kind != cache::EventKind::kRemove) return;
    one.world.inflight.invalidate(one.request->hash, one.request->key);
  };
  (void)one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n"
      "Vary: Accept-Language\r\n\r\n");
  CHECK_FALSE(one.world.stored(*one.request));
  CHECK(one.world.kernel->statistics().used_bytes == 0);
}

TEST_CASE("what a private address has confirmed is stored as such", "[origin][freshening]") {
  StoredOne one;
  one.received.private_origin = true;
  (void)one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n\r\n");
  const store::ObjectRef now = one.world.stored(*one.request);
  REQUIRE(now);
  CHECK(meta_of(*now).http.is(http::StoredMeta::kPrivateOrigin));
}

TEST_CASE("what the cache has let go of meanwhile still answers who asked",
          "[origin][freshening]") {
  StoredOne one;
  one.world.kernel->remove({one.request->hash, one.request->key}, meta_of(*one.old).variant,
                           one.world.loop->now());
  const Confirmed confirmed = one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n\r\n");
  REQUIRE(confirmed.object);
  CHECK(confirmed.object->inline_body() == one.body);
  CHECK(one.world.kernel->statistics().reserved_bytes == 0);
}

TEST_CASE(
    "a HEAD's 200 freshens what it is of and ends the freshness of what it is not; another status "
    "changes nothing",
    "[origin][freshening]") {
  enum class Then : std::uint8_t { kFreshened, kStale, kAsBefore };
  struct Row {
    const char* answer;
    Then then;
  };
  const Row row = GENERATE(values<Row>({
      {"200 OK\r\nETag: \"v1\"\r\nContent-Length: 5\r\n", Then::kFreshened},
      {"200 OK\r\nETag: \"v2\"\r\nContent-Length: 5\r\n", Then::kStale},
      {"200 OK\r\nETag: \"v1\"\r\nContent-Length: 6\r\n", Then::kStale},
      {"200 OK\r\nContent-Length: 5\r\n", Then::kFreshened},
      {"203 Told\r\nETag: \"v1\"\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"204 No Content\r\nETag: \"v1\"\r\n", Then::kAsBefore},
      {"206 Part\r\nETag: \"v2\"\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"301 Moved\r\nETag: \"v2\"\r\nContent-Length: 0\r\n", Then::kAsBefore},
      {"404 Not Found\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"404 Not Found\r\nETag: \"v2\"\r\nContent-Length: 6\r\n", Then::kAsBefore},
      {"410 Gone\r\nETag: \"v1\"\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"500 No\r\nETag: \"v2\"\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"501 No\r\nContent-Length: 5\r\n", Then::kAsBefore},
      {"503 Out\r\nContent-Length: 5\r\n", Then::kAsBefore},
  }));
  CAPTURE(row.answer);
  StoredOne one;
  const Nanoseconds before = one.fresh_for();
  one.head("HTTP/1.1 " + std::string(row.answer) + "Cache-Control: max-age=600\r\n\r\n");
  REQUIRE(one.world.stored(*one.request));
  switch (row.then) {
    case Then::kFreshened:
      CHECK(one.fresh_for() > seconds(500));
      break;
    case Then::kStale:
      CHECK(one.fresh_for() <= seconds(0));
      break;
    case Then::kAsBefore:
      CHECK(one.fresh_for() > seconds(0));
      CHECK(one.fresh_for() <= before);
      break;
  }
  CHECK(one.world.stored(*one.request)->inline_body() == one.body);
}

TEST_CASE("a HEAD of the same status as a stored error changes nothing either",
          "[origin][freshening]") {
  StoredOne one("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", false, nullptr, "404 Not Found");
  const Nanoseconds before = one.fresh_for();
  one.head("HTTP/1.1 404 Not Found\r\nETag: \"v1\"\r\nCache-Control: max-age=600\r\n\r\n");
  CHECK(one.fresh_for() <= before);
}

TEST_CASE("a validation gives no guessed freshness where the origin saw a Cookie",
          "[origin][freshening]") {
  const std::string dated = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  const std::string cookie = "GET /a HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\n\r\n";
  const std::string confirms = "HTTP/1.1 304 Not Modified\r\n" + dated + "X-New: 1\r\n\r\n";
  SECTION("as it was stored") {
    StoredOne one(dated, false, nullptr, "200 OK", cookie);
    CHECK(meta_of(*one.old).http.is(http::StoredMeta::kNeverFresh));
    one.request = one.world.request(kGetGerman);
    CHECK(one.freshen(confirms).stays);
    const store::ObjectRef now = one.world.stored(*one.request);
    REQUIRE(now);
    CHECK(meta_of(*now).http.is(http::StoredMeta::kWithCookie));
    CHECK(meta_of(*now).http.is(http::StoredMeta::kNeverFresh));
    // A stated lifetime is another thing.
    one.old = now;
    CHECK(one.freshen("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\n\r\n").stays);
    CHECK(one.fresh_for() > seconds(500));
  }
  SECTION("as it is validated") {
    StoredOne one(dated);
    CHECK_FALSE(meta_of(*one.old).http.is(http::StoredMeta::kNeverFresh));
    one.request = one.world.request(cookie);
    const Confirmed confirmed = one.freshen(confirms);
    CHECK_FALSE(confirmed.stays);
    CHECK(stored_head_of(*confirmed.object).find("X-New: 1\r\n") != std::string_view::npos);
    const store::ObjectRef now = one.world.stored(*one.request);
    REQUIRE(now);
    CHECK(now.payload() == one.old.payload());
    CHECK(one.fresh_for() > seconds(500));
    // A HEAD's 200 neither.
    one.head("HTTP/1.1 200 OK\r\n" + dated + "X-New: 1\r\nContent-Length: 5\r\n\r\n");
    CHECK(one.world.stored(*one.request).payload() == one.old.payload());
    // One that forbids keeping it does so for all.
    (void)one.freshen("HTTP/1.1 304 Not Modified\r\nCache-Control: no-store\r\n\r\n");
    CHECK_FALSE(one.world.stored(*one.request));
  }
}

TEST_CASE("a HEAD's length alone gives no freshness to what never was fresh",
          "[origin][freshening]") {
  StoredOne one("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n");
  one.head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=600\r\n\r\n");
  CHECK(one.fresh_for() <= seconds(0));
  one.head(
      "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 5\r\nCache-Control: max-age=600\r\n\r\n");
  CHECK(one.fresh_for() > seconds(500));
}

TEST_CASE("trailers and tags of what is freshened stay behind its new head",
          "[origin][freshening]") {
  Origin origin;
  World world({origin.url()});
  const auto request = world.request(kGetGerman);
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Type: a/b\r\n"
      "Surrogate-Key: old\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n");
  world.run_until(origin, [&] { return reader.is_done(); });
  const store::ObjectRef old = world.stored(*request);
  REQUIRE(old);
  ReceivedResponse received;
  const std::string text =
      "HTTP/1.1 304 Same\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\nX-Long: " +
      std::string(300, 'x') + "\r\n\r\n";
  receive(world, text, received);
  CHECK(freshen_stored(*world.services, *request, received, old).stays);
  const store::ObjectRef now = world.stored(*request);
  REQUIRE(now);
  CHECK(trailers_of(*now) == "X-T: 1\r\n");
  CHECK(tags_of(*now) == "old\n");
  CHECK(content_type_of(*now) == "a/b");
  CHECK(stored_head_of(*now).find("X-Long: ") != std::string_view::npos);
  CHECK(meta_of(*now).variant == meta_of(*old).variant);
  CHECK(now->key() == old->key());
}

TEST_CASE("a freshened response keeps its coded forms, unless its new head forbids them",
          "[origin][freshening]") {
  const bool is_forbidden = GENERATE(false, true);
  Origin origin;
  World world({origin.url()},
              [](config::Config& config) { config.compression.codings = {"gzip"}; });
  const auto request = world.request(kGetGerman);
  FetchPlan plan;
  plan.whole = true;
  FetchReader reader(world, request, std::move(plan));
  world.run_until_asked(origin);
  origin.say(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n"
      "Content-Type: text/plain\r\nContent-Length: 5000\r\n\r\n" +
      std::string(5000, 'x'));
  world.run_until(origin, [&] { return reader.is_done(); });
  const store::ObjectRef old = world.stored(*request);
  REQUIRE(old);
  const std::size_t number = coding::number_of(coding::Coding::kGzip);
  REQUIRE(old->add_form(number, made_form(*world.store, *old, coding::Coding::kGzip, "coded")));
  ReceivedResponse received;
  const std::string text = "HTTP/1.1 304 Same\r\nCache-Control: max-age=600" +
                           std::string(is_forbidden ? ", no-transform" : "") +
                           "\r\nETag: \"v1\"\r\n\r\n";
  receive(world, text, received);
  CHECK(freshen_stored(*world.services, *request, received, old).stays);
  const store::ObjectRef now = world.stored(*request);
  REQUIRE(now);
  CHECK((now->form(number) != nullptr) == !is_forbidden);
  // A form is an object of its own, which the kernel does not count.
  (void)world.kernel->make_room({.bytes = 1U << 30U, .victims_max = 10}, world.loop->now());
}

TEST_CASE("a 304 by whose selecting fields its request would select nothing ends what is stored",
          "[origin][freshening]") {
  const std::size_t bytes = GENERATE(as<std::size_t>(), 10, 5000);
  const std::string asked =
      "GET /a HTTP/1.1\r\nHost: h\r\nX-Long: " + std::string(bytes, 'x') + "\r\n\r\n";
  StoredOne one("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", false, nullptr, "200 OK", asked);
  const Confirmed confirmed = one.freshen(
      "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"v1\"\r\n"
      "Vary: X-Long\r\n\r\n");
  CHECK(confirmed.stays == (bytes == 10));
  CHECK(static_cast<bool>(one.world.stored(*one.request)) == (bytes == 10));
}

TEST_CASE("a response that a HEAD shows to be another ends later than what comes since",
          "[origin][freshening]") {
  const std::string etag = GENERATE(as<std::string>(), "v1", "v2");
  StoredOne one;
  one.head("HTTP/1.1 200 OK\r\nETag: \"" + etag + "\"\r\nContent-Length: 5\r\n\r\n");
  // A validation that was requested before brings no freshness back.
  one.received.request_time -= seconds(5);
  one.received.time -= seconds(5);
  const bool is_later = one.world.inflight.latest_responses().has_since(
      {.key = one.request->hash, .number = meta_of(*one.old).variant}, one.received.request_time);
  CHECK(is_later);
  CHECK((one.fresh_for() <= seconds(0)) == (etag == "v2"));
}

}  // namespace
}  // namespace encore::server
