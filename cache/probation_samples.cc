#include "cache/probation_samples.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace encore::cache {
namespace {

// Costs are halved each half turn, and judged after each quarter of one.
constexpr double kJudgeTurns = 0.25;
constexpr double kKept = 0.70710678118654752;  // 2^(-1/2)
// A rule that is cheaper by less is not worth a change of the pair's window.
constexpr double kCheaper = 0.01;
// Checks the number of objects in the cache once in so many calls.
constexpr std::uint64_t kRateEvery = 1024;
// Another part of the keys than other samples take (SampleOptions::seed).
constexpr std::uint64_t kSampleSeed = 0x70726f62;

struct Tuning {
  ProbationRule rule;
  double handicap = 0;
};
constexpr std::array kTunings = {
#define ENCORE_TUNING(id, name, w, a, c, handicap) \
  Tuning{{.window = (w), .all = (a), .chance = (c)}, (handicap)},
    ENCORE_PROBATION_SAMPLES(ENCORE_TUNING)
#undef ENCORE_TUNING
};

std::uint64_t scaled(std::uint64_t value, double rate) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, std::llround(static_cast<double>(value) * rate)));
}

std::uint64_t whole_bytes(const ProbationCacheSettings& settings) {
  return settings.memory_bytes + settings.copies_bytes + settings.disk_bytes;
}

ProbationCacheSettings scaled(const ProbationCacheSettings& whole, double rate) {
  ProbationCacheSettings sample = whole;
  sample.memory_bytes = scaled(whole.memory_bytes, rate);
  sample.copies_bytes = 0;  // they change no decision
  sample.disk_bytes = scaled(whole.disk_bytes, rate);
  sample.segment_bytes = whole.segment_bytes == 0 ? 0 : scaled(whole.segment_bytes, rate);
  sample.keys.capacity = scaled(whole.keys.capacity, rate);
  sample.keys.bits = std::max<std::uint64_t>(scaled(whole.keys.bits, rate), whole.keys.hashes);
  return sample;
}

}  // namespace

ProbationRule rule_of(ProbationSample sample) noexcept {
  return kTunings[static_cast<std::size_t>(sample)].rule;
}

double handicap_of(ProbationSample sample) noexcept {
  return kTunings[static_cast<std::size_t>(sample)].handicap;
}

double ProbationSamples::rate_for(double objects) {
  return std::min(kRateMax, kObjects / std::max(1.0, objects));
}

ProbationSamples::ProbationSamples(const Settings& settings)
    : settings_(settings),
      sample_({.rate = settings.rate, .objects_max = 0, .seed = kSampleSeed}),
      followed_(settings.followed),
      turn_bytes_(settings.rate * static_cast<double>(whole_bytes(settings.whole))) {}

Result<ProbationSamples> ProbationSamples::create(const Settings& settings, MonotonicTime now) {
  if (!(settings.rate > 0 && settings.rate <= kRateMax)) {
    return fail("a sample of " + std::to_string(settings.rate) +
                " of the keys, accepted: above 0, up to 0.25");
  }
  if (!(settings.write_cost >= 0 && settings.write_cost <= kWriteCostMax)) {
    return fail("a write cost of " + std::to_string(settings.write_cost) +
                ", accepted: 0 to 100 bytes fetched for a byte written");
  }
  ProbationSamples samples(settings);
  for (const Tuning& tuning : kTunings) {
    ProbationCacheSettings tried = scaled(settings.whole, settings.rate);
    tried.rule = tuning.rule;
    auto cache = ProbationCache::create(tried, now);
    if (!cache) {
      return std::unexpected(cache.error());
    }
    samples.tried_.push_back({.cache = std::move(*cache)});
  }
  return samples;
}

bool ProbationSamples::request(const ProbationRequest& request) {
  return sample_.contains(request.key) && take(request);
}

