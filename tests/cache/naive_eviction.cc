#include "tests/cache/naive_eviction.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "cache/lhd.h"

namespace encore::cache::test {

bool NaiveCache::has(const Ids& ids, Id id) { return std::ranges::find(ids, id) != ids.end(); }

bool NaiveCache::take(Ids& ids, Id id) {
  const auto at = std::ranges::find(ids, id);
  if (at == ids.end()) {
    return false;
  }
  ids.erase(at);
  return true;
}

void NaiveCache::shrink(Ids& ids, std::size_t size) {
  while (ids.size() > size) {
    ids.erase(ids.begin());
  }
}

bool NaiveCache::request(const NaiveRequest& request) {
  if (residents_.contains(request.id)) {
    used(request);
    return true;
  }
  while (bytes_ + request.size > capacity_) {
    Id goes = victim();
    if (defect_every_ != 0 && ++evictions_ % defect_every_ == 0) {
      goes = residents_.begin()->first == goes ? residents_.rbegin()->first
                                               : residents_.begin()->first;
    }
    gone(goes);
    bytes_ -= residents_.at(goes);
    residents_.erase(goes);
  }
  added(request);
  residents_[request.id] = request.size;
  bytes_ += request.size;
  return false;
}

namespace {

class NaiveFifo : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 protected:
  void added(const NaiveRequest& request) override { order_.push_back(request.id); }
  void used(const NaiveRequest& /*request*/) override {}
  Id victim() override { return order_.front(); }
  void gone(Id id) override { take(order_, id); }
  Ids order_;
};

class NaiveLru final : public NaiveFifo {
 public:
  using NaiveFifo::NaiveFifo;

 private:
  void used(const NaiveRequest& request) override {
    take(order_, request.id);
    order_.push_back(request.id);
  }
};

// The hand is the next object to check; 0: the oldest.
class NaiveSieve final : public NaiveFifo {
 public:
  using NaiveFifo::NaiveFifo;

 private:
  void added(const NaiveRequest& request) override {
    NaiveFifo::added(request);
    visited_[request.id] = false;
  }
  void used(const NaiveRequest& request) override { visited_[request.id] = true; }
  Id victim() override {
    auto at = hand_ == 0 ? order_.begin() : std::ranges::find(order_, hand_);
    while (visited_[*at]) {
      visited_[*at] = false;
      at = std::next(at) == order_.end() ? order_.begin() : std::next(at);
    }
    hand_ = *at;
    return *at;
  }
  void gone(Id id) override {
    if (hand_ == id) {
      const auto next = std::next(std::ranges::find(order_, id));
      hand_ = next == order_.end() ? 0 : *next;
    }
    take(order_, id);
  }
  std::map<Id, bool> visited_;
  Id hand_ = 0;
};

class NaiveSlru final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override { probation_.push_back(request.id); }
  void used(const NaiveRequest& request) override {
    take(probation_, request.id);
    take(protected_, request.id);
    protected_.push_back(request.id);
    if (5 * protected_.size() > 4 * count()) {
      probation_.push_back(protected_.front());
      protected_.erase(protected_.begin());
    }
  }
  Id victim() override { return probation_.empty() ? protected_.front() : probation_.front(); }
  void gone(Id id) override { take(probation_, id) || take(protected_, id); }
  Ids probation_;
  Ids protected_;
};

// A1in, A1out and Am of the paper.
class NaiveTwoQ final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    (take(a1_out_, request.id) ? am_ : a1_in_).push_back(request.id);
  }
  void used(const NaiveRequest& request) override {
    if (take(am_, request.id)) {
      am_.push_back(request.id);
    }
  }
  Id victim() override {
    const bool from_in = !a1_in_.empty() && (am_.empty() || 4 * a1_in_.size() > count());
    return from_in ? a1_in_.front() : am_.front();
  }
  void gone(Id id) override {
    if (take(a1_in_, id)) {
      a1_out_.push_back(id);
      shrink(a1_out_, count() / 2);
    }
    take(am_, id);
  }
  Ids a1_in_;
  Ids a1_out_;
  Ids am_;
};

