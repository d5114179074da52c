// The admission policies against naive models on exact sets, request by request, before an LRU
// cache of objects that count as one each.
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "cache/candidate.h"
#include "cache/size_model.h"
#include "tests/cache/naive_eviction.h"
#include "tests/cache/support.h"

namespace encore::cache::test {
namespace {

constexpr std::size_t kResidents = 40;
constexpr std::uint64_t kWindow = 300;
constexpr std::uint64_t kThreshold = 20;

struct Asked {
  std::uint64_t id = 0;
  std::uint64_t size = 0;
  // The entry that would be evicted; 0: none.
  std::uint64_t victim = 0;
};

class NaiveAdmission {
 public:
  virtual ~NaiveAdmission() = default;
  virtual bool admit(const Asked& asked) = 0;
  virtual void used(std::uint64_t /*id*/) {}
};

class NaiveConstant final : public NaiveAdmission {
 public:
  explicit NaiveConstant(bool answer) : answer_(answer) {}
  bool admit(const Asked& /*asked*/) override { return answer_; }

 private:
  bool answer_;
};

// Two generations of what was asked for: (object, how often before).
class NaiveNthHit final : public NaiveAdmission {
 public:
  explicit NaiveNthHit(std::uint64_t n) : n_(n) {}
  bool admit(const Asked& asked) override {
    for (std::uint64_t before = 1; before < n_; ++before) {
      const std::pair name(asked.id, before);
      const bool known = current_.contains(name) || older_.contains(name);
      if (current_.insert(name).second && ++insertions_ == kWindow) {
        insertions_ = 0;
        older_ = std::move(current_);
        current_.clear();
      }
      if (!known) {
        return false;
      }
    }
    return true;
  }

 private:
  std::uint64_t n_;
  std::uint64_t insertions_ = 0;
  std::set<std::pair<std::uint64_t, std::uint64_t>> current_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> older_;
};

class NaiveProbability final : public NaiveAdmission {
 public:
  bool admit(const Asked& asked) override { return draw(key(asked.id).hash, asked_++) < 0.25; }

 private:
  std::uint64_t asked_ = 0;
};

class NaiveSizeThreshold final : public NaiveAdmission {
 public:
  bool admit(const Asked& asked) override { return asked.size <= kThreshold; }
};

// Exact counts up to 15 behind a set; all are halved and the set emptied after a window.
class NaiveTinyLfu final : public NaiveAdmission {
 public:
  bool admit(const Asked& asked) override {
    used(asked.id);
    return asked.victim == 0 || frequency(asked.id) > frequency(asked.victim);
  }
  void used(std::uint64_t id) override {
    if (!doorkeeper_.insert(id).second) {
      counts_[id] = std::min(counts_[id] + 1, 15);
    }
    if (++requests_ == kWindow) {
      requests_ /= 2;
      doorkeeper_.clear();
      for (auto& [of, count] : counts_) {
        count /= 2;
      }
    }
  }

 private:
  int frequency(std::uint64_t id) { return counts_[id] + (doorkeeper_.contains(id) ? 1 : 0); }
  std::set<std::uint64_t> doorkeeper_;
  std::map<std::uint64_t, int> counts_;
  std::uint64_t requests_ = 0;
};

// All candidates for c in one pass, over all objects.
class NaiveAdaptSize final : public NaiveAdmission {
 public:
  bool admit(const Asked& asked) override {
    const double p = std::exp(-static_cast<double>(asked.size) / c_);
    const bool yes = draw(key(asked.id).hash, asked_++) < p;
    objects_[asked.id].size = static_cast<double>(asked.size);
    used(asked.id);
    if (until_tuned_ != 0 && --until_tuned_ == 0) {
      c_ = next_c_;
    }
    return yes;
  }
  void used(std::uint64_t id) override {
    const auto at = objects_.find(id);
    if (at != objects_.end()) {
      at->second.requests += 1;
    }
    if (++since_ >= kWindow && until_tuned_ == 0) {
      since_ = 0;
      tune();
    }
  }

