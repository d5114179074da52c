// A plain cache that is asked directly decides as the proxy's kernel does, request by request:
// whatever the eviction policy, sizes that change, times to live, overheads and limits.
#include "sim/replay/direct_cache.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/kernel.h"

namespace encore::sim {
namespace {

using cache::EvictionPolicy;

constexpr std::array kPolicies = {
#define ENCORE_POLICY(id, name, policy) EvictionPolicy::id,
    ENCORE_EVICTION_POLICIES(ENCORE_POLICY)
#undef ENCORE_POLICY
};

// Properties of a trace.
struct Traits {
  std::uint64_t size_max = 1;
  bool resizes = false;
  bool expires = false;
};

std::vector<ReplayRequest> random_requests(std::uint64_t seed, const Traits& traits) {
  std::mt19937_64 random(seed);
  const std::uint64_t objects = 50 + random() % 400;
  ObjectTable table(random() % 2 == 0 ? ObjectSize::kLargest : ObjectSize::kLatest);
  std::vector<std::uint64_t> sizes(objects);
  for (auto& size : sizes) size = 1 + random() % traits.size_max;
  std::vector<ReplayRequest> requests;
  std::int64_t now = 0;
  for (int i = 0; i < 6000; ++i) {
    // Popular ones, and some of all.
    const std::uint64_t below = random() % objects + 1;
    const std::uint64_t object = random() % below;
    if (traits.resizes && random() % 20 == 0) sizes[object] = random() % (2 * traits.size_max);
    // Not always in order.
    now += static_cast<std::int64_t>(random() % 3'000'000'000) - 500'000'000;
    const bool has_end = traits.expires && random() % 2 == 0;
    requests.push_back(table.number(
        {.key = filter::identify({}, std::to_string(object)).hash,
         .time_ns = now,
         .size_bytes = sizes[object],
         .ttl_seconds = has_end ? static_cast<std::uint32_t>(random() % 100) : kNoTtl}));
  }
  std::vector<std::uint64_t> next(table.objects(), kNeverAgain);
  for (std::size_t i = requests.size(); i != 0; --i) {
    requests[i - 1].next = std::exchange(next[requests[i - 1].object], i - 1);
  }
  return requests;
}

// A run's outcomes and figures.
struct Decided {
  std::vector<ReplayOutcome> outcomes;
  cache::KernelStatistics statistics;
};

// The kernel, asked as a proxy asks it.
class Asked {
 public:
  explicit Asked(const cache::KernelOptions& options)
      : kernel_(std::move(*cache::Kernel::create(options, {}, MonotonicTime{}))) {}

  ReplayOutcome ask(const ReplayRequest& request) {
    now_ = std::max(now_, MonotonicTime(Nanoseconds(request.time_ns)));
    const cache::Key key{request.key, {}};
    const cache::LookupResult found = kernel_->lookup(key, now_, request.next);
    cache::Stored stored{.charge_bytes = charge_of(request), .hint = request.next};
    if (request.ttl_seconds != kNoTtl) {
      stored.fresh_until = now_ + std::chrono::seconds(request.ttl_seconds);
    }
    switch (found.state) {
      case cache::LookupState::kMiss:
        return miss(request, key, stored);
      case cache::LookupState::kStale:
        freshen(key, stored);
        return ReplayOutcome::kRevalidated;
      case cache::LookupState::kFresh:
        break;
    }
    if (request.resized) {
      stored.fresh_until = found.fresh_until;
      freshen(key, stored);
    }
    return ReplayOutcome::kHit;
  }
  cache::KernelStatistics statistics() const { return kernel_->statistics(); }

 private:
  ReplayOutcome miss(const ReplayRequest& request, const cache::Key& key,
                     const cache::Stored& stored) {
    const auto reason = kernel_->admit(
        key, {.requests = 1, .size_bytes = stored.charge_bytes, .hint = request.next}, now_);
    if (!cache::is_stored(reason)) return cache::outcome_of<ReplayOutcome>(reason);
    const std::uint64_t reserved = stored.charge_bytes + kernel_->charge_of_entry();
    if (kernel_->reserve(key, reserved, now_) != cache::ReserveOutcome::kReserved ||
        kernel_->commit(key, stored, reserved, now_) != cache::CommitOutcome::kStored) {
      return ReplayOutcome::kTooLarge;
    }
    return cache::outcome_of<ReplayOutcome>(reason);
  }
  void freshen(const cache::Key& key, const cache::Stored& stored) {
    const auto outcome = kernel_->freshen(key, stored, now_);
    if (outcome == cache::FreshenOutcome::kTooLarge || outcome == cache::FreshenOutcome::kFull) {
      kernel_->remove(key, 0, now_);
    }
  }

  std::unique_ptr<cache::Kernel> kernel_;
  MonotonicTime now_{};
};

void check_equal(const std::vector<ReplayRequest>& requests, const cache::KernelOptions& options) {
  std::vector<ReplayOutcome> direct;
  auto run = ReplayRun::create({.kernel = options, .outcomes = &direct});
  REQUIRE(run);
  // In pieces of any size.
  std::mt19937_64 random(1);
  for (std::span<const ReplayRequest> rest = requests; !rest.empty();) {
    const auto piece = rest.first(std::min<std::size_t>(rest.size(), 1 + random() % 700));
    (*run)->feed(piece);
    rest = rest.subspan(piece.size());
  }
  (*run)->finish();
  Asked asked(options);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    differ += asked.ask(requests[i]) == direct[i] ? 0U : 1U;
  }
  CHECK(differ == 0);
  const cache::KernelStatistics own = (*run)->kernel();
  const cache::KernelStatistics its = asked.statistics();
  CHECK(own.counters == its.counters);
  CHECK(own.objects == its.objects);
  CHECK(own.used_bytes == its.used_bytes);
  CHECK(own.capacity_bytes == its.capacity_bytes);
  CHECK(own.max_object_bytes == its.max_object_bytes);
}

}  // namespace

TEST_CASE("Asked directly each policy decides as by the kernel", "[sim][direct]") {
  const EvictionPolicy policy = GENERATE(from_range(kPolicies));
  CAPTURE(cache::to_string(policy));
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    const Traits traits{
        .size_max = seed % 2 == 0 ? 1U : 1000U, .resizes = seed % 4 == 1, .expires = seed % 3 == 1};
    const auto requests = random_requests(seed, traits);
    auto options =
        kernel(20 + seed * seed * traits.size_max, policy, cache::AdmissionPolicy::kAlways);
    options.entry_overhead_bytes = seed % 5 == 0 ? 60 : 0;
    options.max_object_share = seed % 3 == 2 ? 4 : 1;
    REQUIRE(DirectCache::create({.kernel = options}) != nullptr);
    check_equal(requests, options);
  }
}

TEST_CASE("A cache that is not plain is not asked directly", "[sim][direct]") {
  const auto plain = kernel(1000, EvictionPolicy::kLru, cache::AdmissionPolicy::kAlways);
  CHECK(DirectCache::create({.kernel = plain}) != nullptr);
  auto sharded = plain;
  sharded.shards = 2;
  CHECK(DirectCache::create({.kernel = sharded}) == nullptr);
  auto admits = plain;
  admits.admission.policy = cache::AdmissionPolicy::kSecondHit;
  CHECK(DirectCache::create({.kernel = admits}) == nullptr);
  auto on_disk = plain;
  on_disk.disks = {{.segments = 8, .segment_bytes = 64 * 1024}};
  CHECK(DirectCache::create({.kernel = on_disk}) == nullptr);
  CHECK(DirectCache::create({.kernel = plain, .charge = StoreCharge{}}) == nullptr);
}

}  // namespace encore::sim
