// Models of the policies that learn: which expert to follow, how wide a window is.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/cache/naive_eviction.h"

namespace encore::cache::test {
namespace {

// The numbers of the policies' own generator.
class NaiveDraws {
 public:
  double unit() {
    step();
    return static_cast<double>(state_ >> 11U) / 0x1p53;
  }
  bool is_lower_half() {
    step();
    return state_ < std::uint64_t{1} << 63U;
  }

 private:
  void step() { state_ = state_ * 6364136223846793005U + 1442695040888963407U; }
  std::uint64_t state_ = 1;
};

// A key of a history, or an entry: all that the papers' programs keep of either.
struct NaivePage {
  std::uint64_t id = 0;
  std::uint64_t frequency = 1;
  std::uint64_t last = 0;     // time of its last use
  std::uint64_t evicted = 0;  // time
  bool is_new = false;
  bool is_demoted = false;
};
using NaivePages = std::vector<NaivePage>;

std::optional<NaivePage> take_page(NaivePages& pages, std::uint64_t id) {
  const auto at = std::ranges::find(pages, id, &NaivePage::id);
  if (at == pages.end()) return std::nullopt;
  NaivePage page = *at;
  pages.erase(at);
  return page;
}

// Two experts with weights that are lowered by rewards below 0.
class NaiveWeights {
 public:
  void reward(double lru, double lfu, double rate) {
    lru_ *= std::exp(rate * lru);
    lfu_ *= std::exp(rate * lfu);
    const double sum = lru_ + lfu_;
    lru_ /= sum;
    lfu_ /= sum;
    if (lru_ >= 0.99) {
      lru_ = 0.99;
      lfu_ = 0.01;
    } else if (lfu_ >= 0.99) {
      lru_ = 0.01;
      lfu_ = 0.99;
    }
  }
  double lru() const { return lru_; }

 private:
  double lru_ = 0.5;
  double lfu_ = 0.5;
};

// The program of the paper's authors, with the entries at the moment as the cache's size.
class NaiveLecar final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    ++now_;
    NaivePage page{.id = request.id, .last = now_};
    const double cache_size = static_cast<double>(std::max<std::size_t>(pages_.size(), 1));
    const auto regret = [&](const NaivePage& ghost) {
      page.frequency = ghost.frequency + 1;
      return std::pow(0.005, static_cast<double>(now_ - ghost.evicted) / cache_size);
    };
    if (const auto ghost = take_page(lru_history_, request.id)) {
      weights_.reward(-regret(*ghost), 0, 0.45);
    } else if (const auto other = take_page(lfu_history_, request.id)) {
      weights_.reward(0, -regret(*other), 0.45);
    }
    pages_.push_back(page);
  }
  void used(const NaiveRequest& request) override {
    NaivePage page = *take_page(pages_, request.id);
    page.last = ++now_;
    ++page.frequency;
    pages_.push_back(page);
  }
  Id victim() override {
    const auto lru = std::ranges::min_element(pages_, {}, &NaivePage::last);
    const auto lfu = std::ranges::min_element(
        pages_, {}, [](const NaivePage& page) { return std::pair(page.frequency, page.last); });
    const bool by_lru = draws_.unit() < weights_.lru();
    history_ = lru == lfu ? nullptr : by_lru ? &lru_history_ : &lfu_history_;
    return by_lru ? lru->id : lfu->id;
  }
  void gone(Id id) override {
    NaivePage page = *take_page(pages_, id);
    page.evicted = now_;
    if (history_ == nullptr) return;
    history_->push_back(page);
    while (history_->size() > (pages_.size() + 1) / 2) history_->erase(history_->begin());
  }
  NaivePages pages_;
  NaivePages lru_history_;  // oldest first
  NaivePages lfu_history_;
  NaivePages* history_ = nullptr;  // for the next one that goes
  NaiveWeights weights_;
  NaiveDraws draws_;
  std::uint64_t now_ = 0;
};

// Section 5 of the paper on CACHEUS, by the program of its authors.
class NaiveRate {
 public:
  void begin(std::size_t period) {
    reset_ = std::sqrt(2 * std::log(2.0) / static_cast<double>(period));
    current_ = rate_ = reset_;
    reset_ = std::min(std::max(reset_, 0.001), 1.0);
  }
  double rate() const { return rate_; }
  void update(double hit_ratio, NaiveDraws& draws) {
    const double hits = round3(hit_ratio);
    const double hits_changed = round3(hits - previous_hits_);
    const double rate_changed = round3(current_) - round3(previous_);
    const double direction = rate_changed * hits_changed;
    if (direction > 0) {
      rate_ = std::min(rate_ + std::abs(rate_ * rate_changed), 1.0);
      zero_ = negative_ = 0;
    } else if (direction < 0) {
      rate_ = std::max(rate_ - std::abs(rate_ * rate_changed), 0.001);
      zero_ = negative_ = 0;
    } else if (hits <= 0 || hits_changed <= 0) {
      ++zero_;
      if (hits_changed < 0) ++negative_;
      if (zero_ >= 10) {
        rate_ = reset_;
        zero_ = 0;
      } else if (hits_changed < 0 && negative_ >= 10) {
        rate_ = reset_;
        negative_ = 0;
      } else if (hits_changed < 0) {
        in_random_direction(draws);
      }
    }
    previous_ = current_;
    current_ = rate_;
    previous_hits_ = hits;
  }