 private:
  struct Object {
    double requests = 0;
    double size = 0;
  };
  double hits(double c) const {
    double time = 1;
    double sum = 0;
    for (int pass = 0; pass <= 16; ++pass) {
      double held = 0;
      sum = 0;
      for (const auto& [id, object] : objects_) {
        const double grown = std::exp(-object.size / c) * (std::exp(object.requests * time) - 1);
        held += object.size * grown / (1 + grown);
        sum += object.requests * grown / (1 + grown);
      }
      time = std::min(time * kResidents / held, 1.0);
    }
    return sum;
  }
  void tune() {
    double most = -1;
    std::uint64_t tried = 0;
    for (double c = 64;; c *= std::sqrt(2.0)) {
      const double now = hits(c);
      ++tried;
      if (now >= most) {
        most = now;
        next_c_ = c;
      }
      if (c > kResidents) {
        break;
      }
    }
    until_tuned_ = tried * 18;
    for (auto& [id, object] : objects_) {
      object.requests /= 2;
    }
    std::erase_if(objects_, [](const auto& object) { return object.second.requests < 0.1; });
  }
  std::map<std::uint64_t, Object> objects_;
  double c_ = 32768;
  double next_c_ = 0;
  std::uint64_t until_tuned_ = 0;
  std::uint64_t since_ = 0;
  std::uint64_t asked_ = 0;
};

std::unique_ptr<NaiveAdmission> make_naive_admission(AdmissionPolicy policy) {
  switch (policy) {
    case AdmissionPolicy::kSecondHit:
    case AdmissionPolicy::kExactSecondHit:
    case AdmissionPolicy::kProbation:  // without disks
      return std::make_unique<NaiveNthHit>(2);
    case AdmissionPolicy::kNthHit:
      return std::make_unique<NaiveNthHit>(4);
    case AdmissionPolicy::kAlways:
    case AdmissionPolicy::kNever:
      return std::make_unique<NaiveConstant>(policy == AdmissionPolicy::kAlways);
    case AdmissionPolicy::kProbability:
      return std::make_unique<NaiveProbability>();
    case AdmissionPolicy::kSizeThreshold:
      return std::make_unique<NaiveSizeThreshold>();
    case AdmissionPolicy::kTinyLfu:
      return std::make_unique<NaiveTinyLfu>();
    case AdmissionPolicy::kAdaptSize:
      return std::make_unique<NaiveAdaptSize>();
  }
  return nullptr;
}

KernelOptions model_options(AdmissionPolicy policy) {
  KernelOptions options = plain_options(kResidents);
  options.eviction = EvictionPolicy::kLru;
  options.concurrent = false;
  options.admission.policy = policy;
  options.admission.filter.bits = 1U << 18U;  // no false positive in so few
  options.admission.filter.capacity = kWindow;
  options.admission.min_requests = 4;
  options.admission.probability = 0.25;
  options.admission.size_threshold_bytes = kThreshold;
  return options;
}

struct Outcome {
  std::uint64_t decisions = 0;
  std::uint64_t differences = 0;
  std::uint64_t admitted = 0;
};

// Every `defect_every`-th decision of the model is turned around, where that is not 0.
Outcome compare_admission(AdmissionPolicy policy, std::uint64_t defect_every = 0) {
  const auto kernel = make_kernel(model_options(policy));
  const auto model = make_naive_admission(policy);
  std::vector<std::uint64_t> order;  // least recently used first
  std::mt19937_64 random(7);
  std::geometric_distribution<std::uint64_t> popular(0.01);
  Outcome outcome;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t id = 1 + popular(random);
    // A kernel without room for more takes no larger ones: sizes are what is said of the objects.
    const std::uint64_t size = 1 + id * 37 % kResidents;
    const auto at = std::ranges::find(order, id);
    const bool hit = kernel->lookup(key(id), test::at(0)).state != LookupState::kMiss;
    if (hit != (at != order.end())) {
      ++outcome.differences;
      return outcome;
    }
    if (hit) {
      order.erase(at);
      order.push_back(id);
      model->used(id);
      continue;
    }
    const bool full = order.size() + size > kResidents && !order.empty();
    const bool expected =
        model->admit({.id = id, .size = size, .victim = full ? order.front() : 0}) !=
        (defect_every != 0 && outcome.decisions % defect_every == defect_every - 1);
    const bool admitted = is_stored(kernel->admit(key(id), {.size_bytes = size}, test::at(0)));
    ++outcome.decisions;
    outcome.differences += admitted != expected ? 1U : 0U;
    outcome.admitted += admitted ? 1U : 0U;
    if (admitted) {
      REQUIRE(store(*kernel, key(id), {.charge_bytes = 1}, test::at(0)) == CommitOutcome::kStored);
      if (order.size() == kResidents) {
        order.erase(order.begin());
      }
      order.push_back(id);
    }
  }
  return outcome;
}

AdmissionPolicy admission_policy(std::size_t number) {
  return static_cast<AdmissionPolicy>(number);
}

}  // namespace

