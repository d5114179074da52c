#include "proxy/observe/shadow_caches.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace encore::server {
namespace {

cache::SpatialSample sample_of(std::uint32_t one_in) {
  return cache::SpatialSample({.rate = 1.0 / one_in});
}

}  // namespace

ShadowCaches::~ShadowCaches() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<ShadowCaches::Prepared> ShadowCaches::prepare(const Wanted& wanted,
                                                     MonotonicTime now) const {
  Prepared prepared;
  prepared.sample_ = wanted.policies.empty() ? 0 : wanted.sample;
  for (const Policy& policy : wanted.policies) {
    prepared.entries_.push_back({.name = policy.name, .made = nullptr});
    {
      const MutexLock lock(caches_mutex_);
      const auto same = std::ranges::find(caches_, policy.name, &Entry::name);
      if (same != caches_.end() && sample_ == wanted.sample &&
          same->cache->options() == policy.whole) {
        continue;
      }
    }
    auto made = cache::ShadowCache::create(policy.whole, sample_of(wanted.sample), now);
    if (!made) return fail("shadow policy \"" + policy.name + "\": " + made.error().message);
    prepared.entries_.back().made = std::move(*made);
  }
  return prepared;
}

void ShadowCaches::adopt(Prepared prepared, MonotonicTime now) {
  std::vector<Entry> before;
  bool resampled = false;
  std::uint64_t number = 0;
  double taken = 0;
  {
    const MutexLock lock(caches_mutex_);
    before.swap(caches_);
    for (Prepared::Entry& entry : prepared.entries_) {
      const auto same = std::ranges::find(before, entry.name, &Entry::name);
      if (entry.made == nullptr) {
        caches_.push_back(std::move(*same));
      } else {
        caches_.push_back({.name = std::move(entry.name),
                           .cache = std::move(entry.made),
                           .before = all_,
                           .began = now});
      }
    }
    resampled = sample_ != prepared.sample_;
    sample_ = prepared.sample_;
    simulated_ += resampled ? 1 : 0;
    number = simulated_;
    taken = rate();
  }
  set_settings(number, taken);
}

void ShadowCaches::set_settings(std::uint64_t number, double rate) {
  const MutexLock lock(mutex_);
  if (number != settings_.number) waiting_.clear();
  settings_ = {.number = number, .rate = rate};
  if (rate != 0 && !thread_.joinable()) thread_ = std::thread([this] { run(); });
}

double ShadowCaches::rate() const {
  return std::max(sample_ == 0 ? 0 : 1.0 / sample_, tuner_ ? tuner_->tuning.rate : 0);
}

Result<void> ShadowCaches::tune(const std::optional<cache::ProbationTuning>& tuning,
                                MonotonicTime now) {
  std::uint64_t number = 0;
  double taken = 0;
  {
    const MutexLock lock(caches_mutex_);
    std::optional<Tuner> next;
    if (tuning) {
      auto samples = cache::ProbationSamples::create(
          {.whole = tuning->whole,
           .rate = tuning->rate,
           .write_cost = tuning->write_cost,
           .followed = tuner_ ? tuner_->samples.followed() : cache::ProbationSample::kOne},
          now);
      if (!samples) return std::unexpected(samples.error());
      next.emplace(Tuner{.tuning = *tuning,
                         .sample = cache::SpatialSample({.rate = tuning->rate}),
                         .samples = std::move(*samples)});
    }
    tuner_ = std::move(next);
    number = ++simulated_;
    taken = rate();
  }
  set_settings(number, taken);
  return {};
}

std::optional<cache::ProbationRule> ShadowCaches::rule() const {
  const MutexLock lock(caches_mutex_);
  if (!tuner_) return std::nullopt;
  return cache::rule_of(tuner_->samples.followed());
}

ShadowCaches::Settings ShadowCaches::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

void ShadowCaches::take(Part part) {
  {
    const MutexLock lock(mutex_);
    if (part.number != settings_.number || settings_.rate == 0) return;
    if (waiting_.size() >= kPartsMax) {
      dropped_ += part.all.requests;
      return;
    }
    waiting_.push_back(std::move(part));
  }
  wake_.notify_one();
}

void ShadowCaches::run() {
  // It may begin at a reload: signals are the main thread's.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    Part part;
    {
      const MutexLock lock(mutex_);
      while (!stop_ && waiting_.empty()) wake_.wait(mutex_);
      if (stop_) return;
      part = std::move(waiting_.front());
      waiting_.pop_front();
    }
    simulate(part);
  }
}

