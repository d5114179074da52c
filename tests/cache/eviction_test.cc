// The eviction policies against naive models, request by request.
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/eviction_name.h"
#include "cache/removals.h"
#include "cache/table.h"
#include "tests/cache/naive_eviction.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

enum class Sizes : std::uint8_t { kEqual, kDiffering };

// Popularity that falls off with the object's number, and moves on slowly.
std::vector<NaiveRequest> random_requests(std::size_t count, std::size_t capacity, Sizes sizes,
                                          std::uint64_t seed = 42) {
  std::mt19937_64 random(seed + capacity);
  std::geometric_distribution<std::uint64_t> popular(1.0 / static_cast<double>(capacity + 2));
  std::vector<NaiveRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t id = 1 + (popular(random) + i / 500) % 300;
    requests[i] = {.id = id, .size = sizes == Sizes::kEqual ? 1 : 1 + id * 7 % 8};
  }
  std::unordered_map<std::uint64_t, std::uint64_t> next;
  for (std::size_t i = count; i-- != 0;) {
    const auto at = next.find(requests[i].id);
    requests[i].next = at == next.end() ? UINT64_MAX : at->second;
    next[requests[i].id] = i;
  }
  return requests;
}

bool look_up_or_store(Kernel& kernel, const NaiveRequest& request) {
  if (kernel.lookup(key(request.id), at(0), request.next).state != LookupState::kMiss) {
    return true;
  }
  REQUIRE(store(kernel, key(request.id), {.charge_bytes = request.size, .hint = request.next},
                at(0)) == CommitOutcome::kStored);
  return false;
}

struct Comparison {
  std::uint64_t differences = 0;
  std::uint64_t hits = 0;
};

Comparison compare_eviction(EvictionPolicy policy, NaiveCache& model, std::size_t capacity,
                            const std::vector<NaiveRequest>& requests,
                            const EvictionSettings& settings = {}) {
  KernelOptions options = plain_options(capacity);
  options.eviction = policy;
  options.eviction_settings = settings;
  options.concurrent = false;
  const auto kernel = make_kernel(options);
  Comparison compared;
  for (const NaiveRequest& one : requests) {
    const bool hit = look_up_or_store(*kernel, one);
    compared.differences += hit != model.request(one) ? 1U : 0U;
    compared.hits += hit ? 1U : 0U;
  }
  return compared;
}

EvictionPolicy eviction_policy(std::size_t number) { return static_cast<EvictionPolicy>(number); }

// The naive models compare all entries; LHD does so in caches of at most kSample.
std::size_t comparable(EvictionPolicy policy, std::size_t capacity) {
  return policy == EvictionPolicy::kLhd ? std::min<std::size_t>(capacity, Lhd::kSample) : capacity;
}

bool look_up_or_store(Kernel& kernel, std::uint64_t id) {
  return look_up_or_store(kernel, NaiveRequest{.id = id});
}

}  // namespace

TEST_CASE("Every eviction policy answers every request as its naive model does", "[cache]") {
  const auto policy = eviction_policy(GENERATE(range(std::size_t{0}, kEvictionPolicyCount)));
  INFO(to_string(policy));
  for (const std::size_t most : {1U, 2U, 7U, 60U}) {
    const std::size_t capacity = comparable(policy, most);
    const auto requests = random_requests(6000, capacity, Sizes::kEqual);
    const Comparison compared =
        compare_eviction(policy, *make_naive(policy, capacity), capacity, requests);
    INFO("a cache of " << capacity);
    CHECK(compared.differences == 0);
    CHECK(compared.hits > 300);
  }
}

TEST_CASE("Every eviction policy answers as its naive model does where sizes differ", "[cache]") {
  // All but Belady, the last one, which draws a sample there.
  const auto policy = eviction_policy(GENERATE(range(std::size_t{0}, kEvictionPolicyCount - 1)));
  INFO(to_string(policy));
  for (const std::size_t most : {8U, 100U}) {
    const std::size_t capacity = comparable(policy, most);
    const auto requests = random_requests(6000, capacity / 4, Sizes::kDiffering);
    const Comparison compared =
        compare_eviction(policy, *make_naive(policy, capacity), capacity, requests);
    INFO("a cache of " << capacity);
    CHECK(compared.differences == 0);
    CHECK(compared.hits > 300);
  }
}

