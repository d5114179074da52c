// Models of the policies that the proxy does not offer, and is compared with.
#include <algorithm>

#include "tests/cache/naive_eviction.h"

namespace encore::cache::test {
namespace {

// Entries in places: the last one takes the place of one that goes.
class NaivePlaces : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 protected:
  void added(const NaiveRequest& request) override { places_.push_back(request.id); }
  void gone(Id id) override {
    *std::ranges::find(places_, id) = places_.back();
    places_.pop_back();
  }
  Ids places_;
};

// With the numbers of the policy's own generator.
class NaiveRandom final : public NaivePlaces {
 public:
  using NaivePlaces::NaivePlaces;

 private:
  void used(const NaiveRequest& /*request*/) override {}
  Id victim() override {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    const auto drawn = static_cast<double>(state_ >> 11U) / 0x1p53;
    return places_[static_cast<std::size_t>(drawn * static_cast<double>(places_.size()))];
  }
  std::uint64_t state_ = 1;
};

class NaiveClock final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    // Behind the hand, which is at the first one.
    ring_.push_back(request.id);
    referenced_[request.id] = false;
  }
  void used(const NaiveRequest& request) override { referenced_[request.id] = true; }
  Id victim() override {
    while (referenced_[ring_.front()]) {
      referenced_[ring_.front()] = false;
      std::ranges::rotate(ring_, ring_.begin() + 1);
    }
    return ring_.front();
  }
  void gone(Id id) override { take(ring_, id); }
  Ids ring_;
  std::map<Id, bool> referenced_;
};

// All times at which each key was used; those of evicted keys as long as these are remembered.
class NaiveLruTwo final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    if (!take(evicted_, request.id)) times_[request.id].clear();
    used(request);
  }
  void used(const NaiveRequest& request) override {
    std::vector<std::uint64_t>& times = times_[request.id];
    times.push_back(++now_);
    if (times.size() > 2) times.erase(times.begin());
  }
  Id victim() override {
    return std::ranges::min_element(residents(), {},
                                    [&](const auto& resident) {
                                      const auto& times = times_.at(resident.first);
                                      // One use is before two, and then the first of them counts.
                                      return std::pair(times.size(), times.front());
                                    })
        ->first;
  }
  void gone(Id id) override {
    // An evicted key keeps its last use alone.
    times_[id] = {times_[id].back()};
    order_.push_back(id);
    evicted_.push_back(id);
    while (order_.size() > count()) {
      // A place of one that came back, and perhaps went again, is no longer its own.
      const bool is_its = std::ranges::count(order_, order_.front()) == 1;
      if (is_its) take(evicted_, order_.front());
      order_.erase(order_.begin());
    }
  }
  std::map<Id, std::vector<std::uint64_t>> times_;
  Ids order_;
  Ids evicted_;
  std::uint64_t now_ = 0;
};

class NaiveLfuda final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  struct Key {
    double value = 0;
    std::uint64_t since = 0;
    double uses = 0;
  };
  void added(const NaiveRequest& request) override {
    keys_[request.id] = {};
    used(request);
  }
  void used(const NaiveRequest& request) override {
    Key& key = keys_[request.id];
    ++key.uses;
    key.value = age_ + key.uses;
    key.since = ++now_;
  }
  Id victim() override {
    return std::ranges::min_element(
               keys_, {},
               [](const auto& each) { return std::pair(each.second.value, each.second.since); })
        ->first;
  }
  void gone(Id id) override {
    age_ = std::max(age_, keys_.at(id).value);
    keys_.erase(id);
  }
  std::map<Id, Key> keys_;
  double age_ = 0;
  std::uint64_t now_ = 0;
};

// Holds where the victim is chosen among all entries.
class NaiveHyperbolic final : public NaivePlaces {
 public:
  NaiveHyperbolic(std::uint64_t capacity, const NaiveCost& cost)
      : NaivePlaces(capacity), cost_(cost) {}