void ShadowCaches::simulate(const Part& part) {
  const MutexLock lock(caches_mutex_);
  if (part.number != simulated_) return;
  all_ += part.all;
  // A smaller sample is a part of a larger one.
  if (!caches_.empty()) {
    const cache::SpatialSample sample = sample_of(sample_);
    for (Entry& entry : caches_) {
      for (const cache::ShadowRequest& request : part.requests) {
        if (sample.contains(request.key)) entry.cache->feed(request);
      }
    }
  }
  if (!tuner_) return;
  for (const cache::ShadowRequest& request : part.requests) {
    if (!tuner_->sample.contains(request.key) || request.rule != 0) continue;
    filter::Hash128 key = request.key;
    if (request.variant != 0) key.lo ^= filter::scrambled(request.variant);
    tuner_->samples.take({.key = key, .size_bytes = request.charge_bytes, .now = request.now});
  }
}

std::optional<TuningReport> ShadowCaches::report_tuning() const {
  if (!tuner_) return std::nullopt;
  TuningReport report{.rate = tuner_->tuning.rate,
                      .write_cost = tuner_->tuning.write_cost,
                      .memory_bytes = tuner_->samples.memory_bytes(),
                      .tried = {}};
  for (std::size_t i = 0; i < cache::kProbationSampleCount; ++i) {
    const auto sample = static_cast<cache::ProbationSample>(i);
    const cache::ProbationSamples::State state = tuner_->samples.state(sample);
    report.tried.push_back({.rule = to_string(sample),
                            .cost = state.cost,
                            .followed = sample == tuner_->samples.followed(),
                            .judgements = state.judgements,
                            .requests = state.counts.requests,
                            .hits = state.counts.memory_hits + state.counts.disk_hits,
                            .bytes_requested = state.counts.bytes,
                            .bytes_missed = state.counts.missed_bytes(),
                            .bytes_written = state.log.written_bytes(),
                            .weight = 1 + cache::handicap_of(sample)});
  }
  return report;
}

const TriedReport* TuningReport::best_at(double price) const {
  const auto cost = [&](const TriedReport& each) {
    return each.weight * (static_cast<double>(each.bytes_missed) +
                          price * static_cast<double>(each.bytes_written));
  };
  const auto best = std::ranges::min_element(tried, {}, cost);
  return best == tried.end() || best->requests == 0 ? nullptr : &*best;
}

ShadowReports ShadowCaches::report(MonotonicTime now) const {
  ShadowReports reports;
  {
    const MutexLock lock(mutex_);
    reports.dropped = dropped_;
  }
  const MutexLock lock(caches_mutex_);
  reports.sample = sample_;
  reports.tuning = report_tuning();
  for (const Entry& entry : caches_) {
    const cache::ShadowCache& cache = *entry.cache;
    const cache::ShadowCounts in_force = all_ - entry.before;
    reports.policies.push_back(
        {.name = entry.name,
         .admission = std::string(to_string(cache.options().admission.policy)),
         .eviction = std::string(to_string(cache.options().eviction)),
         .capacity_bytes = cache.options().capacity_bytes,
         .sampled = cache.counts(),
         .estimated = cache.estimate(in_force),
         .in_force = in_force,
         .object_hit_ratio = cache.object_hit_ratio(in_force),
         .byte_hit_ratio = cache.byte_hit_ratio(in_force),
         .objects = cache.objects(),
         .memory_bytes = cache.memory_bytes(),
         .since = now - entry.began});
  }
  return reports;
}

void ShadowTap::follow() {
  if (caches_ == nullptr) return;
  const ShadowCaches::Settings settings = caches_->settings();
  if (settings.number == settings_.number) return;
  hand_over();
  settings_ = settings;
  sample_.reset();
  if (settings.rate == 0) return;
  sample_ = cache::SpatialSample({.rate = settings.rate});
  begin_part();
}

void ShadowTap::begin_part() {
  part_ = {.number = settings_.number, .all = {}, .requests = {}};
  stored_ = stats_.stored.get();
  stored_bytes_ = stats_.stored_bytes.get();
}

void ShadowTap::hand_over() {
  if (!is_on() || part_.all.requests == 0) return;
  part_.all.objects_written = stats_.stored.get() - stored_;
  part_.all.bytes_written = stats_.stored_bytes.get() - stored_bytes_;
  caches_->take(std::move(part_));
  begin_part();
}

}  // namespace encore::server
