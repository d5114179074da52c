#include "sim/replay/replay_run.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "cache/charge.h"
#include "sim/replay/direct_cache.h"

namespace encore::sim {
namespace {

// A filter with another hash family hashes the key's text: the identity hash stands for it.
cache::Key key_of(const ReplayRequest& request) {
  return {request.key,
          std::string_view(reinterpret_cast<const char*>(&request.key), sizeof request.key)};
}

// Policies that store an object once it was requested often enough.
bool counts_requests(cache::AdmissionPolicy policy) {
  return policy == cache::AdmissionPolicy::kSecondHit ||
         policy == cache::AdmissionPolicy::kExactSecondHit ||
         policy == cache::AdmissionPolicy::kNthHit;
}

constexpr std::array kOutcomeNames = {
#define ENCORE_NAME(id, name) std::string_view(name),
    ENCORE_REPLAY_OUTCOMES(ENCORE_NAME)
#undef ENCORE_NAME
};

template <typename Counts>
void subtract_each(Counts& from, const Counts& before) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] -= before[i];
  }
}

void subtract(cache::KernelCounters& from, const cache::KernelCounters& before) {
#define ENCORE_SUBTRACT(id, meaning) from.id -= before.id;
  ENCORE_KERNEL_COUNTERS(ENCORE_SUBTRACT)
#undef ENCORE_SUBTRACT
  subtract_each(from.admissions, before.admissions);
}

void subtract(cache::DiskCounters& from, const cache::DiskCounters& before) {
#define ENCORE_SUBTRACT(id, meaning) from.id -= before.id;
  ENCORE_DISK_COUNTERS(ENCORE_SUBTRACT)
#undef ENCORE_SUBTRACT
  subtract_each(from.outcomes, before.outcomes);
  subtract_each(from.losses, before.losses);
  subtract_each(from.part_outcomes, before.part_outcomes);
  subtract_each(from.part_losses, before.part_losses);
}

}  // namespace

std::string_view to_string(ReplayOutcome outcome) noexcept {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

ReplayCounts ReplayCounts::operator-(const ReplayCounts& other) const {
  ReplayCounts d = *this;
  d.requests -= other.requests;
  d.hits -= other.hits;
  d.validations -= other.validations;
  d.bytes_requested -= other.bytes_requested;
  d.bytes_hit -= other.bytes_hit;
  d.bytes_from_origin -= other.bytes_from_origin;
  d.objects_written -= other.objects_written;
  d.bytes_written -= other.bytes_written;
  d.bytes_rewritten -= other.bytes_rewritten;
  d.not_stored_full -= other.not_stored_full;
  d.disk_hits -= other.disk_hits;
  d.disk_bytes_hit -= other.disk_bytes_hit;
  d.disk_bytes_admitted -= other.disk_bytes_admitted;
  d.disk_bytes_moved -= other.disk_bytes_moved;
  d.disk_bytes_filled -= other.disk_bytes_filled;
  d.disk_objects_dropped -= other.disk_objects_dropped;
  d.disk_objects_refused -= other.disk_objects_refused;
  d.disk_parts_dropped -= other.disk_parts_dropped;
  d.disk_objects_broken -= other.disk_objects_broken;
  d.heaviest_requests -= other.heaviest_requests;
  d.heaviest_hits -= other.heaviest_hits;
  d.heaviest_bytes -= other.heaviest_bytes;
  d.heaviest_bytes_hit -= other.heaviest_bytes_hit;
  return d;
}

ReplayRun::ReplayRun(const ReplayOptions& options) : options_(options) {}
ReplayRun::~ReplayRun() = default;

Result<std::unique_ptr<ReplayRun>> ReplayRun::create(const ReplayOptions& options,
                                                     std::unique_ptr<CacheGroup> fleet) {
  auto run = std::unique_ptr<ReplayRun>(new ReplayRun(options));
  run->options_.kernel.concurrent = false;
  ENCORE_CHECK((fleet != nullptr) == options.fleet.has_value(), "a fleet comes with its options");
  if (fleet != nullptr) {
    run->fleet_ = std::move(fleet);
    return run;
  }
  if (options.probation && !options.own) {
    if (auto made = run->make_probation(); !made) {
      return std::unexpected(made.error());
    }
    return run;
  }
  auto kernel = cache::Kernel::create(run->options_.kernel, {}, MonotonicTime{});
  if (!kernel) {
    return std::unexpected(kernel.error());
  }
  run->kernel_ = std::move(*kernel);
  if (!options.asks_kernel) {
    run->direct_ = DirectCache::create(run->options_);
  }
  if (run->options_.own && run->direct_ == nullptr) {
    return fail(
        "a policy of your own in a cache that is not plain, accepted: one shard, no disk, "
        "admission "
        "always (the policy itself may refuse objects)");
  }
  return run;
}

void ReplayRun::feed(std::span<const ReplayRequest> requests) {
  if (direct_ == nullptr) {
    constexpr std::size_t kAhead = 8;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (kernel_ != nullptr && i + kAhead < requests.size()) {
        kernel_->prefetch(key_of(requests[i + kAhead]));
      }
      ask(requests[i]);
    }
    return;
  }
  // In parts between the end of the warm-up and the ends of intervals.
  while (!requests.empty()) {
    const bool counts = has_ended_warmup();
    if (seen_ == options_.warmup_requests && seen_ != 0) {
      begin_counting();
    }
    std::uint64_t room = counts ? UINT64_MAX : options_.warmup_requests - seen_;
    if (options_.interval_requests != 0) {
      room = std::min(room, options_.interval_requests - seen_ % options_.interval_requests);
    }
    const auto part = requests.first(std::min<std::uint64_t>(room, requests.size()));
    requests = requests.subspan(part.size());
    direct_->feed(part, {.counts = counts ? &counts_ : nullptr, .outcomes = options_.outcomes});
    seen_ += part.size();
    if (!counts) {
      for (const ReplayRequest& request : part) {
        warm_objects_.add(request.object);
      }
    }
    if (options_.interval_requests != 0) {
      for (const ReplayRequest& request : part) {
        working_set_.add(request.object, charge_of(request));
      }
      if (seen_ % options_.interval_requests == 0) {
        end_interval();
      }
    }
  }
}