 private:
  struct Life {
    std::uint64_t stored = 0;
    double uses = 0;
  };
  void added(const NaiveRequest& request) override {
    NaivePlaces::added(request);
    lives_[request.id] = {++now_, 1};
  }
  void used(const NaiveRequest& request) override {
    ++now_;
    ++lives_[request.id].uses;
  }
  Id victim() override {
    return *std::ranges::min_element(places_, {}, [&](Id id) {
      const Life& life = lives_.at(id);
      const double time = static_cast<double>(now_ - life.stored) + 1;
      const auto size = static_cast<double>(size_of(id));
      return life.uses * cost_.of(size) / (time * size);
    });
  }
  NaiveCost cost_;
  std::map<Id, Life> lives_;
  std::uint64_t now_ = 0;
};

// The stack S, its oldest first, and the queue Q of the paper.
class NaiveLirs final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  enum class State { kLir, kHir, kGone };
  void added(const NaiveRequest& request) override {
    const Id id = request.id;
    const bool was_in_stack = take(stack_, id);
    take(gone_, id);
    stack_.push_back(id);
    if (was_in_stack) {
      states_[id] = State::kLir;
      limit(count() + 1);
    } else if (!filled_) {
      states_[id] = State::kLir;
      prune();
    } else {
      states_[id] = State::kHir;
      queue_.push_back(id);
    }
  }
  void used(const NaiveRequest& request) override {
    const Id id = request.id;
    const bool was_in_stack = take(stack_, id);
    stack_.push_back(id);
    if (states_[id] == State::kHir) {
      take(queue_, id);
      if (was_in_stack) {
        states_[id] = State::kLir;
        limit(count());
      } else {
        queue_.push_back(id);
      }
    }
    prune();
  }
  Id victim() override {
    filled_ = true;
    limit(count());
    return queue_.front();
  }
  void gone(Id id) override {
    take(queue_, id);
    if (states_[id] == State::kHir && has(stack_, id)) {
      states_[id] = State::kGone;
      gone_.push_back(id);
      while (gone_.size() > count()) {
        take(stack_, gone_.front());
        gone_.erase(gone_.begin());
      }
    } else {
      take(stack_, id);
      states_.erase(id);
    }
    prune();
  }
  void limit(std::size_t entries) {
    const std::size_t hir = std::max<std::size_t>(entries / 100, 1);
    const auto lir = [&] {
      return static_cast<std::size_t>(std::ranges::count_if(
          states_, [](const auto& each) { return each.second == State::kLir; }));
    };
    while (filled_ && lir() + hir > entries && lir() != 0) {
      prune();
      const Id id = stack_.front();
      stack_.erase(stack_.begin());
      states_[id] = State::kHir;
      queue_.push_back(id);
    }
    prune();
  }
  void prune() {
    while (!stack_.empty() && states_[stack_.front()] != State::kLir) {
      take(gone_, stack_.front());
      if (states_[stack_.front()] == State::kGone) states_.erase(stack_.front());
      stack_.erase(stack_.begin());
    }
  }
  Ids stack_;
  Ids queue_;
  Ids gone_;  // evicted keys in the stack, in the order of their eviction
  std::map<Id, State> states_;
  bool filled_ = false;
};

}  // namespace

std::unique_ptr<NaiveCache> make_naive_compared(EvictionPolicy policy, std::uint64_t capacity,
                                                const NaiveCost& cost) {
  switch (policy) {
    case EvictionPolicy::kRandom:
      return std::make_unique<NaiveRandom>(capacity);
    case EvictionPolicy::kClock:
      return std::make_unique<NaiveClock>(capacity);
    case EvictionPolicy::kLruTwo:
      return std::make_unique<NaiveLruTwo>(capacity);
    case EvictionPolicy::kLfuda:
      return std::make_unique<NaiveLfuda>(capacity);
    case EvictionPolicy::kHyperbolic:
      return std::make_unique<NaiveHyperbolic>(capacity, cost);
    case EvictionPolicy::kLirs:
      return std::make_unique<NaiveLirs>(capacity);
    default:
      return make_naive_learning(policy, capacity);
  }
}

}  // namespace encore::cache::test
