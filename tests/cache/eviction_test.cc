// The eviction policies against naive models, request by request.
#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <unordered_map>

#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

struct Item {
  std::uint64_t id = 0;
  bool visited = false;
};

// A cache of `capacity` objects of size 1; newest at the front.
class Model {
 public:
  explicit Model(std::size_t capacity) : capacity_(capacity) {}
  virtual ~Model() = default;
  // Whether it was a hit.
  bool request(std::uint64_t id) {
    const auto found =
        std::find_if(items_.begin(), items_.end(), [&](const Item& item) { return item.id == id; });
    if (found != items_.end()) {
      hit(found);
      return true;
    }
    if (items_.size() == capacity_) {
      evict();
    }
    items_.push_front({id, false});
    return false;
  }

 protected:
  virtual void hit(std::list<Item>::iterator item) = 0;
  virtual void evict() { items_.pop_back(); }
  std::list<Item> items_;

 private:
  std::size_t capacity_;
};

class FifoModel final : public Model {
 public:
  using Model::Model;

 private:
  void hit(std::list<Item>::iterator /*item*/) override {}
};

class LruModel final : public Model {
 public:
  using Model::Model;

 private:
  void hit(std::list<Item>::iterator item) override { items_.splice(items_.begin(), items_, item); }
};

// After the pseudocode of the paper: the hand is the object to look at next, none: the tail.
class SieveModel final : public Model {
 public:
  using Model::Model;

 private:
  void hit(std::list<Item>::iterator item) override { item->visited = true; }
  void evict() override {
    auto object = hand_id_ == 0 ? std::prev(items_.end())
                                : std::find_if(items_.begin(), items_.end(), [&](const Item& item) {
                                    return item.id == hand_id_;
                                  });
    while (object->visited) {
      object->visited = false;
      object = object == items_.begin() ? std::prev(items_.end()) : std::prev(object);
    }
    hand_id_ = object == items_.begin() ? 0 : std::prev(object)->id;
    items_.erase(object);
  }
  std::uint64_t hand_id_ = 0;
};

std::unique_ptr<Model> make_model(EvictionPolicy policy, std::size_t capacity) {
  switch (policy) {
    case EvictionPolicy::kSieve:
      return std::make_unique<SieveModel>(capacity);
    case EvictionPolicy::kLru:
      return std::make_unique<LruModel>(capacity);
    case EvictionPolicy::kFifo:
      return std::make_unique<FifoModel>(capacity);
    default:
      return nullptr;
  }
}

bool request(Kernel& kernel, std::uint64_t id) {
  if (kernel.lookup(key(id), at(0)).state != LookupState::kMiss) {
    return true;
  }
  REQUIRE(store(kernel, key(id), {.charge_bytes = 1}, at(0)) == CommitOutcome::kStored);
  return false;
}

}  // namespace

TEST_CASE("Every eviction policy answers every request as its naive model does", "[cache]") {
  const auto policy = GENERATE(EvictionPolicy::kSieve, EvictionPolicy::kLru, EvictionPolicy::kFifo);
  const auto capacity = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{50});
  KernelOptions options = plain_options(capacity);
  options.eviction = policy;
  const auto kernel = make_kernel(options);
  const auto model = make_model(policy, capacity);
  std::mt19937_64 random(42 + capacity);
  std::geometric_distribution<std::uint64_t> popular(1.5 / static_cast<double>(capacity + 1));
  std::uint64_t differences = 0;
  std::uint64_t hits = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t id = 1 + popular(random) % 200;
    const bool hit = request(*kernel, id);
    differences += hit != model->request(id) ? 1U : 0U;
    hits += hit ? 1U : 0U;
  }
  INFO(to_string(policy) << " with " << capacity);
  CHECK(differences == 0);
  CHECK(hits > 100);
  CHECK(kernel->statistics().objects == capacity);
}

TEST_CASE("SIEVE looks at a bounded number of entries at a time and still finds its victim",
          "[cache]") {
  constexpr std::uint64_t kObjects = 5000;
  const auto kernel = make_kernel(plain_options(kObjects));
  for (std::uint64_t id = 0; id < kObjects; ++id) {
    request(*kernel, id);
    request(*kernel, id);
  }
  // Every entry has its bit: the hand goes all around and takes the oldest.
  request(*kernel, kObjects);
  CHECK(kernel->lookup(key(0), at(0)).state == LookupState::kMiss);
  CHECK(kernel->lookup(key(1), at(0)).state == LookupState::kFresh);
  CHECK(kernel->statistics().counters.evictions == 1);
}

TEST_CASE("A changed eviction policy keeps the entries, evicts the unused ones first", "[cache]") {
  KernelOptions options = plain_options(10);
  options.eviction = EvictionPolicy::kFifo;
  const auto kernel = make_kernel(options);
  for (std::uint64_t id = 0; id < 10; ++id) {
    request(*kernel, id);
  }
  ReloadOptions reload = reload_options(options);
  reload.eviction = EvictionPolicy::kLru;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->statistics().objects == 10);
  CHECK(request(*kernel, 0));  // used: moves to the new order
  CHECK(request(*kernel, 3));
  for (std::uint64_t id = 100; id < 108; ++id) {
    CHECK_FALSE(request(*kernel, id));  // the eight that were not used go
  }
  CHECK(request(*kernel, 0));
  CHECK(request(*kernel, 3));
  CHECK_FALSE(request(*kernel, 200));  // now the least recently used of the new order: 100
  CHECK_FALSE(request(*kernel, 100));
  SECTION("and a second change before the first is worked off keeps them as well") {
    reload.eviction = EvictionPolicy::kSieve;
    REQUIRE(kernel->reconfigure(reload, at(2)));
    CHECK(request(*kernel, 0));
    reload.eviction = EvictionPolicy::kFifo;
    REQUIRE(kernel->reconfigure(reload, at(3)));
    CHECK(kernel->statistics().objects == 10);
    CHECK(request(*kernel, 0));
    CHECK(request(*kernel, 3));
  }
}

}  // namespace encore::cache::test
