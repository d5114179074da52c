// Policies that are not the kernel's: their cache is that of the built-in ones.
#include "sim/replay/own_policy.h"

#include <random>
#include <string>
#include <vector>

#include "cache/lru.h"
#include "sim/trace/trace_writer.h"
#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/kernel.h"

namespace encore::sim {
namespace {

using cache::AdmissionPolicy;
using cache::EntryRef;
using cache::EvictionPolicy;

// As an outside program writes it.
struct OwnFifo {
  explicit OwnFifo(cache::EntrySlab& entries) : slab(entries) {}
  void insert(EntryRef ref, const ReplayRequest& /*request*/) { list.push_newest(slab, ref); }
  void hit(EntryRef /*ref*/, const ReplayRequest& /*request*/) {}
  void remove(EntryRef ref, cache::Removal /*why*/) { list.unlink(slab, ref); }
  EntryRef victim() { return list.oldest(); }

  cache::EntrySlab& slab;
  cache::EntryList list;
};

// Stores only objects up to a size, which its maker gives.
struct OwnSmall : OwnFifo {
  OwnSmall(cache::EntrySlab& entries, std::uint64_t most) : OwnFifo(entries), bytes_max(most) {}
  bool admits(const ReplayRequest& request) const { return request.size_bytes <= bytes_max; }
  std::uint64_t bytes_max;
};

std::vector<ReplayRequest> own_requests() {
  std::mt19937_64 random(3);
  ObjectTable table;
  std::vector<ReplayRequest> requests;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t object = random() % (random() % 500 + 1);
    requests.push_back(table.number({.key = filter::identify({}, std::to_string(object)).hash,
                                     .time_ns = i * 1'000'000'000LL,
                                     .size_bytes = 1 + object % 97,
                                     .ttl_seconds = object % 7 == 0 ? 300 : kNoTtl}));
  }
  return requests;
}

ReplayCounts own_counts(const std::vector<ReplayRequest>& requests, const OwnCache& own) {
  // The policy that the kernel would have is another.
  auto run = ReplayRun::create(
      {.kernel = kernel(4000, EvictionPolicy::kSieve, AdmissionPolicy::kAlways), .own = own});
  REQUIRE(run);
  (*run)->feed(requests);
  (*run)->finish();
  return (*run)->counts();
}

void check_same_counts(const ReplayCounts& own, const ReplayCounts& built_in) {
  CHECK(own.requests == built_in.requests);
  CHECK(own.hits == built_in.hits);
  CHECK(own.bytes_hit == built_in.bytes_hit);
  CHECK(own.validations == built_in.validations);
  CHECK(own.bytes_written == built_in.bytes_written);
  CHECK(own.not_stored_full == built_in.not_stored_full);
}

}  // namespace

TEST_CASE("A policy of one's own decides as the built-in one of the same rule", "[sim][own]") {
  const auto requests = own_requests();
  const auto fifo = kernel(4000, EvictionPolicy::kFifo, AdmissionPolicy::kAlways);
  const auto lru = kernel(4000, EvictionPolicy::kLru, AdmissionPolicy::kAlways);
  check_same_counts(own_counts(requests, own_policy<OwnFifo>()), replay(requests, fifo));
  check_same_counts(own_counts(requests, own_policy<cache::Lru>()), replay(requests, lru));
  CHECK(replay(requests, lru).hits != replay(requests, fifo).hits);
}

TEST_CASE("A policy of one's own may refuse objects, and is given its arguments", "[sim][own]") {
  const auto requests = own_requests();
  const ReplayCounts all = own_counts(requests, own_policy<OwnSmall>(std::uint64_t{97}));
  const ReplayCounts some = own_counts(requests, own_policy<OwnSmall>(std::uint64_t{40}));
  const ReplayCounts none = own_counts(requests, own_policy<OwnSmall>(std::uint64_t{0}));
  check_same_counts(all, own_counts(requests, own_policy<OwnFifo>()));
  CHECK(some.bytes_written < all.bytes_written);
  CHECK(some.not_stored_full == 0);
  CHECK(none.objects_written == 0);
  CHECK(none.hits == 0);
}

TEST_CASE("A policy of one's own needs a plain cache", "[sim][own]") {
  const auto admits = kernel(4000, EvictionPolicy::kLru, AdmissionPolicy::kSecondHit);
  const auto run = ReplayRun::create({.kernel = admits, .own = own_policy<OwnFifo>()});
  REQUIRE(!run);
  CHECK(run.error().message.find("accepted: one shard, no disk, admission always") !=
        std::string::npos);
}

TEST_CASE("Files are replayed by one call as by a run", "[sim][own]") {
  const Directory directory;
  const std::string path = directory.at("trace");
  auto writer = TraceWriter::open(path, {});
  REQUIRE(writer);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    REQUIRE((*writer)->write({.id = i * i % 311, .size_bytes = 10, .ttl_seconds = kNoTtl}));
  }
  REQUIRE((*writer)->finish());
  const auto own = replay_files({path}, {.own = own_policy<OwnFifo>(), .cache_bytes = 1000});
  const auto fifo = replay_files({path}, {.cache_bytes = 1000, .eviction = EvictionPolicy::kFifo});
  REQUIRE(own);
  REQUIRE(fifo);
  CHECK(own->requests == 5000);
  CHECK(own->hits > 0);
  check_same_counts(*own, *fifo);
  const auto missing = replay_files({path + "x"}, {});
  REQUIRE(!missing);
  CHECK(missing.error().message.find(path + "x") != std::string::npos);
  CHECK(!replay_files({path}, {.eviction = EvictionPolicy::kBelady}));
}

}  // namespace encore::sim
