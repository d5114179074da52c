// Many threads on one kernel: the budget holds at every moment, and no payload is lost or given
// back twice.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::uint64_t kCapacityBytes = 40'000;

class TakeAny final : public Selector {
 public:
  bool matches(Payload payload) override { return payload != 0; }
};

// Stores, finds, freshens, removes and moves; every payload it makes is its own.
class Worker {
 public:
  Worker(Kernel& kernel, std::uint64_t number)
      : kernel_(kernel), random_(number), next_(number << 40U) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      one(key(random_() % 300));
    }
  }
  // The payloads that the kernel owns or has given back.
  std::uint64_t given() const { return given_; }

 private:
  void one(const Key& key) {
    TakeAny any;
    const LookupResult found = kernel_.lookup(key, at(0), any);
    const Stored stored{
        .variant = random_() % 3, .charge_bytes = 1 + random_() % 2000, .payload = ++next_};
    switch (random_() % 16) {
      case 0:
        kernel_.invalidate(key, at(0));
        break;
      case 1:
        kernel_.remove(key, stored.variant, at(0));
        break;
      case 2: {
        const auto outcome = kernel_.freshen(key, stored, at(0));
        given_ += outcome == FreshenOutcome::kFreshened ? 1U : 0U;
        break;
      }
      case 3:
        // The new payload takes the place of the old one, which is not released.
        if (found.state != LookupState::kMiss) {
          kernel_.relocate(key.hash, found.payload, stored.payload);
        }
        break;
      default:
        if (found.state == LookupState::kMiss) {
          const CommitOutcome outcome = kernel_.commit(key, stored, 0, at(0));
          given_ +=
              outcome == CommitOutcome::kStored || outcome == CommitOutcome::kReplaced ? 1U : 0U;
        }
    }
  }

  Kernel& kernel_;
  std::mt19937_64 random_;
  std::uint64_t next_;
  std::uint64_t given_ = 0;
};

// The versions of one key's content: which one is the present one, and up to which one all is gone.
struct Versions {
  std::atomic<std::uint64_t> present = 1;
  std::atomic<std::uint64_t> gone = 0;
};

// A response of one version is overtaken when the next one has begun.
class VersionOvertaken final : public InvalidationCheck {
 public:
  VersionOvertaken(const Versions& versions, std::uint64_t of) : versions_(versions), of_(of) {}
  bool is_overtaken() const override { return versions_.present > of_; }

 private:
  const Versions& versions_;
  std::uint64_t of_;
};

// Stores and freshens what it fetched before it looks whether it was overtaken.
void store_versions(Kernel& kernel, const Versions& versions, int times) {
  for (int i = 0; i < times; ++i) {
    const std::uint64_t version = versions.present;
    const VersionOvertaken invalidation_check(versions, version);
    std::this_thread::yield();
    const Stored stored{
        .charge_bytes = 10, .payload = version, .invalidation_check = &invalidation_check};
    if (i % 2 == 0 || kernel.freshen(key(1), stored, at(0)) != FreshenOutcome::kFreshened) {
      kernel.commit(key(1), stored, 0, at(0));
    }
  }
}

// Sees from another thread whether the locks are free while it is called.
class LockSeer final : public PayloadOwner {
 public:
  void release(std::span<const Payload> payloads) override {
    released += payloads.size();
    const Key looked_for = key(1);
    looks_.push_back(std::async(std::launch::async, [this, looked_for] {
      kernel->prefetch(looked_for);
      (void)kernel->statistics();
    }));
    // Far more than two locks take, on a busy machine too.
    free = free && looks_.back().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  Kernel* kernel = nullptr;
  std::size_t released = 0;
  bool free = true;

 private:
  std::vector<std::future<void>> looks_;
};

}  // namespace

TEST_CASE("Payloads are given back without a lock, at the end of the kernel too",
          "[cache][threads]") {
  LockSeer owner;
  {
    const auto kernel = make_kernel(plain_options(30), {.owner = &owner});
    owner.kernel = kernel.get();
    for (std::uint64_t id = 1; id <= 4; ++id) {
      store(*kernel, key(id), {.charge_bytes = 10, .payload = id}, at(0));
    }
    CHECK(owner.released == 1);
    kernel->invalidate(key(4), at(0));
    CHECK(owner.released == 2);
    CHECK(owner.free);
  }
  CHECK(owner.released == 4);
  CHECK(owner.free);
}

TEST_CASE("What was invalidated is found by nobody from then on", "[cache][threads][long]") {
  const auto kernel = make_kernel(plain_options(kCapacityBytes));
  Versions versions;
  std::uint64_t old = 0;
  std::uint64_t found = 0;
  {
    std::atomic<int> running{2};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        store_versions(*kernel, versions, 20'000);
        --running;
      });
    }
    threads.emplace_back([&] {
      while (running != 0) {
        const std::uint64_t version = ++versions.present;
        kernel->invalidate(key(1), at(0));
        versions.gone = version - 1;
        std::this_thread::yield();
      }
    });
    while (running != 0) {
      const std::uint64_t gone = versions.gone;
      const LookupResult result = kernel->lookup(key(1), at(0));
      if (result.state == LookupState::kMiss) continue;
      ++found;
      old += result.payload <= gone ? 1U : 0U;
    }
  }
  CHECK(old == 0);
  CHECK(found > 0);
}

TEST_CASE("Under many threads the budget holds and every payload comes back once",
          "[cache][threads]") {
  CountingOwner owner;
  KernelOptions options = plain_options(kCapacityBytes);
  options.shards = 4;
  options.max_object_share = 8;
  options.entry_overhead_bytes = kEntryOverheadBytes;
  auto kernel = make_kernel(options, {.owner = &owner});
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    workers.push_back(std::make_unique<Worker>(*kernel, i));
  }
  std::uint64_t over_budget = 0;
  {
    std::vector<std::jthread> threads;
    std::atomic<int> running{4};
    for (const auto& worker : workers) {
      threads.emplace_back([&worker, &running] {
        worker->run(10'000);
        --running;
      });
    }
    while (running != 0) {
      over_budget += kernel->statistics().used_bytes > kCapacityBytes ? 1U : 0U;
      std::this_thread::yield();
    }
  }
  CHECK(over_budget == 0);
  CHECK(kernel->statistics().reserved_bytes == 0);
  CHECK(kernel->statistics().counters.evictions > 1000);
  kernel.reset();
  std::uint64_t given = 0;
  for (const auto& worker : workers) {
    given += worker->given();
  }
  CHECK(owner.total() == given);
  CHECK(owner.each_once());
}

}  // namespace encore::cache::test