bool ProbationSamples::take(const ProbationRequest& request) {
  // Validations cost no bytes: for a sample all that is there is fresh.
  ProbationRequest asked = request;
  asked.fresh_until = MonotonicTime::max();
  for (Tried& tried : tried_) {
    tried.cache.request(asked);
  }
  asked_bytes_ += static_cast<double>(request.size_bytes);
  const ProbationSample before = followed_;
  if (asked_bytes_ > kJudgeTurns * turn_bytes_) {
    judge();
  }
  return followed_ != before;
}

double ProbationSamples::weighed(std::size_t sample) const {
  return tried_[sample].cost * (1 + kTunings[sample].handicap);
}

void ProbationSamples::judge() {
  asked_bytes_ = 0;
  std::size_t best = 0;
  for (std::size_t i = 0; i < tried_.size(); ++i) {
    Tried& tried = tried_[i];
    const double charged =
        static_cast<double>(tried.cache.counts().missed_bytes()) +
        settings_.write_cost * static_cast<double>(tried.cache.log().counts().written_bytes());
    tried.cost = tried.cost * kKept + charged - tried.charged;
    tried.charged = charged;
    if (weighed(i) < weighed(best)) {
      best = i;
    }
  }
  if (weighed(best) < (1 - kCheaper) * weighed(static_cast<std::size_t>(followed_))) {
    followed_ = static_cast<ProbationSample>(best);
  }
  ++tried_[static_cast<std::size_t>(followed_)].judgements;
}

ProbationSamples::State ProbationSamples::state(ProbationSample sample) const {
  const Tried& tried = tried_[static_cast<std::size_t>(sample)];
  return {.cost = tried.cost,
          .judgements = tried.judgements,
          .counts = tried.cache.counts(),
          .log = tried.cache.log().counts()};
}

std::uint64_t ProbationSamples::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Tried& tried : tried_) {
    bytes += tried.cache.memory_bytes();
  }
  return bytes;
}

Result<TunedProbation> TunedProbation::create(const ProbationCacheSettings& settings,
                                              std::optional<double> write_cost, MonotonicTime now) {
  ProbationCacheSettings own = settings;
  if (write_cost) {
    own.rule = rule_of(ProbationSample::kOne);
    // Samples come later; what they would refuse is refused here.
    auto samples = ProbationSamples::create({.whole = own, .write_cost = *write_cost}, now);
    if (!samples) {
      return std::unexpected(samples.error());
    }
  }
  auto cache = ProbationCache::create(own, now);
  if (!cache) {
    return std::unexpected(cache.error());
  }
  return TunedProbation(own, write_cost, std::move(*cache));
}

ProbationAnswer TunedProbation::request(const ProbationRequest& request) {
  if (write_cost_) {
    if (requests_++ % kRateEvery == 0 || !samples_) {
      choose_rate(request.now);
    }
    if (samples_ && samples_->request(request)) {
      cache_.set_rule(rule_of(samples_->followed()));
    }
  }
  return cache_.request(request);
}

void TunedProbation::choose_rate(MonotonicTime now) {
  const Probation& probation = cache_.probation();
  const DiskLoad disks = cache_.load();
  const double on_disk = probation.objects_when_full(disks);
  if (probation.fetched_count() < kFetchedMin || on_disk <= 0) {
    return;
  }
  const double whole =
      static_cast<double>(whole_bytes(settings_)) / static_cast<double>(settings_.disk_bytes);
  const double rate = ProbationSamples::rate_for(on_disk * whole);
  // New samples begin empty, so the present ones stay unless they are wrong by a factor of two
  // (docs/decisions/0420).
  if (samples_ && rate < 2 * samples_->rate() && rate > samples_->rate() / 2) {
    return;
  }
  auto samples = ProbationSamples::create(
      {.whole = settings_,
       .rate = rate,
       .write_cost = *write_cost_,
       .followed = samples_ ? samples_->followed() : ProbationSample::kOne},
      now);
  if (samples) {  // without memory for them the rule in force stays
    samples_ = std::move(*samples);
  }
}

std::uint64_t TunedProbation::memory_bytes() const {
  return cache_.memory_bytes() + (samples_ ? samples_->memory_bytes() : 0);
}

}  // namespace encore::cache