cache::KernelStatistics ReplayRun::present() const {
  if (fleet_ != nullptr) {
    return fleet_->statistics();
  }
  if (probation_) {
    return probation_statistics();
  }
  cache::KernelStatistics statistics = kernel_->statistics();
  if (direct_ != nullptr) {
    direct_->fill_in(statistics);
  }
  return statistics;
}

cache::AdmissionStatistics ReplayRun::present_admission(std::uint64_t lines_max) const {
  return fleet_ != nullptr ? fleet_->admission()
         : probation_      ? probation_keys()
                           : kernel_->admission_statistics(lines_max);
}

void ReplayRun::begin_counting() {
  if (fleet_ != nullptr) {
    fleet_->end_warmup();  // its figures are those since then
    return;
  }
  warm_kernel_ = present();
  warm_admission_ = present_admission();
}

cache::KernelStatistics ReplayRun::kernel() const {
  cache::KernelStatistics now = present();
  subtract(now.counters, warm_kernel_.counters);
  subtract(now.disk.counters, warm_kernel_.disk.counters);
  for (std::size_t i = 0; i < warm_kernel_.disk.disks.size(); ++i) {
    now.disk.disks[i].admitted_bytes -= warm_kernel_.disk.disks[i].admitted_bytes;
    now.disk.disks[i].moved_bytes -= warm_kernel_.disk.disks[i].moved_bytes;
  }
  return now;
}

cache::AdmissionStatistics ReplayRun::admission() const {
  cache::AdmissionStatistics now = present_admission();
  const cache::AdmissionStatistics& warm = warm_admission_;
  now.insertions -= warm.insertions;
  now.refreshes -= warm.refreshes;
  now.rotations -= warm.rotations;
  now.measured.asked -= warm.measured.asked;
  now.measured.false_positives -= warm.measured.false_positives;
  now.measured.false_negatives -= warm.measured.false_negatives;
  now.measured.expected -= warm.measured.expected;
  return now;
}

ReplayOutcome ReplayRun::ask(const ReplayRequest& request) {
  if (!has_ended_warmup()) {
    warm_objects_.add(request.object);
  } else if (seen_ == options_.warmup_requests && seen_ != 0) {
    begin_counting();
  }
  // Logs are not always in order; the kernel's time is.
  now_ = std::max(now_, MonotonicTime(Nanoseconds(request.time_ns)));
  if (options_.tuning) {
    tune_kernel(request);
  }
  const ReplayOutcome outcome = fleet_ != nullptr ? fleet_->ask(request)
                                : probation_      ? ask_probation(request)
                                                  : ask_kernel(request);
  if (options_.outcomes != nullptr) {
    options_.outcomes->push_back(outcome);
  }
  ++seen_;
  if (options_.interval_requests != 0) {
    working_set_.add(request.object, charge_of(request));
    if (seen_ % options_.interval_requests == 0) {
      end_interval();
    }
  }
  return outcome;
}

