// The effect of a purge on requests: two threads look objects up, as a hit does, while a third
// purges by tag and by prefix over the whole cache; then the same without a purge, to compare.
//
//   purge_bench [objects]     1,000,000 unless given
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "proxy/process/purge.h"
#include "proxy/settings/runtime.h"
#include "tests/process/filled_cache.h"

namespace {

using namespace encore;          // NOLINT(google-build-using-namespace): a program, no header
using namespace encore::server;  // NOLINT(google-build-using-namespace)

constexpr int kLookers = 2;

class Accept final : public cache::Selector {
 public:
  // The object stays alive while it is used, as in a request.
  bool matches(cache::Payload payload) override {
    object = store::ObjectRef::share(payload);
    return true;
  }
  store::ObjectRef object;
};

using Latencies = std::vector<std::uint64_t>;  // nanoseconds

void look_up(FilledCache& cache, std::uint64_t objects, std::uint64_t seed,
             const std::atomic<bool>& stop, Latencies& latencies) {
  std::mt19937_64 random(seed);
  while (!stop.load(std::memory_order_relaxed)) {
    const std::string text = FilledCache::key_text(random() % objects);
    const cache::Key key = cache.key(text);
    Accept accept;
    const auto start = std::chrono::steady_clock::now();
    (void)cache.shared.kernel->lookup(key, MonotonicTime{}, accept);
    accept.object = {};
    const auto took = std::chrono::steady_clock::now() - start;
    latencies.push_back(static_cast<std::uint64_t>(took.count()));
  }
}

// Prints how long lookups took while `work` ran.
void measure(const char* name, FilledCache& cache, std::uint64_t objects,
             const std::function<std::uint64_t()>& work) {
  std::atomic<bool> stop = false;
  std::array<Latencies, kLookers> latencies;
  std::vector<std::thread> lookers;
  for (int i = 0; i < kLookers; ++i) {
    latencies[static_cast<std::size_t>(i)].reserve(1U << 24U);
    lookers.emplace_back([&, i] {
      look_up(cache, objects, static_cast<std::uint64_t>(i), stop,
              latencies[static_cast<std::size_t>(i)]);
    });
  }
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t purged = work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  stop = true;
  for (std::thread& looker : lookers) looker.join();
  Latencies all;
  for (const Latencies& part : latencies) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  const auto quantile = [&](double q) {
    const auto at = static_cast<std::size_t>(q * static_cast<double>(all.size() - 1));
    return static_cast<double>(all[at]) / 1000.0;
  };
  std::printf("| %s | %" PRIu64 " | %.2f | %zu | %.1f | %.1f | %.0f | %.0f |\n", name, purged,
              seconds.count(), all.size(), quantile(0.5), quantile(0.999), quantile(0.9999),
              quantile(1.0));
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t objects = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1'000'000;
  if (objects == 0) return 2;
  FilledCache cache(objects);
  const auto runtime = Runtime::create({}, {}, "bench");
  if (!runtime) return 1;
  std::printf("%" PRIu64 " objects, %d threads look up\n\n", objects, kLookers);
  std::printf("| | purged | seconds | lookups | median us | 99.9 %% | 99.99 %% | longest |\n");
  std::printf("|---|---:|---:|---:|---:|---:|---:|---:|\n");
  const auto nothing = [] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return std::uint64_t{0};
  };
  // Something of the lookers' kind that takes no lock of the cache.
  const auto spin = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < end) {
    }
    return std::uint64_t{0};
  };
  const auto by = [&](const PurgeOrder& order) {
    return purge(cache.shared, **runtime, order).count;
  };
  measure("no purge", cache, objects, nothing);
  measure("a third thread is busy, no purge", cache, objects, spin);
  measure("a tag that none has", cache, objects, [&] { return by({.tags = {"none"}}); });
  measure("a tag of a tenth", cache, objects, [&] { return by({.tags = {"t3"}}); });
  measure("a prefix of half, soft", cache, objects,
          [&] { return by({.prefixes = {"http://site.example/odd/"}, .soft = true}); });
  measure("a tag that all have", cache, objects, [&] { return by({.tags = {"all"}}); });
  return 0;
}
