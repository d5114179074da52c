// The way of a response into the cache: what it takes, and that it comes back.
#include "proxy/origin/store_writer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "cache/charge.h"
#include "proxy/http/stored_meta.h"
#include "tests/catch.h"
#include "tests/origin/ballast.h"
#include "tests/origin/receive.h"
#include "tests/origin/world.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

using Result = StoreWriter::Result;

constexpr std::uint64_t kMaxObject = 1U << 20U;

struct Storing {
  explicit Storing(std::string_view framing)
      : world({"http://127.0.0.1:1"},
              [](config::Config& config) { config.cache.max_object_bytes = kMaxObject; }),
        request(world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")),
        text("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n" +
             std::string(framing) + "\r\n"),
        writer(*world.services, *request) {
    receive(world, text, received);
    response.meta = http::make_stored_meta(received.head, received.directives, {.seconds = 60},
                                           received.exchange());
    writer.allow(received, response);
    auto made = world.store->make_body({});
    REQUIRE(made.has_value());
    body = std::move(*made);
  }
  cache::KernelStatistics kernel() const { return world.kernel->statistics(); }
  void append(std::size_t bytes) {
    const std::string content(bytes, 'x');
    REQUIRE(body->append(std::as_bytes(std::span(content))) == bytes);
  }

  World world;
  std::shared_ptr<const RequestContext> request;
  std::string text;
  ReceivedResponse received;
  SharedResponse response;
  StoreWriter writer;
  store::BodyRef body;
};

TEST_CASE("what is stored is found with its head and body, and nothing stays reserved",
          "[origin][store]") {
  // A small body goes into the object's slot, a larger one lies next to it.
  const std::size_t size = GENERATE(0U, 5U, 300'000U);
  Storing storing("Content-Length: " + std::to_string(size) + "\r\n");
  REQUIRE(storing.writer.begin(*storing.body, size));
  CHECK(storing.writer.is_under_way());
  CHECK(storing.kernel().reserved_bytes > size);
  storing.append(size);
  storing.body->complete();
  CHECK((storing.writer.commit(storing.body, {}) == Result::kStored));
  CHECK_FALSE(storing.writer.is_under_way());
  const store::ObjectRef stored = storing.world.stored(*storing.request);
  REQUIRE(stored);
  CHECK(stored->body_size() == size);
  CHECK((stored->body() == nullptr) == (size < 100));
  CHECK(stored_head_of(*stored).find("ETag: \"v1\"\r\n") != std::string_view::npos);
  CHECK(meta_of(*stored).plain == 1);
  CHECK(storing.kernel().reserved_bytes == 0);
  CHECK(storing.kernel().used_bytes == stored->charge() + storing.world.kernel->charge_of_entry());
  CHECK(storing.world.stats.stored.get() == 1);
  CHECK(storing.world.stats.stored_bytes.get() == stored->charge());
}

TEST_CASE("what is stopped leaves nothing, and is stopped once", "[origin][store]") {
  Storing storing("Content-Length: 500000\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 500'000));
  CHECK(storing.kernel().reserved_bytes > 500'000);
  CHECK(storing.writer.stop(storing.body.get()));
  CHECK(storing.kernel().used_bytes == 0);
  CHECK_FALSE(storing.writer.may_store());
  CHECK_FALSE(storing.writer.stop(storing.body.get()));
  CHECK(storing.world.stats.store_aborts.get() == 1);
  storing.body->abort();
}

TEST_CASE("an object may be as large as is configured, and no larger", "[origin][store]") {
  const std::uint64_t size = GENERATE(as<std::uint64_t>(), kMaxObject, kMaxObject + 1);
  const bool fits = size == kMaxObject;
  CAPTURE(size);
  SECTION("by its length") {
    Storing storing("Content-Length: " + std::to_string(size) + "\r\n");
    CHECK(storing.writer.begin(*storing.body, size) == fits);
    CHECK(storing.writer.is_under_way() == fits);
    storing.writer.stop(storing.body.get());
    CHECK(storing.kernel().used_bytes == 0);
    storing.body->abort();
  }
  SECTION("as it grows") {
    Storing storing("Transfer-Encoding: chunked\r\n");
    REQUIRE(storing.writer.begin(*storing.body, 0));
    CHECK(storing.writer.grow(*storing.body, kMaxObject / 2));
    CHECK(storing.writer.grow(*storing.body, size) == fits);
    storing.writer.stop(storing.body.get());
    CHECK(storing.kernel().used_bytes == 0);
    storing.body->abort();
  }
}

TEST_CASE("room for a body of unknown length is taken in steps, and the rest comes back",
          "[origin][store]") {
  Storing storing("Transfer-Encoding: chunked\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 0));
  int taken = 0;
  std::uint64_t reserved = storing.kernel().reserved_bytes;
  for (std::uint64_t size = 10'000; size <= kMaxObject; size += 10'000) {
    storing.append(10'000);
    REQUIRE(storing.writer.grow(*storing.body, size));
    const std::uint64_t now = storing.kernel().reserved_bytes;
    CHECK(now > size);
    if (now != reserved) ++taken;
    reserved = now;
  }
  // Before the first step each piece is taken for itself.
  CHECK(taken < 40);
  storing.body->complete();
  CHECK((storing.writer.commit(storing.body, {}) == Result::kStored));
  const store::ObjectRef stored = storing.world.stored(*storing.request);
  REQUIRE(stored);
  CHECK(storing.kernel().used_bytes == stored->charge() + storing.world.kernel->charge_of_entry());
}

TEST_CASE("room is taken for what a body needs, or for a step more where that is not known",
          "[origin][store]") {
  constexpr std::uint64_t kStep = 256 * 1024;
  const bool is_known = GENERATE(true, false);
  Storing storing(is_known ? "Content-Length: 1000000\r\n" : "Transfer-Encoding: chunked\r\n");
  const auto needed = [&](std::uint64_t bytes) {
    return cache::charge_for({.key = storing.request->key.size(),
                              .meta = sizeof(ObjectMeta),
                              .head = storing.text.size() + cache::kHeadGrowthBytes,
                              .body = bytes}) +
           storing.world.kernel->charge_of_entry();
  };
  std::uint64_t expected = needed(0);
  REQUIRE(storing.writer.begin(*storing.body, 0));
  CHECK(storing.kernel().reserved_bytes == expected);
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{100'000}, kStep - 1, kStep, kStep + 1,
        kStep + 2, 2 * kStep, 2 * kStep + 1, 3 * kStep, std::uint64_t{1'000'000}}) {
    CAPTURE(is_known, bytes);
    REQUIRE(storing.writer.grow(*storing.body, bytes));
    if (needed(bytes) > expected) {
      const std::uint64_t more = needed(bytes) - expected;
      expected += is_known || bytes <= kStep ? more : std::max(more, kStep);
    }
    CHECK(storing.kernel().reserved_bytes == expected);
  }
  CHECK(storing.writer.stop(storing.body.get()));
  storing.body->abort();
}

TEST_CASE("what the cache refuses in the last moment is told from what was overtaken",
          "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 0));
  storing.append(300'000);
  storing.body->complete();
  const cache::Key key{storing.request->hash, storing.request->key};
  std::uint64_t others = 0;
  while (storing.world.kernel->reserve(key, 200'000, storing.world.loop->now()) ==
         cache::ReserveOutcome::kReserved) {
    others += 200'000;
  }
  CHECK((storing.writer.commit(storing.body, {}) == Result::kRefused));
  CHECK_FALSE(storing.world.stored(*storing.request));
  CHECK(storing.kernel().used_bytes == others);
  CHECK(storing.world.stats.store_aborts.get() == 1);
  CHECK(storing.world.stats.overtaken.get() == 0);
  CHECK(storing.world.stats.stored.get() == 0);
  storing.world.kernel->abort(key, others, storing.world.loop->now());
}

TEST_CASE("what the cache has no room for is not stored", "[origin][store]") {
  Storing storing("Content-Length: 1000000\r\n");
  // An object on its way cannot be evicted.
  const cache::Key key{storing.request->hash, storing.request->key};
  std::uint64_t others = 0;
  while (storing.world.kernel->reserve(key, 500'000, storing.world.loop->now()) ==
         cache::ReserveOutcome::kReserved) {
    others += 500'000;
  }
  REQUIRE(storing.kernel().used_bytes == others);
  CHECK_FALSE(storing.writer.begin(*storing.body, 1'000'000));
  CHECK_FALSE(storing.writer.may_store());
  CHECK(storing.kernel().used_bytes == others);
  CHECK(storing.world.stats.store_aborts.get() == 1);
  storing.world.kernel->abort(key, others, storing.world.loop->now());
  storing.body->abort();
}

TEST_CASE("an empty body for which the memory had no room is stored nowhere", "[origin][store]") {
  const TemporaryDirectory directory;
  auto disks = disk::Disks::open(
      {.disks = {{.path = directory / "disk", .bytes = 8U << 20U, .segment_bytes = 1U << 20U}},
       .identity_seed = {1, 2},
       .is_inline = true});
  REQUIRE(disks.has_value());
  Storing storing(GENERATE("Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"));
  storing.world.services->disks = disks->get();
  const cache::Key key{storing.request->hash, storing.request->key};
  std::uint64_t others = 0;
  for (const std::uint64_t step : {500'000U, 1'000U, 1U}) {
    while (storing.world.kernel->reserve(key, step, storing.world.loop->now()) ==
           cache::ReserveOutcome::kReserved) {
      others += step;
    }
  }
  // The disk is to have it.
  REQUIRE(storing.writer.begin(*storing.body, 0));
  storing.body->complete();
  CHECK((storing.writer.commit(storing.body, {}) == Result::kUnfit));
  CHECK_FALSE(storing.world.stored(*storing.request));
  CHECK(storing.kernel().used_bytes == others);
  CHECK(storing.world.stats.store_aborts.get() == 1);
  CHECK(storing.world.stats.stored.get() == 0);
  storing.world.kernel->abort(key, others, storing.world.loop->now());
}

TEST_CASE("without memory for the object nothing is stored, and its room comes back",
          "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 5));
  storing.append(5);
  storing.body->complete();
  const Ballast ballast(*storing.world.store);
  // The slots that are left take as many objects to fill.
  std::vector<store::ObjectRef> others;
  const ObjectMeta meta;
  while (true) {
    auto made = storing.world.store->make_small(
        {.key = "other", .meta = std::as_bytes(std::span(&meta, 1)), .head = storing.text}, {});
    if (!made) break;
    others.push_back(std::move(*made));
  }
  CHECK((storing.writer.commit(storing.body, {}) == Result::kUnfit));
  CHECK_FALSE(storing.world.stored(*storing.request));
  CHECK(storing.kernel().used_bytes == 0);
  CHECK(storing.world.stats.store_aborts.get() == 1);
  CHECK(storing.world.stats.stored.get() == 0);
}

TEST_CASE("what an invalidation has overtaken is not stored", "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  const bool overtaken = GENERATE(true, false);
  REQUIRE(storing.writer.begin(*storing.body, 5));
  storing.append(5);
  storing.body->complete();
  if (overtaken) storing.world.inflight.invalidate(storing.request->hash, storing.request->key);
  CHECK((storing.writer.commit(storing.body, {}) ==
         (overtaken ? Result::kOvertaken : Result::kStored)));
  CHECK(static_cast<bool>(storing.world.stored(*storing.request)) == !overtaken);
}

TEST_CASE("what a newer answer has overtaken is not stored", "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 5));
  storing.append(5);
  storing.body->complete();
  const MonotonicTime now = storing.world.loop->now();
  const bool is_newer = GENERATE(true, false);
  storing.world.inflight.latest_responses().note(
      {.key = storing.request->hash, .number = 0},
      {.date = http::kNoDate,
       .requested = is_newer ? now + std::chrono::seconds(9) : MonotonicTime{}},
      now + std::chrono::seconds(10));
  CHECK((storing.writer.commit(storing.body, {}) ==
         (is_newer ? Result::kOvertaken : Result::kStored)));
}

TEST_CASE("what is overtaken in the last moment is not stored at all", "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  REQUIRE(storing.writer.begin(*storing.body, 0));
  storing.append(300'000);
  storing.body->complete();
  // The reserved space is too little for it, so that the kernel is asked once more before it has
  // it.
  int reserved = 0;
  storing.world.on_decision = [&](const cache::Event& event) {
    if (event.kind != cache::EventKind::kReserve || reserved++ != 0) return;
    storing.world.inflight.invalidate(storing.request->hash, storing.request->key);
  };
  CHECK((storing.writer.commit(storing.body, {}) == Result::kOvertaken));
  CHECK(reserved == 1);
  CHECK_FALSE(storing.world.stored(*storing.request));
  CHECK(storing.kernel().used_bytes == 0);
  CHECK(storing.kernel().reserved_bytes == 0);
}

TEST_CASE("what came from a private address is stored as such", "[origin][store]") {
  Storing storing("Content-Length: 5\r\n");
  storing.received.private_origin = GENERATE(true, false);
  REQUIRE(storing.writer.begin(*storing.body, 5));
  storing.append(5);
  storing.body->complete();
  CHECK((storing.writer.commit(storing.body, {}) == Result::kStored));
  const store::ObjectRef stored = storing.world.stored(*storing.request);
  REQUIRE(stored);
  CHECK(meta_of(*stored).http.is(http::StoredMeta::kPrivateOrigin) ==
        storing.received.private_origin);
}

}  // namespace
}  // namespace encore::server
