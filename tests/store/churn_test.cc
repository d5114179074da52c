// The store under a cache's load: objects come and go, sizes shift, readers hold what is evicted,
// and compaction moves what is left. Memory is accounted exactly and every byte is read again.
#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "cache/charge.h"
#include "tests/store/store_fixture.h"

namespace encore::store {

using cache::charge_for;
using cache::is_inline;
using cache::ObjectSizes;

namespace {

const std::string kPaddedHead(250, 'h');

// One object a key; evicts the oldest beyond its budget, or (`random`) any.
class Cache {
 public:
  Cache(Store& store, std::uint64_t budget_bytes, std::uint64_t seed)
      : store_(store), kernel_(store), random_(seed), budget_(budget_bytes) {
    store_.set_relocator(&kernel_);
  }
  ~Cache() { store_.set_relocator(nullptr); }

  void add(std::size_t size, bool evict_oldest) {
    const std::uint64_t number = next_++;
    const std::string key = "http://example.com/" + std::to_string(number);
    const ObjectSizes sizes{key.size(), 0, kPaddedHead.size(), size};
    charged_ += charge_for(sizes);
    while (charged_ > budget_ && !entries_.empty()) evict(evict_oldest);
    ObjectRef object = make(key, number, size);
    if (object->charge() != charge_for(sizes)) FAIL("size " << size << " is not charged exactly");
    kernel_.put(key, std::move(object));
    entries_.push_back({key, number, size, charge_for(sizes)});
  }

  // Whether all objects still have their bytes.
  bool verify() {
    for (const Entry& entry : entries_) {
      const ObjectRef object = kernel_.get(entry.key);
      if (!object || object->key() != entry.key || object->head() != kPaddedHead) return false;
      if (whole_body(object) != pattern(entry.number, entry.size)) return false;
    }
    return true;
  }
  std::uint64_t charged() const { return charged_; }
  std::size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    std::uint64_t number;
    std::size_t size;
    std::uint64_t charge;
  };

  ObjectRef make(const std::string& key, std::uint64_t number, std::size_t size) {
    const std::string body = pattern(number, size);
    if (is_inline({key.size(), 0, kPaddedHead.size(), size})) {
      const iovec part = part_of(body);
      auto object = store_.make_small({key, {}, kPaddedHead}, {&part, 1});
      REQUIRE(object);
      return *object;
    }
    auto writer = store_.reserve({key, size, {}});
    REQUIRE(writer);
    if ((*writer)->body()->append(bytes_of(body)) != size) FAIL("no room for " << size);
    (*writer)->body()->complete();
    auto object = (*writer)->commit({key, {}, kPaddedHead});
    REQUIRE(object);
    return *object;
  }

  void evict(bool oldest) {
    if (!oldest) std::swap(entries_[random_() % entries_.size()], entries_.front());
    kernel_.drop(entries_.front().key);
    charged_ -= entries_.front().charge;
    entries_.pop_front();
  }

  Store& store_;
  ToyKernel kernel_;
  std::mt19937_64 random_;
  std::uint64_t budget_;
  std::uint64_t charged_ = 0;
  std::uint64_t next_ = 0;
  std::deque<Entry> entries_;
};

// A size around `mean`, within a factor of four.
std::size_t size_around(std::mt19937_64& random, std::size_t mean) {
  return mean / 2 + random() % (mean * 3 / 2);
}

}  // namespace

TEST_CASE("memory held stays within 5 % of what is charged while sizes shift", "[store]") {
  constexpr std::uint64_t kBudget = 32 * kMiB;
  for (const bool evict_oldest : {true, false}) {
    const auto store = memory_store(kBudget + kBudget / 20 + 8 * kMiB);
    Cache cache(*store, kBudget, 17);
    std::mt19937_64 random(18);
    double worst = 0;
    for (const std::size_t mean : {1'000U, 700U, 20'000U, 1'000U, 1'000'000U, 9'000U, 400U}) {
      const std::uint64_t turns = 2 * kBudget / (mean + 300);
      for (std::uint64_t i = 0; i < turns; ++i) {
        cache.add(size_around(random, mean), evict_oldest);
        const StoreStats stats = store->stats();
        if (stats.held_bytes > stats.limit_bytes || stats.live_bytes != cache.charged()) {
          FAIL("held " << stats.held_bytes << ", live " << stats.live_bytes << ", charged "
                       << cache.charged());
        }
        const auto constant = static_cast<double>(4 * kMiB + stats.idle_bytes);
        worst = std::max(worst, (static_cast<double>(stats.held_bytes) - constant) /
                                    static_cast<double>(stats.live_bytes));
      }
      CAPTURE(mean, evict_oldest, worst, store->stats().moved_objects);
      CHECK(worst <= 1.05);
      CHECK(cache.verify());
    }
    CHECK(store->stats().failed_requests == 0);
    CHECK(store->stats().moved_objects > 0);
  }
}