TEST_CASE("On twenty random traces each policy answers as its naive model does", "[cache]") {
  const auto policy = eviction_policy(GENERATE(range(std::size_t{0}, kEvictionPolicyCount - 1)));
  INFO(to_string(policy));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::size_t capacity = comparable(policy, 2 + seed * seed % 60);
    const auto sizes = seed % 2 == 0 ? Sizes::kEqual : Sizes::kDiffering;
    const std::size_t room = sizes == Sizes::kEqual ? capacity : capacity + 8;
    const auto requests = random_requests(2000, capacity, sizes, 1000 * seed);
    const Comparison compared = compare_eviction(policy, *make_naive(policy, room), room, requests);
    INFO("trace " << seed << ", a cache of " << room);
    CHECK(compared.differences == 0);
  }
}

TEST_CASE("Policies that weigh the cost of a miss answer as their naive models do", "[cache]") {
  constexpr FetchTime kFetch{.seconds = 0.05, .seconds_per_byte = 0.02};
  struct Weighed {
    const char* name;
    NaiveCost cost;
  };
  const auto weighed = GENERATE_COPY(Weighed{"latency", {kFetch.seconds, kFetch.seconds_per_byte}},
                                     Weighed{"bytes", {0, 1}});
  const auto policy =
      GENERATE(EvictionPolicy::kGdsf, EvictionPolicy::kLhd, EvictionPolicy::kHyperbolic);
  const auto named =
      parse_eviction_name(std::string(to_string(policy)) + "(cost=" + weighed.name + ")");
  REQUIRE(named);
  INFO(eviction_name(policy, named->values));
  const EvictionSettings settings{.values = named->values, .fetch = kFetch};
  std::uint64_t apart = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::size_t room = comparable(policy, 10 + seed * seed % 60);
    const auto requests = random_requests(2000, room / 4, Sizes::kDiffering, 1000 * seed);
    INFO("trace " << seed << ", a cache of " << room);
    CHECK(
        compare_eviction(policy, *make_naive(policy, room, weighed.cost), room, requests, settings)
            .differences == 0);
    apart +=
        compare_eviction(policy, *make_naive(policy, room), room, requests, settings).differences;
  }
  CHECK(apart > 1000);  // the cost changes what is evicted
}

TEST_CASE("GDSF with an object's bytes as its cost is LFU with dynamic aging", "[cache]") {
  // Cherkasova 1998: size / size is 1, and priority = L + frequency.
  const EvictionSettings settings{.values = parse_eviction_name("gdsf(cost=bytes)")->values};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::size_t room = 10 + seed * seed % 60;
    const auto requests = random_requests(2000, room / 4, Sizes::kDiffering, 1000 * seed);
    const Comparison compared = compare_eviction(
        EvictionPolicy::kGdsf, *make_naive(EvictionPolicy::kLfuda, room), room, requests, settings);
    CHECK(compared.differences == 0);
    CHECK(compared.hits > 100);
  }
}

TEST_CASE("LHD with a sample of the entries hits nearly as often as with all of them", "[cache]") {
  for (const std::size_t capacity : {60U, 100U}) {
    const auto requests = random_requests(6000, capacity, Sizes::kEqual);
    const auto model = make_naive(EvictionPolicy::kLhd, capacity);
    std::uint64_t hits = 0;
    for (const NaiveRequest& one : requests) hits += model->request(one) ? 1U : 0U;
    const Comparison compared = compare_eviction(
        EvictionPolicy::kLhd, *make_naive(EvictionPolicy::kLhd, capacity), capacity, requests);
    CHECK(compared.hits * 100 >= hits * 97);
  }
}

TEST_CASE("In a loop larger than the cache LIRS hits what it holds, and LRU nothing", "[cache]") {
  // Figure 1 of its paper: a loop of N over c places hits c - 1 % of them in each round.
  constexpr std::uint64_t kLoop = 1500;
  constexpr std::size_t kPlaces = 1000;
  constexpr std::uint64_t kRounds = 20;
  const auto hits = [&](EvictionPolicy policy) {
    KernelOptions options = plain_options(kPlaces);
    options.eviction = policy;
    options.concurrent = false;
    const auto kernel = make_kernel(options);
    std::uint64_t in_all = 0;
    for (std::uint64_t i = 0; i < kRounds * kLoop; ++i)
      in_all += look_up_or_store(*kernel, i % kLoop);
    return in_all;
  };
  CHECK(hits(EvictionPolicy::kLru) == 0);
  CHECK(hits(EvictionPolicy::kClock) == 0);
  CHECK(hits(EvictionPolicy::kLirs) == (kRounds - 1) * (kPlaces - kPlaces / 100));
}