TEST_CASE("Every admission policy decides as its naive model does", "[cache][admission]") {
  const auto policy = admission_policy(GENERATE(range(std::size_t{0}, kAdmissionPolicyCount)));
  INFO(to_string(policy));
  const Outcome outcome = compare_admission(policy);
  CHECK(outcome.differences == 0);
  CHECK(outcome.decisions > 1000);
  if (policy != AdmissionPolicy::kNever && policy != AdmissionPolicy::kAlways) {
    CHECK(outcome.admitted > 100);
    CHECK(outcome.admitted < outcome.decisions);
  }
  // The comparison can fail: one wrong answer in a hundred is seen.
  CHECK(compare_admission(policy, 100).differences > 0);
}

TEST_CASE("nth-hit of two requests is second-hit", "[cache][admission]") {
  KernelOptions options = model_options(AdmissionPolicy::kSecondHit);
  options.admission.filter.bits = 1U << 12U;  // false positives too
  const auto second = make_kernel(options);
  options.admission.policy = AdmissionPolicy::kNthHit;
  options.admission.min_requests = 2;
  const auto nth = make_kernel(options);
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t id = random() % 1000;
    REQUIRE(is_stored(second->admit(key(id), {}, at(0))) ==
            is_stored(nth->admit(key(id), {}, at(0))));
  }
}

TEST_CASE("nth-hit tells its requests apart with a hash of the key's text too",
          "[cache][admission]") {
  KernelOptions options = model_options(AdmissionPolicy::kNthHit);
  options.admission.filter.hash = filter::HashFamily::kMurmur3;
  const auto kernel = make_kernel(options);
  for (const std::uint64_t id : {1U, 2U}) {
    for (int request = 1; request < 4; ++request) {
      CHECK_FALSE(kernel->would_admit(key(id), at(0)));
      CHECK(kernel->admit(key(id), {}, at(0)) == AdmitReason::kFewRequests);
    }
    CHECK(kernel->would_admit(key(id), at(0)));
    CHECK(kernel->admit(key(id), {}, at(0)) == AdmitReason::kEnoughRequests);
  }
  // All that wait for one response count.
  CHECK(kernel->admit(key(3), {.requests = 3}, at(0)) == AdmitReason::kFewRequests);
  CHECK(kernel->admit(key(4), {.requests = 4}, at(0)) == AdmitReason::kEnoughRequests);
}

TEST_CASE("Each request is a draw of its own under probability", "[cache][admission]") {
  const auto kernel = make_kernel(model_options(AdmissionPolicy::kProbability));
  // 4.5 standard deviations of a share of 20,000 at p = 0.25, for many keys and for one.
  const double bound = 4.5 * std::sqrt(0.25 * 0.75 / 20000);
  for (const bool one_key : {false, true}) {
    int admitted = 0;
    int promised = 0;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      const Key asked = key(one_key ? 1 : i);
      const bool would = kernel->would_admit(asked, at(0));
      const bool does = is_stored(kernel->admit(asked, {}, at(0)));
      admitted += does ? 1 : 0;
      promised += would == does ? 1 : 0;
    }
    CHECK(std::abs(admitted / 20000.0 - 0.25) < bound);
    CHECK(promised == 20000);
  }
}

