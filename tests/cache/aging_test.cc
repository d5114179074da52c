// How frequencies age: by the cache's entries, whatever power of two lies near.
#include <array>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "cache/frequency_sketch.h"
#include "tests/cache/naive_eviction.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::size_t kRequests = 250'000;

// Zipf with an exponent of 1 over 40,000 ranks, which move on by one object in five requests: what
// was popular is not for long, so it matters when it is forgotten.
std::vector<NaiveRequest> moving_requests() {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> share(0, std::log(40'001.0));
  std::vector<NaiveRequest> requests(kRequests);
  for (std::size_t i = 0; i < kRequests; ++i) {
    requests[i].id = static_cast<std::uint64_t>(std::exp(share(random))) + i / 5;
  }
  return requests;
}

double miss_ratio(NaiveCache& model, const std::vector<NaiveRequest>& requests) {
  std::size_t misses = 0;
  for (const NaiveRequest& request : requests) {
    misses += model.request(request) ? 0U : 1U;
  }
  return static_cast<double>(misses) / static_cast<double>(requests.size());
}

double miss_ratio(Kernel& kernel, const std::vector<NaiveRequest>& requests) {
  std::size_t misses = 0;
  for (const NaiveRequest& request : requests) {
    const Key one = identify(kSeed, {reinterpret_cast<const char*>(&request.id), 8});
    if (kernel.lookup(one, at(0)).state == LookupState::kMiss) {
      ++misses;
      kernel.commit(one, {.charge_bytes = request.size}, 0, at(0));
    }
  }
  return static_cast<double>(misses) / static_cast<double>(requests.size());
}

KernelOptions w_tiny_lfu(std::uint64_t entries) {
  KernelOptions options = plain_options(entries);
  options.eviction = EvictionPolicy::kWTinyLfu;
  options.concurrent = false;
  return options;
}

}  // namespace

// A miss ratio of 0.7 to 0.8 over 250,000 requests has a standard deviation below 0.00092; 4.5 of
// them is what chance would make of two runs by the same rule. A sample of nearly twice the length
// is 0.012 to 0.020 off on this trace.
TEST_CASE("W-TinyLFU ages by its entries on both sides of a power of two, as exact counts do",
          "[cache]") {
  const auto requests = moving_requests();
  const std::uint64_t power = GENERATE(4096U, 8192U);
  std::array<double, 3> kernel_misses{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t entries = power - 1 + i;
    kernel_misses[i] = miss_ratio(*make_kernel(w_tiny_lfu(entries)), requests);
    const double exact = miss_ratio(*make_naive(EvictionPolicy::kWTinyLfu, entries), requests);
    INFO(entries << " entries: " << kernel_misses[i] << ", by exact counts " << exact);
    CHECK(std::abs(kernel_misses[i] - exact) < 4.5 * 0.00092);
  }
  CHECK(std::abs(kernel_misses[2] - kernel_misses[0]) < 4.5 * 0.00092);
}

TEST_CASE("No eviction policy changes at a power of two", "[cache]") {
  const auto requests = moving_requests();
  const auto policy = static_cast<EvictionPolicy>(
      GENERATE(range(std::size_t{0}, static_cast<std::size_t>(EvictionPolicy::kBelady))));
  INFO(to_string(policy));
  KernelOptions options = w_tiny_lfu(4095);
  options.eviction = policy;
  const double below = miss_ratio(*make_kernel(options), requests);
  options.capacity_bytes = 4097;
  const double above = miss_ratio(*make_kernel(options), requests);
  CHECK(std::abs(above - below) < 4.5 * 0.00092);
}

// A cache of bytes: how many entries it holds is an estimate that changes. After a fifth of the
// requests it holds a fourth of them.
TEST_CASE("W-TinyLFU's sample follows the entries where a cache comes to hold fewer", "[cache]") {
  constexpr std::uint64_t kEntries = 4097;
  const auto requests = moving_requests();
  const auto kernel = make_kernel(w_tiny_lfu(4 * kEntries));
  const auto later = requests.begin() + kRequests / 5;
  miss_ratio(*kernel, {requests.begin(), later});
  ReloadOptions smaller = reload_options(kernel->options());
  smaller.capacity_bytes = kEntries;
  REQUIRE(kernel->reconfigure(smaller, at(1)));
  while (kernel->reclaim(1000, at(1)) == Kernel::Reclaimed::kSome) {
  }
  REQUIRE(kernel->statistics().objects == kEntries);
  const double after = miss_ratio(*kernel, {later, requests.end()});
  const auto model = make_naive(EvictionPolicy::kWTinyLfu, 4 * kEntries);
  miss_ratio(*model, {requests.begin(), later});
  model->set_capacity(kEntries);
  const double exact = miss_ratio(*model, {later, requests.end()});
  INFO(after << " after it was larger, by exact counts " << exact);
  CHECK(std::abs(after - exact) < 4.5 * 0.00092 * std::sqrt(1.25));
}

TEST_CASE("A frequency sketch of any width loses no count when it is resized", "[cache]") {
  FrequencySketch sketch;
  std::unordered_map<std::uint64_t, std::uint32_t> counts;
  std::mt19937_64 random(11);
  constexpr std::uint64_t kKeys = 3000;
  const auto hash_of = [](std::uint64_t i) { return key(i).hash; };
  const auto frequencies = [&] {
    std::vector<std::uint32_t> all;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      all.push_back(sketch.frequency(hash_of(i)));
    }
    return all;
  };
  for (const std::uint64_t width : {1000U, 1001U, 4097U, 4095U, 700U, 3000U, 9000U, 3000U}) {
    sketch.resize(width);
    CHECK(sketch.keys() == width);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t id = random() % kKeys;
      sketch.increment(hash_of(id));
      counts[id] = std::min(counts[id] + 1, 15U);
    }
    std::uint64_t too_low = 0;
    for (const auto& [id, count] : counts) {
      too_low += sketch.frequency(hash_of(id)) < count ? 1U : 0U;
    }
    CHECK(too_low == 0);
  }
  const auto before = frequencies();
  sketch.resize(2 * sketch.keys());
  CHECK(frequencies() == before);  // a width that doubles blurs nothing
  sketch.halve();
  const auto after = frequencies();
  for (std::size_t i = 0; i < kKeys; ++i) {
    REQUIRE(after[i] == before[i] / 2);
  }
}

}  // namespace encore::cache::test
