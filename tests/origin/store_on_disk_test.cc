// Responses that go into a cache with disks: in memory with a record, or on disk alone in parts.
#include <memory>
#include <string>
#include <utility>

#include "cache/disk_parts.h"
#include "proxy/origin/fetch.h"
#include "proxy/origin/store_writer.h"
#include "tests/catch.h"
#include "tests/origin/world.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

// An eighth of this may be one object in memory.
constexpr std::uint64_t kMemory = 8U << 20U;
constexpr std::size_t kInMemory = kMemory / 8;
constexpr std::uint64_t kDisk = 256U << 20U;
constexpr std::uint64_t kSegment = 8U << 20U;

// A world with a disk, or without, and the response that it has fetched.
struct WithDisk {
  explicit WithDisk(bool has_disk, std::uint64_t object_bytes_max = 20U << 20U) {
    if (has_disk) {
      auto opened = disk::Disks::open(
          {.disks = {{.path = directory / "disk", .bytes = kDisk, .segment_bytes = kSegment}},
           .identity_seed = {1, 2},
           .is_inline = true});
      REQUIRE(opened.has_value());
      disks = std::move(*opened);
    }
    world.emplace(
        std::vector<std::string>{origin.url()},
        [&](config::Config& config) {
          config.cache.memory_bytes = kMemory;
          config.cache.max_object_bytes = object_bytes_max;
          if (!has_disk) return;
          config::Disk& disk = config.disk.emplace_back();
          disk.path = directory / "disk";
          disk.size_bytes = kDisk;
          disk.segment_bytes = kSegment;
        },
        [&](cache::KernelOptions& options) {
          if (disks == nullptr) return;
          options.disks = disks->kernel_disks();
          options.identity_seed = {1, 2};
        });
    if (disks != nullptr) disks->start(*world->kernel);
    world->services->disks = disks.get();
  }
  ~WithDisk() {
    if (disks != nullptr) (void)disks->stop({});
  }
  WithDisk(const WithDisk&) = delete;
  WithDisk& operator=(const WithDisk&) = delete;