// The lists of the paper. c is the number of residents: the paper's pages are of one size.
class NaiveArc final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    const double b1 = std::max<double>(static_cast<double>(b1_.size()), 1);
    const double b2 = std::max<double>(static_cast<double>(b2_.size()), 1);
    if (take(b1_, request.id)) {
      p_ = std::min(p_ + std::max(1.0, b2 / b1), static_cast<double>(count() + 1));
      t2_.push_back(request.id);
    } else if (take(b2_, request.id)) {
      p_ = std::max(p_ - std::max(1.0, b1 / b2), 0.0);
      t2_.push_back(request.id);
    } else {
      t1_.push_back(request.id);
    }
  }
  void used(const NaiveRequest& request) override {
    take(t1_, request.id) || take(t2_, request.id);
    t2_.push_back(request.id);
  }
  Id victim() override {
    const bool from_t1 = !t1_.empty() && (t2_.empty() || static_cast<double>(t1_.size()) > p_);
    return from_t1 ? t1_.front() : t2_.front();
  }
  void gone(Id id) override {
    const std::size_t c = count();
    const std::size_t t1 = t1_.size();
    (take(t1_, id) ? b1_ : b2_).push_back(id);
    take(t2_, id);
    shrink(b1_, c - std::min(c, t1));
    shrink(b2_, c - std::min(c, b1_.size()));
  }
  Ids t1_;
  Ids t2_;
  Ids b1_;
  Ids b2_;
  double p_ = 0;
};

// The lowest rank goes, the one that got it first among equals.
class NaiveRanked : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 protected:
  struct Rank {
    double value = 0;
    std::uint64_t since = 0;
  };
  void rank(Id id, double value) { ranks_[id] = {value, ++clock_}; }
  Id victim() override {
    return std::ranges::min_element(ranks_,
                                    [](const auto& a, const auto& b) {
                                      return a.second.value != b.second.value
                                                 ? a.second.value < b.second.value
                                                 : a.second.since < b.second.since;
                                    })
        ->first;
  }
  void gone(Id id) override { ranks_.erase(id); }
  std::map<Id, Rank> ranks_;

 private:
  std::uint64_t clock_ = 0;
};

class NaiveLfu final : public NaiveRanked {
 public:
  using NaiveRanked::NaiveRanked;

 private:
  void added(const NaiveRequest& request) override { rank(request.id, 1); }
  void used(const NaiveRequest& request) override {
    rank(request.id, ranks_[request.id].value + 1);
  }
};

class NaiveGdsf final : public NaiveRanked {
 public:
  NaiveGdsf(std::uint64_t capacity, const NaiveCost& cost) : NaiveRanked(capacity), cost_(cost) {}

 private:
  void added(const NaiveRequest& request) override {
    uses_[request.id] = 0;
    used(request);
  }
  void used(const NaiveRequest& request) override {
    const auto size = static_cast<double>(request.size);
    rank(request.id, l_ + ++uses_[request.id] * cost_.of(size) / size);
  }
  void gone(Id id) override {
    l_ = std::max(l_, ranks_[id].value);
    NaiveRanked::gone(id);
  }
  NaiveCost cost_;
  std::map<Id, double> uses_;
  double l_ = 0;
};

class NaiveBelady final : public NaiveRanked {
 public:
  using NaiveRanked::NaiveRanked;

 private:
  void added(const NaiveRequest& request) override {
    rank(request.id, -static_cast<double>(request.next));
  }
  void used(const NaiveRequest& request) override { added(request); }
};

class NaiveS3Fifo final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    const bool fills = !evicted_ && 10 * small_.size() > count();
    (take(ghosts_, request.id) || fills ? main_ : small_).push_back(request.id);
    uses_[request.id] = 0;
  }
  void used(const NaiveRequest& request) override {
    uses_[request.id] = std::min(uses_[request.id] + 1, 3);
  }
  Id victim() override {
    while (true) {
      const bool from_small = !small_.empty() && (main_.empty() || 10 * small_.size() >= count());
      Ids& queue = from_small ? small_ : main_;
      const Id id = queue.front();
      if (from_small ? uses_[id] <= 1 : uses_[id] == 0) {
        return id;
      }
      queue.erase(queue.begin());
      main_.push_back(id);
      uses_[id] = from_small ? 0 : uses_[id] - 1;
    }
  }
  void gone(Id id) override {
    evicted_ = true;
    if (take(small_, id)) {
      ghosts_.push_back(id);
      shrink(ghosts_, main_.size());
    }
    take(main_, id);
  }
  Ids small_;
  Ids main_;
  Ids ghosts_;
  std::map<Id, int> uses_;
  bool evicted_ = false;
};