TEST_CASE("without compaction the same load holds far more than is charged", "[store]") {
  constexpr std::uint64_t kBudget = 16 * kMiB;
  const auto store = memory_store(8 * kBudget);
  Cache cache(*store, kBudget, 17);
  store->set_relocator(nullptr);
  std::mt19937_64 random(18);
  for (const std::size_t mean : {700U, 20'000U}) {
    for (std::uint64_t i = 0; i < 2 * kBudget / mean; ++i) {
      cache.add(size_around(random, mean), false);
    }
  }
  CHECK(store->stats().held_bytes > store->stats().live_bytes * 6 / 5);
}

TEST_CASE("an object that the kernel will not exchange stays where it is", "[store]") {
  class Refuser final : public Relocator {
   public:
    bool replace(std::string_view, Payload, Payload) override { return false; }
  };
  const auto store = memory_store(8 * kMiB);
  Refuser refuser;
  store->set_relocator(&refuser);
  std::vector<ObjectRef> objects;
  const std::string body = pattern(1, 1'000);
  const iovec part = part_of(body);
  for (int i = 0; i < 2'000; ++i) {
    auto object = store->make_small({"key", {}, kPaddedHead}, {&part, 1});
    REQUIRE(object);
    objects.push_back(std::move(*object));
  }
  for (std::size_t i = 0; i < objects.size() / 4; ++i) objects[i] = std::move(objects[4 * i]);
  objects.resize(objects.size() / 4);
  const std::uint64_t live = store->stats().live_bytes;
  static_cast<MemoryStore&>(*store).compact(1'000);
  CHECK(store->stats().moved_objects == 0);
  CHECK(store->stats().objects == objects.size());
  CHECK(store->stats().live_bytes == live);
  for (const ObjectRef& object : objects) {
    if (object->inline_body() != body) FAIL("an object was lost");
  }
}

TEST_CASE("at the limit holes are closed before a request is refused", "[store]") {
  const auto store = memory_store(8 * kMiB);
  ToyKernel kernel(*store);
  const std::string body = pattern(1, 1'000);
  const iovec part = part_of(body);
  std::size_t count = 0;
  for (;; ++count) {
    auto object = store->make_small({"key " + std::to_string(count), {}, kPaddedHead}, {&part, 1});
    if (!object) break;
    kernel.put("key " + std::to_string(count), std::move(*object));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 2 == 0) kernel.drop("key " + std::to_string(i));
  }
  // Half of the memory is free, in holes between objects.
  const auto store_large = [&] {
    auto writer = store->reserve({"large", 3 * kMiB, {}});
    if (!writer) return false;
    const std::string large = pattern(2, 3 * kMiB);
    return (*writer)->body()->append(bytes_of(large)) == large.size();
  };
  CHECK_FALSE(store_large());
  store->set_relocator(&kernel);
  CHECK(store_large());
  for (std::size_t i = 1; i < count; i += 2) {
    const ObjectRef object = kernel.get("key " + std::to_string(i));
    if (object->inline_body() != body) FAIL("object " << i << " was lost");
  }
  store->set_relocator(nullptr);
}

TEST_CASE("readers, evictions, writers and compaction at once leave every byte right",
          "[store][threads]") {
  constexpr std::size_t kKeys = 3'000;
  const auto store = memory_store(64 * kMiB);
  ToyKernel kernel(*store);
  store->set_relocator(&kernel);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> hits{0};
  const auto name = [](std::size_t number) { return "key " + std::to_string(number); };
  // The size follows the number, so that a reader can check the bytes.
  const auto size_of = [](std::size_t number) { return number * 7919 % 3'000; };

  std::vector<std::thread> threads;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      std::mt19937_64 random(worker);
      for (int i = 0; i < 40'000; ++i) {
        const std::size_t number = random() % kKeys;
        if (random() % 8 < 5) {
          kernel.drop(name(number));
          continue;
        }
        const std::string body = pattern(number, size_of(number));
        const iovec part = part_of(body);
        auto object = store->make_small({name(number), {}, "head"}, {&part, 1});
        if (object) {
          kernel.put(name(number), std::move(*object));
        } else {
          ++wrong;
        }
      }
      stop = true;
    });
  }
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      std::mt19937_64 random(100 + reader);
      std::deque<std::pair<std::size_t, ObjectRef>> held;
      while (!stop) {
        const std::size_t number = random() % kKeys;
        held.emplace_back(number, kernel.get(name(number)));
        if (held.size() < 20) continue;
        const auto& [oldest, object] = held.front();
        if (object) {
          ++hits;
          if (object->key() != name(oldest)) ++wrong;
          if (object->inline_body() != pattern(oldest, size_of(oldest))) ++wrong;
        }
        held.pop_front();
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) {
      store->maintain(200);
      static_cast<MemoryStore&>(*store).compact(200);
    }
  });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hits > 0);
  CHECK(store->stats().moved_objects > 0);
  store->set_relocator(nullptr);
}

}  // namespace encore::store
