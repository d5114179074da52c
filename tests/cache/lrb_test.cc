// LRB against a naive model, with a regressor that is simple and with XGBoost, where that is there.
#include "cache/lrb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "sim/learn/xgboost.h"
#include "tests/cache/naive_eviction.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

using Row = std::vector<float>;

// Predicts the target of the example whose time since the last use and last gap are nearest.
class NearestExample final : public Regressor {
 public:
  explicit NearestExample(const RegressorOptions& options) : width_(options.width) {}
  void fit(std::span<const float> rows, std::span<const float> targets) override {
    examples_.clear();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      examples_.push_back({point(&rows[i * width_]), targets[i]});
    }
  }
  void predict(std::span<const float> rows, std::span<float> predicted) const override {
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const auto [age, gap] = point(&rows[i * width_]);
      predicted[i] =
          std::ranges::min_element(examples_, {}, [&](const auto& example) {
            return std::abs(example.first.first - age) + std::abs(example.first.second - gap);
          })->second;
    }
  }

 private:
  using Point = std::pair<float, float>;
  static Point point(const float* row) { return {row[2], std::isnan(row[3]) ? 1000 : row[3]}; }
  std::size_t width_;
  std::vector<std::pair<Point, float>> examples_;
};

std::unique_ptr<Regressor> make_nearest(const RegressorOptions& options) {
  return std::make_unique<NearestExample>(options);
}

constexpr std::size_t kBatch = 300;
constexpr std::size_t kCandidates = 16;

// The paper's algorithm on lists of all uses.
class NaiveLrb final : public NaiveCache {
 public:
  NaiveLrb(std::uint64_t capacity, RegressorFactory make)
      : NaiveCache(capacity), model_(make({.width = 44, .trees = 8, .leaves = 8})) {}

 private:
  struct Example {
    Id id = 0;
    std::uint64_t drawn = 0;
    Row row;
  };
  void added(const NaiveRequest& request) override {
    begin();
    entries_.push_back(request.id);
    if (!has(known_, request.id)) known_.push_back(request.id);
    use(request);
  }
  void used(const NaiveRequest& request) override {
    begin();
    if (!has(known_, request.id)) known_.push_back(request.id);
    use(request);
  }
  void gone(Id id) override {
    full_ = true;
    swap_out(entries_, id);
    if (!has(known_, id)) uses_.erase(id);
  }
  Id victim() override {
    const Id lru = *std::ranges::min_element(entries_, {}, [&](Id id) { return last(id); });
    if (!trained_ || !has(known_, lru)) return lru;
    Ids candidates = entries_;
    if (entries_.size() > kCandidates) {
      for (std::size_t i = 0; i < kCandidates; ++i) candidates[i] = entries_[draw(entries_)];
      candidates.resize(kCandidates);
    }
    std::vector<float> predicted;
    for (const Id id : candidates) {
      float one = 0;
      model_->predict(features(id), {&one, 1});
      predicted.push_back(one);
    }
    return candidates[static_cast<std::size_t>(std::ranges::max_element(predicted) -
                                               predicted.begin())];
  }