// A list that is searched by a map: for a model that runs at the sizes of real caches.
class NaiveQueue {
 public:
  using Id = std::uint64_t;
  void push_back(Id id) { places_[id] = ids_.insert(ids_.end(), id); }
  Id front() const { return ids_.front(); }
  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  // Whether it was there; it is not now.
  bool take(Id id) {
    const auto at = places_.find(id);
    if (at == places_.end()) {
      return false;
    }
    ids_.erase(at->second);
    places_.erase(at);
    return true;
  }
  Id take_front() {
    const Id id = front();
    take(id);
    return id;
  }

 private:
  std::list<Id> ids_;
  std::unordered_map<Id, std::list<Id>::iterator> places_;
};

// Frequencies are exact, up to 15; all are halved after ten uses for each resident.
class NaiveWTinyLfu final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    window_.push_back(request.id);
    count_use(request.id);
    if (!evicted_ && window_.size() > 1 && 100 * window_.size() > count() + 1) {
      probation_.push_back(window_.take_front());
    }
  }
  void used(const NaiveRequest& request) override {
    count_use(request.id);
    if (window_.take(request.id)) {
      window_.push_back(request.id);
      return;
    }
    probation_.take(request.id) || protected_.take(request.id);
    protected_.push_back(request.id);
    if (5 * protected_.size() > 4 * (protected_.size() + probation_.size())) {
      probation_.push_back(protected_.take_front());
    }
  }
  Id victim() override {
    if (probation_.empty() && protected_.empty()) {
      return window_.front();
    }
    const Id main = probation_.empty() ? protected_.front() : probation_.front();
    const bool full = 100 * window_.size() > count();
    return full && frequencies_[window_.front()] <= frequencies_[main] ? window_.front() : main;
  }
  void gone(Id id) override {
    evicted_ = true;
    if (window_.take(id)) {
      return;
    }
    if (100 * window_.size() > count()) {
      probation_.push_back(window_.take_front());
    }
    probation_.take(id) || protected_.take(id);
  }
  void count_use(Id id) {
    // A newcomer is counted before it is resident.
    const std::uint64_t held = count() + (residents().contains(id) ? 0 : 1);
    frequencies_[id] = std::min(frequencies_[id] + 1, 15U);
    if (++uses_ >= 10 * held) {
      uses_ /= 2;
      for (auto& [key, frequency] : frequencies_) {
        frequency /= 2;
      }
    }
  }
  NaiveQueue window_;
  NaiveQueue probation_;
  NaiveQueue protected_;
  std::map<Id, std::uint32_t> frequencies_;
  std::uint64_t uses_ = 0;
  bool evicted_ = false;
};

// Hit density from the list of all ends of lives, by its definition. Holds for caches in which a
// victim is chosen among all entries. The borders of ages and classes are the policy's own.
class NaiveLhd final : public NaiveCache {
 public:
  NaiveLhd(std::uint64_t capacity, const NaiveCost& cost) : NaiveCache(capacity), cost_(cost) {}