ReplayOutcome ReplayRun::ask_kernel(const ReplayRequest& request) {
  const cache::Key key = key_of(request);
  cache::DiskView on_disk;
  cache::LookupResult found = kernel_->lookup(key, now_, options_.hint_of(request), &on_disk);
  if (found.on_disk()) {
    look_for_parts(request, key, on_disk, found);
  }
  fresh_until_ = found.fresh_until;
  const bool hit = found.state == cache::LookupState::kFresh;
  const bool counts = has_ended_warmup();
  if (counts) {
    counts_.add_request(request);
    if (hit) {
      counts_.add_hit(request);
      counts_.disk_hits += found.on_disk() ? 1U : 0U;
      counts_.disk_bytes_hit += found.on_disk() ? request.size_bytes : 0;
    }
  }
  ReplayOutcome outcome = ReplayOutcome::kHit;
  if (found.state == cache::LookupState::kMiss) {
    outcome = miss(request, key);
  } else if (!hit) {
    counts_.validations += counts ? 1 : 0;
    freshen(key, stored_as(request, fetch(request).ttl_seconds));
    outcome = ReplayOutcome::kRevalidated;
  } else if (found.on_disk()) {
    if (found.promote()) {
      promote(request, key, found, on_disk);
    }
  } else if (request.resized) [[unlikely]] {
    cache::Stored stored = stored_as(request, request.ttl_seconds);
    stored.fresh_until = found.fresh_until;
    freshen(key, stored);
  }
  return outcome;
}

void ReplayRun::freshen(const cache::Key& key, const cache::Stored& stored) {
  const cache::FreshenOutcome outcome = kernel_->freshen(key, stored, now_);
  if (outcome == cache::FreshenOutcome::kTooLarge || outcome == cache::FreshenOutcome::kFull) {
    kernel_->remove(key, stored.variant, now_);
  }
}

std::uint64_t ReplayOptions::charge_with(std::uint64_t head_bytes,
                                         const ReplayRequest& request) const {
  return charge ? cache::charge_for({.head = head_bytes,
                                     .body = std::max(request.size_bytes, request.object_bytes)})
                : charge_of(request);
}

Upstream::Fetched ReplayRun::fetch(const ReplayRequest& request) const {
  return options_.upstream != nullptr ? options_.upstream->fetch(request)
                                      : Upstream::Fetched{.ttl_seconds = request.ttl_seconds};
}

cache::Stored ReplayRun::stored_as(const ReplayRequest& request, std::uint32_t ttl_seconds) const {
  cache::Stored stored;
  stored.charge_bytes =
      options_.charge_with(options_.charge ? options_.charge->head_bytes : 0, request);
  if (ttl_seconds != kNoTtl) {
    stored.fresh_until = now_ + std::chrono::seconds(ttl_seconds);
  }
  stored.hint = options_.hint_of(request);
  return stored;
}

ReplayOutcome ReplayRun::miss(const ReplayRequest& request, const cache::Key& key) {
  const bool counts = has_ended_warmup();
  counts_.bytes_from_origin += counts ? request.size_bytes : 0;
  const Upstream::Fetched fetched = fetch(request);
  // The proxy does not ask where the length that is announced is above its limit.
  const std::uint64_t largest = options_.kernel.max_object_bytes;
  if (options_.charge && largest != 0 && request.size_bytes > largest) {
    counts_.not_stored_full += counts ? 1 : 0;
    return ReplayOutcome::kTooLarge;
  }
  cache::Stored stored = stored_as(request, fetched.ttl_seconds);
  const std::uint64_t charge_bytes = stored.charge_bytes;
  stored.disk_only = is_for_disk_only(charge_bytes);
  cache::AdmitRequest asked{.variant = 0,
                            .requests = 1,
                            .size_bytes = charge_of(request),
                            .hint = options_.hint_of(request),
                            .disk_only = stored.disk_only};
  if (fetched.is_hint && counts_requests(options_.kernel.admission.policy)) {
    asked.requests = cache::kMinRequestsMax;
  }
  const cache::AdmitReason reason = options_.memory != nullptr
                                        ? options_.memory->admit(key, asked, now_)
                                        : kernel_->admit(key, asked, now_);
  if (!is_stored(reason)) {
    counts_.not_stored_full += counts && reason == cache::AdmitReason::kTooLarge ? 1 : 0;
    return cache::outcome_of<ReplayOutcome>(reason);
  }
  stored.waits = cache::is_on_probation(reason);
  const bool is_for_disk = options_.has_disk() && reason != cache::AdmitReason::kWaits;
  if (!store(request, key, stored, is_for_disk)) {
    counts_.not_stored_full += counts ? 1 : 0;
    return ReplayOutcome::kTooLarge;
  }
  if (reason != cache::AdmitReason::kWaits) {
    note_stored(request.object, charge_bytes);
  }
  return cache::outcome_of<ReplayOutcome>(reason);
}

