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
  }
  const MutexLock lock(mutex_);
  settings_ = {.number = number, .sample = prepared.sample_};
  if (resampled) waiting_.clear();
  if (prepared.sample_ != 0 && !thread_.joinable()) thread_ = std::thread([this] { run(); });
}

ShadowCaches::Settings ShadowCaches::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

void ShadowCaches::take(Part part) {
  {
    const MutexLock lock(mutex_);
    if (part.number != settings_.number || settings_.sample == 0) return;
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
  for (Entry& entry : caches_) {
    for (const cache::ShadowRequest& request : part.requests) entry.cache->feed(request);
  }
}

ShadowReports ShadowCaches::report(MonotonicTime now) const {
  ShadowReports reports;
  {
    const MutexLock lock(mutex_);
    reports.dropped = dropped_;
  }
  const MutexLock lock(caches_mutex_);
  reports.sample = sample_;
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
  if (settings.sample == 0) return;
  sample_ = sample_of(settings.sample);
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
