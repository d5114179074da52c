// The cost of the decision kernel. One part has hit lookups among few and many keys, as the proxy
// makes them and from several threads. The other has the published Zipf trace (exponent 1.0, 5 M
// objects, 20 M requests, a cache of 500,000 objects), with miss ratio, speed and memory.
//
//   kernel_bench              everything
//   kernel_bench lookup|zipf  one part
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
#include "cache/kernel.h"

namespace {

using namespace encore;         // NOLINT(google-build-using-namespace): a program, no header
using namespace encore::cache;  // NOLINT(google-build-using-namespace)

// Time of this thread: other work of the machine counts less.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Key key_of(std::uint64_t id) {
  const std::string_view bytes(reinterpret_cast<const char*>(&id), sizeof(id));
  Key key = filter::identify({1, 2}, bytes);
  key.bytes = {};
  return key;
}

std::unique_ptr<Kernel> make_kernel(KernelOptions options) {
  options.identity_seed = {1, 2};
  options.admission.policy = AdmissionPolicy::kAlways;
  auto kernel = Kernel::create(options, {}, {});
  ENCORE_CHECK(kernel.has_value(), "options of the benchmark");
  return std::move(*kernel);
}

class Accept final : public Selector {
 public:
  bool matches(Payload payload) override { return payload != 0; }
};

double lookup_ns(Kernel& kernel, std::uint64_t keys, std::uint64_t seed) {
  // Keys in random order, hashed beforehand: what is measured is the lookup.
  std::mt19937_64 random(seed);
  std::vector<Key> order(1U << 20U);
  for (Key& key : order) {
    key = key_of(random() % keys);
  }
  Accept accept;
  std::uint64_t hits = 0;
  constexpr int kRounds = 4;
  const double start = cpu_seconds();
  for (int round = 0; round < kRounds; ++round) {
    for (const Key& key : order) {
      hits += kernel.lookup(key, MonotonicTime{}, accept).state == LookupState::kFresh ? 1U : 0U;
    }
  }
  const double elapsed = cpu_seconds() - start;
  ENCORE_CHECK(hits == kRounds * order.size(), "every lookup is a hit");
  return elapsed / static_cast<double>(hits) * 1e9;
}

void bench_lookup() {
  std::printf("hit lookup, 16 shards, SIEVE, CPU ns a lookup of each thread\n");
  std::printf("%10s %10s %10s %16s\n", "keys", "1 thread", "2 threads", "bytes an entry");
  for (const std::uint64_t keys : {1ULL, 100'000ULL, 5'000'000ULL}) {
    KernelOptions options;
    options.capacity_bytes = keys * 2000 + 100'000;
    const auto kernel = make_kernel(options);
    for (std::uint64_t id = 0; id < keys; ++id) {
      kernel->commit(key_of(id),
                     {.charge_bytes = 1000,
                      .fresh_until = MonotonicTime(std::chrono::hours(1)),
                      .payload = id + 1},
                     0, {});
    }
    const double one = lookup_ns(*kernel, keys, 1);
    double two[2] = {0, 0};
    {
      std::jthread first([&] { two[0] = lookup_ns(*kernel, keys, 2); });
      std::jthread second([&] { two[1] = lookup_ns(*kernel, keys, 3); });
    }
    const auto held = static_cast<double>(kernel->statistics().index_bytes);
    std::printf("%10" PRIu64 " %10.1f %10.1f %16.1f\n", keys, one, (two[0] + two[1]) / 2,
                held / static_cast<double>(keys));
  }
}

// Zipf(1.0) by the inverse of the cumulative distribution.
std::vector<std::uint32_t> zipf_trace(std::uint32_t objects, std::size_t requests) {
  std::vector<double> cumulative(objects);
  double sum = 0;
  for (std::uint32_t i = 0; i < objects; ++i) {
    sum += 1.0 / (i + 1.0);
    cumulative[i] = sum;
  }
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, sum);
  std::vector<std::uint32_t> trace(requests);
  for (std::uint32_t& id : trace) {
    id = static_cast<std::uint32_t>(
        std::lower_bound(cumulative.begin(), cumulative.end(), uniform(random)) -
        cumulative.begin());
  }
  return trace;
}

void bench_zipf() {
  constexpr std::uint32_t kObjects = 5'000'000;
  constexpr std::size_t kRequests = 20'000'000;
  constexpr std::uint64_t kCapacity = 500'000;
  const std::vector<std::uint32_t> trace = zipf_trace(kObjects, kRequests);
  std::vector<filter::Hash128> hashes(kObjects);
  for (std::uint32_t id = 0; id < kObjects; ++id) {
    hashes[id] = key_of(id).hash;
  }
  std::printf("Zipf 1.0, %u objects, %zu requests, a cache of %" PRIu64 "\n", kObjects, kRequests,
              kCapacity);
  std::printf("%10s %12s %14s %18s\n", "eviction", "miss ratio", "M/CPU s", "bytes an object");
  for (const EvictionPolicy policy :
       {EvictionPolicy::kFifo, EvictionPolicy::kLru, EvictionPolicy::kSieve}) {
    KernelOptions options;
    options.capacity_bytes = kCapacity;
    options.max_object_share = 1;
    options.shards = 1;
    options.entry_overhead_bytes = 0;
    options.eviction = policy;
    options.concurrent = false;
    const auto kernel = make_kernel(options);
    std::uint64_t misses = 0;
    const double start = cpu_seconds();
    for (std::size_t i = 0; i < trace.size(); ++i) {
      if (i + 8 < trace.size()) {
        kernel->prefetch({hashes[trace[i + 8]], {}});
      }
      const Key key{hashes[trace[i]], {}};
      if (kernel->lookup(key, MonotonicTime{}).state == LookupState::kMiss) {
        ++misses;
        kernel->commit(key, {.charge_bytes = 1}, 0, {});
      }
    }
    const double elapsed = cpu_seconds() - start;
    const auto held = static_cast<double>(kernel->statistics().index_bytes);
    std::printf("%10s %12.4f %14.2f %18.1f\n", std::string(to_string(policy)).c_str(),
                static_cast<double>(misses) / kRequests, kRequests / elapsed / 1e6,
                held / static_cast<double>(kCapacity));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* part = argc > 1 ? argv[1] : "";
  if (std::strcmp(part, "zipf") != 0) {
    bench_lookup();
  }
  if (std::strcmp(part, "lookup") != 0) {
    bench_zipf();
  }
  return 0;
}