void ReplayRun::note_stored(std::uint32_t object, std::uint64_t bytes) {
  if (object >= stored_.size()) {
    stored_.resize(std::max<std::size_t>(object + std::size_t{1}, stored_.size() * 2));
  }
  if (has_ended_warmup()) {
    ++counts_.objects_written;
    counts_.bytes_written += bytes;
    counts_.bytes_rewritten += stored_[object] ? bytes : 0;
  }
  stored_[object] = true;
}

bool ReplayRun::store(const ReplayRequest& request, const cache::Key& key, cache::Stored& stored,
                      bool is_for_disk) {
  if (stored.disk_only) {
    stored.charge_bytes = 0;
  }
  const std::uint64_t reserved =
      (options_.has_disk() ? kernel_->charge_of_disk_entry() : 0) +
      (stored.disk_only ? 0
                        : kernel_->charge_of_entry() +
                              options_.charge_with(
                                  options_.charge ? options_.charge->reserved_bytes : 0, request));
  if (kernel_->reserve(key, reserved, now_) != cache::ReserveOutcome::kReserved) {
    return false;
  }
  stored.disk_bytes = is_for_disk ? write_body(request, key, stored) : 0;
  cache::DiskDecision decision;
  const cache::CommitOutcome outcome = kernel_->commit(key, stored, reserved, now_, &decision);
  if (options_.has_disk() && (outcome == cache::CommitOutcome::kStored || stored.disk_only)) {
    const bool is_written =
        write(key, decision, bodies_.contains(request.object) ? 0 : charge_of(request));
    counts_.disk_objects_refused += is_written || !has_ended_warmup() ? 0U : 1U;
  }
  return outcome == cache::CommitOutcome::kStored;
}

void ReplayRun::end_interval() {
  const cache::KernelStatistics kernel = present();
  const cache::AdmissionStatistics admission = present_admission(64);
  if (fleet_ != nullptr) {
    counts_ = fleet_->counts();
  }
  most_objects_ = std::max(most_objects_, kernel.objects);
  intervals_.push_back(
      {.from_request = seen_ - seen_ % options_.interval_requests -
                       (seen_ % options_.interval_requests == 0 ? options_.interval_requests : 0),
       .counts = counts_ - interval_start_,
       .resident_objects = kernel.objects,
       .used_bytes = kernel.used_bytes,
       .filter_fill = admission.generations.empty() ? 0 : admission.generations.front().fill,
       .fpr_theory = admission.fpr_theory,
       .rotations = has_ended_warmup() ? admission.rotations - warm_admission_.rotations : 0,
       .objects_requested = working_set_.objects(),
       .object_bytes = working_set_.bytes()});
  working_set_.next_interval();
  interval_start_ = counts_;
}

void ReplayRun::finish() {
  if (options_.interval_requests != 0 && seen_ % options_.interval_requests != 0) {
    end_interval();
  }
  if (fleet_ != nullptr) {
    counts_ = fleet_->counts();
  }
  most_objects_ = std::max(most_objects_, present().objects);
}

bool ReplayRun::holds(std::uint32_t object, const filter::Hash128& key) const {
  if (direct_ != nullptr) {
    return direct_->holds(object);
  }
  struct AnyEntry final : cache::Visitor {
    cache::Verdict visit(const cache::EntryView& /*entry*/) override { return found(); }
    cache::Verdict visit_disk(const cache::DiskView& /*view*/) override { return found(); }
    cache::Verdict found() {
      is_there = true;
      return cache::Verdict::kKeep;
    }
    bool is_there = false;
  };
  AnyEntry any;
  kernel_->peek({key, {}}, any);
  return any.is_there;
}

void ReplayRun::forget(std::uint32_t object) {
  warm_objects_.renumber(object);
  bodies_.erase(object);
  if (direct_ != nullptr) {
    direct_->forget(object);
  } else if (object < stored_.size()) {
    stored_[object] = false;
  }
}

bool ReplayRun::ever_stored(std::uint32_t object) const {
  if (fleet_ != nullptr) {
    return fleet_->ever_stored(object);
  }
  if (direct_ != nullptr) {
    return direct_->ever_stored(object);
  }
  return object < stored_.size() && stored_[object];
}

}  // namespace encore::sim