  void fetch(std::size_t bytes, bool chunked) {
    request = world->request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    FetchPlan plan;
    plan.whole = true;
    reader.emplace(*world, request, std::move(plan));
    world->run_until_asked(origin);
    std::string text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nSurrogate-Key: t\r\n";
    text += chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                    : "Content-Length: " + std::to_string(bytes) + "\r\n\r\n";
    if (chunked) {
      constexpr std::size_t kChunk = 100'000;
      for (std::size_t at = 0; at < bytes; at += kChunk) {
        char size[16];
        const std::size_t length = std::min(kChunk, bytes - at);
        (void)std::snprintf(size, sizeof size, "%zx\r\n", length);
        text += size + std::string(length, 'x') + "\r\n";
      }
      text += "0\r\n\r\n";
    } else {
      text += std::string(bytes, 'x');
    }
    std::size_t said = 0;
    world->run_until(origin, [&] {
      said += origin.offer(std::string_view(text).substr(said));
      if (disks != nullptr) disks->tick();
      // A body that goes to disk alone takes no room of the memory while it comes.
      const std::uint64_t come = world->stats.bytes_from_origins.get();
      const bool is_alone =
          disks != nullptr && bytes > kInMemory && (!chunked || come > kInMemory + 200'000);
      if (is_alone) CHECK(world->kernel->statistics().reserved_bytes == 0);
      held_max = std::max(held_max, world->store->stats().in_flight_bytes);
      return reader->is_done() && world->fetches.empty();
    });
    if (disks != nullptr) disks->tick();
    REQUIRE(reader->body.size() == bytes);
    CHECK(reader->whole);
  }
  cache::DiskView on_disk() {
    cache::DiskView found;
    (void)world->kernel->lookup({request->hash, request->key}, world->loop->now(), 0, &found);
    return found;
  }

  TemporaryDirectory directory;
  Origin origin;
  std::unique_ptr<disk::Disks> disks;
  std::optional<World> world;
  std::shared_ptr<const RequestContext> request;
  std::optional<FetchReader> reader;
  std::uint64_t held_max = 0;  // most bytes of bodies in memory
};

TEST_CASE("a response goes where its size has a place: memory, a record, or parts on disk alone",
          "[origin][store][disk]") {
  const bool has_disk = GENERATE(true, false);
  const bool chunked = GENERATE(true, false);
  const std::size_t bytes =
      GENERATE(as<std::size_t>(), 5, kInMemory, kInMemory + 1, cache::kPartBytes + 1);
  CAPTURE(has_disk, chunked, bytes);
  WithDisk with(has_disk);
  World& world = *with.world;
  with.fetch(bytes, chunked);
  const bool in_memory = bytes <= kInMemory;
  const bool is_stored = in_memory || has_disk;
  const auto statistics = world.kernel->statistics();
  CHECK(world.stats.stored.get() == (is_stored ? 1 : 0));
  // A response that is known to be too large is not begun.
  CHECK(world.stats.store_aborts.get() == (is_stored || !chunked ? 0 : 1));
  CHECK(world.stats.stored_sizes[size_bucket(bytes)].get() == (is_stored ? 1 : 0));
  const store::ObjectRef stored = world.stored(*with.request);
  CHECK(static_cast<bool>(stored) == in_memory);
  CHECK(statistics.objects == (in_memory ? 1 : 0));
  const std::uint64_t parts = has_disk && !in_memory ? cache::part_count(bytes) : 0;
  CHECK(statistics.disk.entries == (has_disk ? 1 : 0));
  CHECK(statistics.disk.parts == parts);
  CHECK(statistics.disk.counters.stored_alone == (has_disk && !in_memory ? 1 : 0));
  if (stored) {
    CHECK(stored->body_size() == bytes);
    CHECK(world.stats.stored_bytes.get() == stored->charge());
    CHECK(meta_of(*stored).plain == ObjectMeta::kPlain);
    CHECK_FALSE(large_body_of(*stored));
    CHECK(tags_of(*stored) == "t\n");
  } else {
    CHECK(world.stats.stored_bytes.get() == (is_stored ? bytes : 0));
    CHECK(statistics.used_bytes == statistics.disk.index_bytes);
  }
  if (has_disk && !in_memory) {
    const cache::DiskView view = with.on_disk();
    CHECK(view.place.bytes != 0);
    CHECK(view.place.bytes < 10'000);  // the head alone
    CHECK(view.fresh_until > world.loop->now());
  }
}

TEST_CASE("of a body that goes to disk alone no more is in memory than the parts that are due",
          "[origin][store][disk]") {
  const bool chunked = GENERATE(true, false);
  WithDisk with(true);
  with.fetch(12'000'000, chunked);
  CHECK(with.world->stats.stored.get() == 1);
  CHECK(with.held_max < 5'000'000);
}

TEST_CASE("a response that is larger than any object is nowhere, and its parts are left",
          "[origin][store][disk]") {
  const bool chunked = GENERATE(true, false);
  constexpr std::size_t kMax = 1'500'000;
  const std::size_t bytes = GENERATE_COPY(as<std::size_t>(), kMax, kMax + 1);
  CAPTURE(chunked, bytes);
  WithDisk with(true, kMax);
  World& world = *with.world;
  with.fetch(bytes, chunked);
  const bool is_stored = bytes == kMax;
  CHECK(world.stats.stored.get() == (is_stored ? 1 : 0));
  CHECK((with.reader->response->stored != false) == is_stored);
  CHECK(world.kernel->statistics().disk.entries == (is_stored ? 1 : 0));
  CHECK(world.kernel->statistics().objects == 0);
  // A response that is known to be too large was not begun.
  CHECK(world.stats.store_aborts.get() == (is_stored || !chunked ? 0 : 1));
}

}  // namespace
}  // namespace encore::server