 private:
  struct Life {
    std::uint32_t of_class;
    std::uint32_t bucket;
    bool hit;
    double weight;
  };
  struct State {
    std::uint64_t used = 0;
    std::uint64_t last_age = 0;
    std::uint32_t of_class = 0;
    std::size_t place = 0;
  };
  void added(const NaiveRequest& request) override {
    tick();
    states_[request.id] = {.used = clock_, .place = places_.size()};
    places_.push_back(request.id);
  }
  void used(const NaiveRequest& request) override {
    tick();
    State& state = states_[request.id];
    const std::uint64_t age = clock_ - state.used;
    lives_.push_back({state.of_class, HitDensity::bucket_of(age), true, 1});
    state.of_class = HitDensity::class_of(age + state.last_age);
    state.last_age = age;
    state.used = clock_;
  }
  Id victim() override {
    Id lowest = places_.front();
    for (const Id id : places_) {
      if (density(id) < density(lowest)) {
        lowest = id;
      }
    }
    return lowest;
  }
  void gone(Id id) override {
    const State& state = states_[id];
    lives_.push_back({state.of_class, HitDensity::bucket_of(clock_ - state.used), false, 1});
    // The last one takes its place, so that the first of equals is the same.
    places_[state.place] = places_.back();
    states_[places_.back()].place = state.place;
    places_.pop_back();
    states_.erase(id);
  }
  void tick() {
    if (++since_ >= std::max<std::uint64_t>(places_.size(), 512)) {
      since_ = 0;
      learn();
    }
    ++clock_;
  }
  static double first_age(std::uint32_t bucket) {
    return static_cast<double>(HitDensity::age_of(bucket));
  }
  void learn() {
    for (std::uint32_t c = 0; c < HitDensity::kClasses; ++c) {
      for (std::uint32_t b = 0; b < HitDensity::kAges; ++b) {
        double hits = 0;
        double lived = 0;
        for (const Life& life : lives_) {
          if (life.of_class == c && life.bucket >= b) {
            hits += life.hit ? life.weight : 0;
            const double middle = (first_age(life.bucket) + first_age(life.bucket + 1)) / 2;
            lived += life.weight * (middle - first_age(b));
          }
        }
        densities_[{c, b}] = (hits + 0.125) / (lived + 0.125 * (first_age(b) + 1));
      }
    }
    for (Life& life : lives_) {
      life.weight *= 0.875;
    }
    std::erase_if(lives_, [](const Life& life) { return life.weight < 1e-9; });
  }
  double density(Id id) {
    const State& state = states_[id];
    const std::uint32_t bucket = HitDensity::bucket_of(clock_ - state.used);
    const auto learnt = densities_.find({state.of_class, bucket});
    const double value = learnt == densities_.end() ? 1 / (first_age(bucket) + 1) : learnt->second;
    const auto size = static_cast<double>(size_of(id));
    return value / (size / cost_.of(size));
  }
  NaiveCost cost_;
  std::map<Id, State> states_;
  Ids places_;
  std::vector<Life> lives_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> densities_;
  std::uint64_t clock_ = 0;
  std::uint64_t since_ = 0;
};

}  // namespace

std::unique_ptr<NaiveCache> make_naive(EvictionPolicy policy, std::uint64_t capacity,
                                       const NaiveCost& cost) {
  switch (policy) {
    case EvictionPolicy::kSieve:
      return std::make_unique<NaiveSieve>(capacity);
    case EvictionPolicy::kLru:
      return std::make_unique<NaiveLru>(capacity);
    case EvictionPolicy::kFifo:
      return std::make_unique<NaiveFifo>(capacity);
    case EvictionPolicy::kS3Fifo:
      return std::make_unique<NaiveS3Fifo>(capacity);
    case EvictionPolicy::kSlru:
      return std::make_unique<NaiveSlru>(capacity);
    case EvictionPolicy::kTwoQ:
      return std::make_unique<NaiveTwoQ>(capacity);
    case EvictionPolicy::kArc:
      return std::make_unique<NaiveArc>(capacity);
    case EvictionPolicy::kLfu:
      return std::make_unique<NaiveLfu>(capacity);
    case EvictionPolicy::kGdsf:
      return std::make_unique<NaiveGdsf>(capacity, cost);
    case EvictionPolicy::kWTinyLfu:
      return std::make_unique<NaiveWTinyLfu>(capacity);
    case EvictionPolicy::kLhd:
      return std::make_unique<NaiveLhd>(capacity, cost);
    case EvictionPolicy::kBelady:
      return std::make_unique<NaiveBelady>(capacity);
    default:
      return make_naive_compared(policy, capacity, cost);
  }
}

}  // namespace encore::cache::test