TEST_CASE("An unknown size counts as the largest, and as the smallest before the answer",
          "[cache][admission]") {
  KernelOptions options = model_options(AdmissionPolicy::kSizeThreshold);
  options.capacity_bytes = 10'000;
  const auto kernel = make_kernel(options);
  CHECK(kernel->admit(key(1), {.size_bytes = 0}, at(0)) == AdmitReason::kPolicyRefuses);
  CHECK(kernel->admit(key(1), {.size_bytes = kThreshold}, at(0)) == AdmitReason::kPolicyAdmits);
  CHECK(kernel->admit(key(1), {.size_bytes = kThreshold + 1}, at(0)) ==
        AdmitReason::kPolicyRefuses);
  CHECK(kernel->would_admit(key(1), at(0)));
  CHECK(kernel->would_admit(key(1), at(0), kThreshold));
  CHECK_FALSE(kernel->would_admit(key(1), at(0), kThreshold + 1));
  CHECK_FALSE(kernel->would_admit(key(1), at(0), 10'001));  // larger than the cache takes
}

TEST_CASE("Changed parameters take effect without forgetting", "[cache][admission]") {
  KernelOptions options = model_options(AdmissionPolicy::kNthHit);
  const auto kernel = make_kernel(options);
  CHECK(kernel->admit(key(1), {.requests = 2}, at(0)) == AdmitReason::kFewRequests);
  ReloadOptions reload = reload_options(options);
  reload.admission.min_requests = 3;
  REQUIRE(kernel->reconfigure(reload, at(1)));
  CHECK(kernel->admit(key(1), {}, at(1)) == AdmitReason::kEnoughRequests);
  reload.admission.min_requests = kMinRequestsMax + 1;
  CHECK(kernel->reconfigure(reload, at(2)).error().message ==
        "nth-hit with 17 requests, accepted: 2 to 16");
  reload = reload_options(options);
  reload.admission.policy = AdmissionPolicy::kProbability;
  reload.admission.probability = 1;
  REQUIRE(kernel->reconfigure(reload, at(2)));
  CHECK(kernel->admit(key(9), {}, at(2)) == AdmitReason::kPolicyAdmits);
  reload.admission.probability = 1e-12;
  REQUIRE(kernel->reconfigure(reload, at(3)));
  CHECK(kernel->admit(key(9), {}, at(3)) == AdmitReason::kPolicyRefuses);
  reload.admission.probability = 0;
  CHECK_FALSE(kernel->reconfigure(reload, at(4)));
}

TEST_CASE("The sample of adaptsize is bounded, and its c that of all objects",
          "[cache][admission]") {
  // Small popular objects and large ones that are hardly asked for, twenty times the bound.
  SizeModel sampled(1'000'000);
  std::mt19937_64 random(5);
  for (int i = 0; i < 60'000; ++i) {
    const bool small = random() % 2 == 0;
    const std::uint64_t id = small ? random() % 3000 : 3000 + random() % 7000;
    sampled.add(key(id).hash, small ? 1000 : 100'000);
  }
  CHECK(sampled.objects() <= SizeModel::kObjectsMax);
  CHECK(sampled.objects() > SizeModel::kObjectsMax / 4);
  sampled.begin();
  REQUIRE(sampled.is_tuning());
  double best = 0;
  for (double c = 64; c < 2'000'000; c *= 2) {
    best = std::max(best, sampled.hits(c));
  }
  const SizeModel frozen = sampled;
  while (!sampled.step()) {
  }
  CHECK(frozen.hits(sampled.best()) >= best);
  // Large objects are kept out.
  CHECK(std::exp(-100'000 / sampled.best()) < 0.05);
}

TEST_CASE("The model of adaptsize takes nothing to stay longer than was watched",
          "[cache][admission]") {
  SizeModel model(1'000'000);  // room for all, so only the time that was watched bounds the hits
  for (int i = 0; i < 3; ++i) {
    model.add(key(1).hash, 1000);
  }
  model.begin();
  const double grown = std::exp(-1000 / 500.0) * (std::exp(3.0) - 1);
  CHECK(std::abs(model.hits(500) - 3 * grown / (1 + grown)) < 1e-9);
}

}  // namespace encore::cache::test