 private:
  static double round3(double x) { return std::round(x * 1000) / 1000; }
  void in_random_direction(NaiveDraws& draws) {
    if (rate_ >= 1) {
      rate_ = 0.9;
    } else if (rate_ <= 0.001) {
      rate_ = 0.005;
    } else if (draws.is_lower_half()) {
      rate_ = std::min(rate_ * 1.25, 1.0);
    } else {
      rate_ = std::max(rate_ * 0.75, 0.001);
    }
  }
  double rate_ = 1;
  double reset_ = 1;
  double current_ = 0;
  double previous_ = 0;
  double previous_hits_ = 0;
  int zero_ = 0;
  int negative_ = 0;
};

class NaiveCacheus final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    next_period();
    NaivePage page{.id = request.id, .last = ++now_, .is_new = full_};
    const std::size_t size = s_.size() + q_.size();
    auto& to = full_ ? q_ : s_;
    if (const auto ghost = take_page(lru_history_, request.id)) {
      if (ghost->is_new) {
        const std::size_t news = std::max<std::size_t>(new_evicted(), 1);
        q_limit_ =
            std::min(limit(size) + one_or_more(demoted(), news), std::max<std::size_t>(size, 1));
      }
      weights_.reward(-1, 0, rate_.rate());
      add_to_s(page, ghost->frequency);
    } else if (const auto other = take_page(lfu_history_, request.id)) {
      weights_.reward(0, -1, rate_.rate());
      add_to_s(page, other->frequency);
    } else {
      to.push_back(page);
    }
    if (full_) limit_stack();
  }
  void used(const NaiveRequest& request) override {
    next_period();
    if (full_) ++hits_;
    std::optional<NaivePage> page = take_page(s_, request.id);
    if (!page) {
      const std::size_t size = s_.size() + q_.size();
      const std::size_t demoted_ones = std::max<std::size_t>(demoted(), 1);
      page = take_page(q_, request.id);
      if (page->is_demoted) {
        const std::size_t was = limit(size);
        const std::size_t less = one_or_more(new_evicted(), demoted_ones);
        q_limit_ = was > less ? was - less : 1;
      }
    }
    page->last = ++now_;
    ++page->frequency;
    page->is_new = page->is_demoted = false;
    s_.push_back(*page);
    if (full_) limit_stack();
  }
  Id victim() override {
    if (!full_) {
      full_ = true;
      q_limit_ = std::max<std::size_t>(s_.size() / 100, 1);
      rate_.begin(s_.size());
    }
    limit_stack();
    NaivePages all = s_;
    all.insert(all.end(), q_.begin(), q_.end());
    const Id lfu = std::ranges::min_element(all, {}, [&](const NaivePage& page) {
                     return std::pair(page.frequency, ~page.last);
                   })->id;
    const Id lru = q_.front().id;
    const bool by_lru = draws_.unit() < weights_.lru();
    history_ = lru == lfu ? nullptr : by_lru ? &lru_history_ : &lfu_history_;
    return by_lru ? lru : lfu;
  }
  void gone(Id id) override {
    const std::size_t size = s_.size() + q_.size();
    std::optional<NaivePage> page = take_page(q_, id);
    if (!page) page = take_page(s_, id);
    if (history_ == nullptr) return;
    history_->push_back(*page);
    while (history_->size() > size / 2) history_->erase(history_->begin());
  }
  void add_to_s(NaivePage page, std::uint64_t frequency) {
    page.frequency = frequency + 1;
    page.is_new = false;
    s_.push_back(page);
  }
  void limit_stack() {
    const std::size_t size = s_.size() + q_.size();
    while (!s_.empty() && s_.size() + limit(size) > size) {
      NaivePage page = s_.front();
      s_.erase(s_.begin());
      page.is_demoted = true;
      q_.push_back(page);
    }
  }
  // Limit of R in a cache of so many entries.
  std::size_t limit(std::size_t size) const {
    return std::min(q_limit_, size < 2 ? std::size_t{1} : size - 1);
  }
  std::size_t demoted() const {
    return static_cast<std::size_t>(std::ranges::count(q_, true, &NaivePage::is_demoted));
  }
  std::size_t new_evicted() const {
    return static_cast<std::size_t>(std::ranges::count(lru_history_, true, &NaivePage::is_new));
  }
  static std::size_t one_or_more(std::size_t a, std::size_t b) {
    const double rounded = std::floor(static_cast<double>(a) / static_cast<double>(b) + 0.5);
    return std::max<std::size_t>(static_cast<std::size_t>(rounded), 1);
  }
  void next_period() {
    // Before it is full nothing counts.
    if (full_ && requests_ >= std::max<std::size_t>(s_.size() + q_.size(), 1)) {
      rate_.update(static_cast<double>(hits_) / static_cast<double>(requests_), draws_);
      requests_ = hits_ = 0;
    }
    if (full_) ++requests_;
  }
  NaivePages s_;  // least recent first, as the others
  NaivePages q_;
  NaivePages lru_history_;
  NaivePages lfu_history_;
  NaivePages* history_ = nullptr;
  std::size_t q_limit_ = 1;
  NaiveWeights weights_;
  NaiveRate rate_;
  NaiveDraws draws_;
  std::uint64_t now_ = 0;
  std::size_t requests_ = 0;
  std::size_t hits_ = 0;
  bool full_ = false;
};