TEST_CASE("A policy with aging forgets what was popular, LFU does not", "[cache]") {
  const auto hits = [&](EvictionPolicy policy) {
    KernelOptions options = plain_options(50);
    options.eviction = policy;
    options.concurrent = false;
    const auto kernel = make_kernel(options);
    std::uint64_t later = 0;
    for (std::uint64_t i = 0; i < 5000; ++i) look_up_or_store(*kernel, i % 50);
    // Others from now on, each of them twice in a row, and all again and again.
    for (std::uint64_t i = 0; i < 20'000; ++i) later += look_up_or_store(*kernel, 100 + i / 2 % 40);
    return later;
  };
  // Only the second of two in a row, where a new one always goes first.
  CHECK(hits(EvictionPolicy::kLfu) < 11'000);
  for (const auto policy : {EvictionPolicy::kLfuda, EvictionPolicy::kHyperbolic,
                            EvictionPolicy::kLruTwo, EvictionPolicy::kLirs}) {
    INFO(to_string(policy));
    CHECK(hits(policy) > 15'000);
  }
}

TEST_CASE("Where sizes differ Belady lets go the largest charge times distance", "[cache]") {
  KernelOptions options = plain_options(20);
  options.eviction = EvictionPolicy::kBelady;
  options.concurrent = false;
  const auto kernel = make_kernel(options);
  const auto holds = [&](std::uint64_t id) {
    return kernel->lookup(key(id), at(0)).state == LookupState::kFresh;
  };
  look_up_or_store(*kernel, {.id = 1, .size = 10, .next = 5});
  look_up_or_store(*kernel, {.id = 2, .size = 1, .next = 100});  // the farthest
  look_up_or_store(*kernel, {.id = 3, .size = 9, .next = 50});
  const auto admit = [&](std::uint64_t id, std::uint64_t size, std::uint64_t next) {
    return is_stored(kernel->admit(key(id), {.size_bytes = size, .hint = next}, at(0)));
  };
  CHECK_FALSE(admit(4, 9, 51));  // it would be the one itself
  CHECK(admit(5, 1, 200));       // though farther than all
  SECTION("the large one, as far as it is") {
    look_up_or_store(*kernel, {.id = 5, .size = 1, .next = 200});
    CHECK_FALSE(holds(3));
    for (const std::uint64_t id : {1U, 2U, 5U}) {
      CHECK(holds(id));
    }
  }
  SECTION("but first what is never used again, however small") {
    kernel->lookup(key(2), at(0), UINT64_MAX);
    look_up_or_store(*kernel, {.id = 5, .size = 1, .next = 200});
    CHECK_FALSE(holds(2));
    for (const std::uint64_t id : {1U, 3U, 5U}) {
      CHECK(holds(id));
    }
  }
}

TEST_CASE("The comparison with a naive model sees a wrong victim, and another policy", "[cache]") {
  constexpr std::size_t kCapacity = 40;
  const auto requests = random_requests(4000, kCapacity, Sizes::kEqual);
  const auto policy = eviction_policy(GENERATE(range(std::size_t{0}, kEvictionPolicyCount)));
  INFO(to_string(policy));
  const auto defective = make_naive(policy, kCapacity);
  defective->plant_defect(50);
  CHECK(compare_eviction(policy, *defective, kCapacity, requests).differences > 0);
  const auto next = eviction_policy((static_cast<std::size_t>(policy) + 1) % kEvictionPolicyCount);
  CHECK(compare_eviction(policy, *make_naive(next, kCapacity), kCapacity, requests).differences >
        0);
}

TEST_CASE("SIEVE looks at a bounded number of entries at a time and still finds its victim",
          "[cache]") {
  constexpr std::uint64_t kObjects = 5000;
  const auto kernel = make_kernel(plain_options(kObjects));
  for (std::uint64_t id = 0; id < kObjects; ++id) {
    look_up_or_store(*kernel, id);
    look_up_or_store(*kernel, id);
  }
  // Every entry has its bit: the hand goes all around and takes the oldest.
  look_up_or_store(*kernel, kObjects);
  CHECK(kernel->lookup(key(0), at(0)).state == LookupState::kMiss);
  CHECK(kernel->lookup(key(1), at(0)).state == LookupState::kFresh);
  CHECK(kernel->statistics().counters.evictions == 1);
}

TEST_CASE("A changed eviction policy keeps the entries, evicts the unused ones first", "[cache]") {
  KernelOptions options = plain_options(10);
  options.eviction = EvictionPolicy::kFifo;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 10; ++id) {
    look_up_or_store(*kernel, id);
  }
  ReloadOptions reload = reload_options(options);
  reload.eviction = EvictionPolicy::kLru;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->statistics().objects == 10);
  CHECK(look_up_or_store(*kernel, 0));  // used: moves to the new order
  CHECK(look_up_or_store(*kernel, 3));
  for (std::uint64_t id = 100; id < 108; ++id) {
    CHECK_FALSE(look_up_or_store(*kernel, id));  // the eight that were not used go
  }
  CHECK(look_up_or_store(*kernel, 0));
  CHECK(look_up_or_store(*kernel, 3));
  CHECK_FALSE(look_up_or_store(*kernel, 200));  // now the least recently used of the new order: 100
  CHECK_FALSE(look_up_or_store(*kernel, 100));
  SECTION("and a second change before the first is worked off keeps them as well") {
    reload.eviction = EvictionPolicy::kSieve;
    REQUIRE(kernel->reconfigure(reload, at(2)));
    CHECK(look_up_or_store(*kernel, 0));
    reload.eviction = EvictionPolicy::kFifo;
    REQUIRE(kernel->reconfigure(reload, at(3)));
    CHECK(kernel->statistics().objects == 10);
    CHECK(look_up_or_store(*kernel, 0));
    CHECK(look_up_or_store(*kernel, 3));
  }
}

TEST_CASE("What would be evicted next is what is evicted, in the old order too", "[cache]") {
  const bool was_used = GENERATE(true, false);
  const auto policy = GENERATE(EvictionPolicy::kSieve, EvictionPolicy::kLru);
  INFO(to_string(policy) << (was_used ? ", all were used" : ""));
  Table table(policy);
  Removals gone(nullptr);
  const auto put = [&](std::uint64_t id) {
    REQUIRE(table.insert(key(id).hash, {.charge_bytes = 5}, {.now = at(0)}, {.variants_max = 1},
                         gone) == Table::Inserted::kNew);
  };
  for (std::uint64_t id = 0; id < 3; ++id) {
    put(id);
    if (!was_used) continue;
    table.lookup(key(id).hash, {.now = at(0)}, [](Payload) { return Match::kYes; }, gone);
  }
  CHECK(table.charged_bytes() == 15);
  table.change_policy(EvictionPolicy::kFifo, {.now = at(0)});
  put(3);
  for (std::uint64_t left = 4; left != 0; --left) {
    filter::Hash128 next;
    REQUIRE(table.next_victim(next));
    CHECK((next == key(3).hash) == (left == 1));
    REQUIRE(table.find(next) != kNoEntry);
    REQUIRE(table.evict_one(gone, Table::Used::kEvict) == Table::Evicted::kOne);
    CHECK(table.find(next) == kNoEntry);
    CHECK(table.charged_bytes() == 5 * (left - 1));
  }
  CHECK(table.evict_one(gone, Table::Used::kEvict) == Table::Evicted::kNothingLeft);
}

TEST_CASE("SIEVE spares once what was all used, where it is told to", "[cache]") {
  Table table(EvictionPolicy::kSieve);
  Removals gone(nullptr);
  for (std::uint64_t id = 0; id < 3; ++id) {
    REQUIRE(table.insert(key(id).hash, {.charge_bytes = 5}, {.now = at(0)}, {.variants_max = 1},
                         gone) == Table::Inserted::kNew);
    table.lookup(key(id).hash, {.now = at(0)}, [](Payload) { return Match::kYes; }, gone);
  }
  CHECK(table.evict_one(gone, Table::Used::kSpare) == Table::Evicted::kEachUsed);
  CHECK(table.size() == 3);
  CHECK(table.evict_one(gone, Table::Used::kSpare) == Table::Evicted::kOne);
  CHECK(table.find(key(0).hash) == kNoEntry);
}

}  // namespace encore::cache::test