  void begin() {
    ++now_;
    const std::uint64_t window = std::max<std::uint64_t>(10 * count(), 1);
    Ids late;
    for (const Id id : known_) {
      if (full_ && last(id) + window < now_) late.push_back(id);
    }
    std::ranges::sort(late, {}, [&](Id id) { return last(id); });
    for (const Id id : late) {
      end_examples(id, [&](const Example&) { return 2 * window; });
      swap_out(known_, id);
      if (!has(entries_, id)) uses_.erase(id);
    }
  }
  void use(const NaiveRequest& request) {
    end_examples(request.id, [&](const Example& example) { return now_ - example.drawn; });
    uses_[request.id].push_back(now_);
    sizes_[request.id] = request.size;
    if (!full_) return;
    const Id drawn = known_[draw(known_)];
    waiting_.insert(waiting_.begin(), {drawn, now_, features(drawn)});
    if (targets_.size() >= kBatch) {
      model_->fit(batch_, targets_);
      batch_.clear();
      targets_.clear();
      trained_ = true;
    }
  }
  template <typename Time>
  void end_examples(Id id, const Time& time) {
    for (const Example& example : waiting_) {  // the latest first
      if (example.id != id) continue;
      batch_.insert(batch_.end(), example.row.begin(), example.row.end());
      targets_.push_back(std::log2(1 + static_cast<float>(time(example))));
    }
    std::erase_if(waiting_, [&](const Example& example) { return example.id == id; });
  }
  std::uint64_t last(Id id) const { return uses_.at(id).back(); }
  Row features(Id id) const {
    const std::vector<std::uint64_t>& uses = uses_.at(id);
    const auto age = static_cast<float>(now_ - uses.back());
    Row row = {static_cast<float>(sizes_.at(id)), static_cast<float>(uses.size()), age};
    for (std::size_t i = 1; i <= 31; ++i) {
      const std::size_t n = uses.size();
      row.push_back(i < n ? static_cast<float>(uses[n - i] - uses[n - i - 1])
                          : std::numeric_limits<float>::quiet_NaN());
    }
    for (int i = 0; i < 10; ++i) {
      const float half_life = std::exp2(static_cast<float>(9 + i));
      float counter = 1;
      for (std::size_t n = 1; n < uses.size(); ++n) {
        counter = counter * std::exp2(-static_cast<float>(uses[n] - uses[n - 1]) / half_life) + 1;
      }
      row.push_back(counter * std::exp2(-age / half_life));
    }
    return row;
  }
  std::size_t draw(const Ids& from) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    const double drawn = static_cast<double>(state_ >> 11U) / 0x1p53;
    return static_cast<std::size_t>(drawn * static_cast<double>(from.size()));
  }
  static void swap_out(Ids& ids, Id id) {
    *std::ranges::find(ids, id) = ids.back();
    ids.pop_back();
  }

  std::unique_ptr<Regressor> model_;
  Ids entries_;
  Ids known_;  // requested within the window
  std::map<Id, std::vector<std::uint64_t>> uses_;
  std::map<Id, std::uint64_t> sizes_;
  std::vector<Example> waiting_;
  std::vector<float> batch_;
  std::vector<float> targets_;
  std::uint64_t state_ = 1;
  std::uint64_t now_ = 0;
  bool full_ = false;
  bool trained_ = false;
};

KernelOptions lrb_options(std::uint64_t capacity, RegressorFactory make,
                          std::size_t batch = kBatch) {
  KernelOptions options = plain_options(capacity);
  options.eviction = EvictionPolicy::kLrb;
  options.concurrent = false;
  options.eviction_settings.make_regressor = make;
  const auto set = [&](std::string_view name, std::size_t value) {
    const auto at = std::ranges::find(Lrb::kParameters, name, &PolicyParameter::name);
    options.eviction_settings.values.set(static_cast<std::size_t>(at - Lrb::kParameters.begin()),
                                         static_cast<double>(value));
  };
  set("batch", batch);
  set("sample", kCandidates);
  set("trees", 8);
  set("leaves", 8);
  return options;
}

bool ask_or_store(Kernel& kernel, const NaiveRequest& request) {
  if (kernel.lookup(key(request.id), at(0)).state != LookupState::kMiss) return true;
  store(kernel, key(request.id), {.charge_bytes = request.size}, at(0));
  return false;
}

// Objects in loops of their own length, popular ones, and some that never come again.
std::vector<NaiveRequest> mixed_requests(std::uint64_t seed, std::size_t count, bool sizes) {
  std::mt19937_64 random(seed);
  std::vector<NaiveRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t kind = random() % 4;
    const std::uint64_t id = kind == 0   ? 1000 + i
                             : kind == 1 ? 100 + i / 3 % (30 + seed)
                                         : 1 + random() % 60 * (random() % 60) / 60;
    requests[i] = {.id = id, .size = sizes ? 1 + id * 7 % 8 : 1};
  }
  return requests;
}