// Frequencies are exact, up to 15.
class NaiveAdaptiveWTinyLfu final : public NaiveCache {
 public:
  using NaiveCache::NaiveCache;

 private:
  void added(const NaiveRequest& request) override {
    window_.push_back(request.id);
    count_use(request.id, count() + 1);
    if (!evicted_ && window_.size() > 1 && share(window_) > width_) {
      probation_.push_back(window_.front());
      window_.erase(window_.begin());
    }
    climb(false);
  }
  void used(const NaiveRequest& request) override {
    count_use(request.id, count());
    if (take(window_, request.id)) {
      window_.push_back(request.id);
    } else {
      take(probation_, request.id) || take(protected_, request.id);
      protected_.push_back(request.id);
      if (protected_is_large()) demote();
    }
    climb(true);
  }
  Id victim() override {
    if (probation_.empty() && protected_.empty()) return window_.front();
    const Id main = probation_.empty() ? protected_.front() : probation_.front();
    const bool full = !window_.empty() && share(window_) > width_;
    return full && frequencies_[window_.front()] <= frequencies_[main] ? window_.front() : main;
  }
  void gone(Id id) override {
    evicted_ = true;
    if (take(window_, id)) return;
    if (!window_.empty() && share(window_) > width_) {
      probation_.push_back(window_.front());
      window_.erase(window_.begin());
    }
    take(probation_, id) || take(protected_, id);
  }
  std::size_t all() const { return window_.size() + probation_.size() + protected_.size(); }
  // In millionths, exactly: the policy counts so.
  double share(const Ids& ids) const {
    return static_cast<double>(ids.size()) * 1e6 / static_cast<double>(all());
  }
  bool protected_is_large() const {
    return 5 * protected_.size() > 4 * (protected_.size() + probation_.size());
  }
  void demote() {
    probation_.push_back(protected_.front());
    protected_.erase(protected_.begin());
  }
  void count_use(Id id, std::size_t held) {
    frequencies_[id] = std::min(frequencies_[id] + 1, 15U);
    if (++uses_ >= 10 * held) {
      uses_ /= 2;
      for (auto& [key, frequency] : frequencies_) frequency /= 2;
    }
  }
  void climb(bool hit) {
    if (!evicted_) return;
    hits_ += hit ? 1 : 0;
    if (++sample_ < 10 * all()) return;
    const double ratio = static_cast<double>(hits_) / static_cast<double>(sample_);
    const double change = ratio - previous_;
    const double amount = change >= 0 ? step_ : -step_;
    step_ = std::abs(change) < 0.05 ? 0.98 * amount : amount > 0 ? 0.0625 : -0.0625;
    previous_ = ratio;
    const double aimed = exact_ + amount;
    exact_ = std::min(std::max(aimed, 0.0), 0.8);
    if (aimed < 0 || aimed > 0.8) step_ = -step_;
    width_ = std::floor(exact_ * 1e6 + 0.5);
    sample_ = hits_ = 0;
    while (window_.size() > 1 && share(window_) > width_) {
      probation_.push_back(window_.front());
      window_.erase(window_.begin());
    }
    const auto wanted = static_cast<std::size_t>(width_ * static_cast<double>(all()) / 1e6);
    while (window_.size() < wanted) {
      Ids& from = probation_.empty() ? protected_ : probation_;
      window_.push_back(from.front());
      from.erase(from.begin());
    }
    while (protected_is_large()) demote();
  }
  Ids window_;
  Ids probation_;
  Ids protected_;
  std::map<Id, std::uint32_t> frequencies_;
  std::uint64_t uses_ = 0;
  double exact_ = 0.01;
  double width_ = 10'000;  // in millionths
  double step_ = 0.0625;
  double previous_ = 0;
  std::size_t sample_ = 0;
  std::size_t hits_ = 0;
  bool evicted_ = false;
};

}  // namespace

std::unique_ptr<NaiveCache> make_naive_learning(EvictionPolicy policy, std::uint64_t capacity) {
  switch (policy) {
    case EvictionPolicy::kLecar:
      return std::make_unique<NaiveLecar>(capacity);
    case EvictionPolicy::kCacheus:
      return std::make_unique<NaiveCacheus>(capacity);
    case EvictionPolicy::kAdaptiveWTinyLfu:
      return std::make_unique<NaiveAdaptiveWTinyLfu>(capacity);
    case EvictionPolicy::kLrb:  // without a regressor
      return make_naive(EvictionPolicy::kLru, capacity);
    default:
      return nullptr;
  }
}

}  // namespace encore::cache::test