struct ComparedLrb {
  std::uint64_t differences = 0;
  std::uint64_t lru_differences = 0;
};

ComparedLrb compare_lrb(std::uint64_t seed, std::size_t count, RegressorFactory make) {
  const bool sizes = seed % 2 == 1;
  const std::uint64_t capacity = (sizes ? 4 : 1) * (10 + seed * 3);
  const auto kernel = make_kernel(lrb_options(capacity, make));
  NaiveLrb model(capacity, make);
  const auto lru = make_naive(EvictionPolicy::kLru, capacity);
  ComparedLrb compared;
  for (const NaiveRequest& one : mixed_requests(seed, count, sizes)) {
    const bool hit = ask_or_store(*kernel, one);
    compared.differences += hit != model.request(one) ? 1U : 0U;
    compared.lru_differences += hit != lru->request(one) ? 1U : 0U;
  }
  return compared;
}

double loop_hits(const KernelOptions& options) {
  const auto kernel = make_kernel(options);
  constexpr std::uint64_t kLoop = 250;
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; i < 60 * kLoop; ++i) {
    hits += ask_or_store(*kernel, {.id = i % kLoop}) && i >= 30 * kLoop ? 1U : 0U;
  }
  return static_cast<double>(hits) / (30 * kLoop);
}

}  // namespace

TEST_CASE("On twenty random traces LRB answers as its naive model does", "[cache]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("trace " << seed);
    const ComparedLrb compared = compare_lrb(seed, 2500, make_nearest);
    CHECK(compared.differences == 0);
    CHECK(compared.lru_differences > 20);  // it learnt something
  }
}

TEST_CASE("With boosted trees LRB answers as its naive model does", "[cache][plain]") {
  const auto xgboost = sim::load_xgboost();
  if (!xgboost) {
    WARN(xgboost.error().message);
    return;
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("trace " << seed);
    const ComparedLrb compared = compare_lrb(seed, 2500, *xgboost);
    CHECK(compared.differences == 0);
    CHECK(compared.lru_differences > 20);
  }
}

// Its paper's aim is to do as Belady does: in a loop larger than the cache, whose objects come back
// after the same time all, the one that was used last goes.
TEST_CASE("LRB learns to keep a part of a loop that LRU loses", "[cache]") {
  KernelOptions lru = plain_options(200);
  lru.eviction = EvictionPolicy::kLru;
  CHECK(loop_hits(lru) == 0);
  CHECK(loop_hits(lrb_options(200, nullptr)) == 0);  // it cannot learn
  const auto xgboost = sim::load_xgboost();
  if (!xgboost) {
    WARN(xgboost.error().message);
    return;
  }
  const double hits = loop_hits(lrb_options(200, *xgboost, 2000));
  CHECK(hits > 0.6);
  CHECK(hits <= 0.8);  // the cache's share
}

TEST_CASE("An object's gaps and counters are those of its uses", "[cache]") {
  UseHistory uses;
  uses.use(100, 7);
  uses.use(150, 8);
  uses.use(1000, 9);
  std::array<float, UseHistory::kFeatures> row{};
  uses.write(1512, row.data());
  CHECK(row[0] == 9);
  CHECK(row[1] == 3);
  CHECK(row[2] == 512);
  CHECK(row[3] == 850);
  CHECK(row[4] == 50);
  CHECK(std::isnan(row[5]));
  // Half-life 2^9: one half of each use that long ago.
  const double first = 0.5 * (1 + std::exp2(-850 / 512.0) * (1 + std::exp2(-50 / 512.0)));
  CHECK(row[3 + UseHistory::kGaps] == Approx(first).epsilon(1e-6));
}

}  // namespace encore::cache::test
