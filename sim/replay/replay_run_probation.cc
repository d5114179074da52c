// A replay through probation: what the proxy would answer, keep, write and move, without bytes.
#include "sim/replay/replay_run.h"

#include <tuple>
#include <utility>

namespace encore::sim {
namespace {

ReplayOutcome outcome_of(const cache::ProbationAnswer& answer) {
  if (answer.found != cache::ProbationPlace::kNowhere) {
    return answer.was_stale ? ReplayOutcome::kRevalidated : ReplayOutcome::kHit;
  }
  switch (answer.verdict) {
    case cache::ProbationVerdict::kWaits:
      return ReplayOutcome::kProbation;
    case cache::ProbationVerdict::kKeyWaits:
    case cache::ProbationVerdict::kKeyStillWaits:
      return ReplayOutcome::kTooLargeToWait;
    case cache::ProbationVerdict::kAdmitted:
      return ReplayOutcome::kSecondRequest;
    case cache::ProbationVerdict::kKnownTooLarge:
      return ReplayOutcome::kTooLarge;
  }
  return ReplayOutcome::kTooLarge;
}

}  // namespace

Result<void> ReplayRun::make_probation() {
  ReplayProbation& planned = *options_.probation;
  const std::uint64_t capacity = options_.kernel.capacity_bytes;
  planned.settings.copies_bytes =
      static_cast<std::uint64_t>(planned.copies_share * static_cast<double>(capacity));
  planned.settings.memory_bytes = capacity - planned.settings.copies_bytes;
  auto made = cache::TunedProbation::create(planned.settings, planned.write_cost, MonotonicTime{});
  if (!made) {
    return std::unexpected(made.error());
  }
  probation_ = std::move(*made);
  return {};
}

void ReplayRun::tune_kernel(const ReplayRequest& request) {
  constexpr std::uint64_t kRateEvery = 1024;
  if (!options_.tuning->write_cost) {
    if (seen_ == 0) {
      std::ignore = kernel_->follow(options_.tuning->settings.rule, now_);
    }
    return;
  }
  if (seen_ % kRateEvery == 0) {
    take_samples();
  }
  const bool changed =
      samples_ &&
      samples_->request({.key = request.key, .size_bytes = charge_of(request), .now = now_});
  if (changed) {
    std::ignore = kernel_->follow(cache::rule_of(samples_->followed()), now_);
  }
}

// As the proxy takes them: once it is known how many objects the disks will hold, and anew where
// that was wrong by a factor of two.
void ReplayRun::take_samples() {
  const auto next = cache::next_tuning(
      kernel_->statistics(), options_.kernel,
      {.whole = options_.tuning->settings, .write_cost = *options_.tuning->write_cost},
      sampled_ ? &*sampled_ : nullptr);
  if (!next) {
    return;
  }
  auto samples = cache::ProbationSamples::create(
      {.whole = next->whole,
       .rate = next->rate,
       .write_cost = next->write_cost,
       .followed = samples_ ? samples_->followed() : cache::ProbationSample::kOne},
      now_);
  if (samples) {
    samples_ = std::move(*samples);
    sampled_ = next;
  }
}

ReplayOutcome ReplayRun::ask_probation(const ReplayRequest& request) {
  const cache::VisitedLog::Counts before = probation_->cache().log().counts();
  const cache::ProbationAnswer answer =
      probation_->request({.key = request.key,
                           .size_bytes = charge_of(request),
                           .payload = request.object,
                           .now = now_,
                           .fresh_until = request.ttl_seconds == kNoTtl
                                              ? MonotonicTime::max()
                                              : now_ + std::chrono::seconds(request.ttl_seconds)});
  for (const auto& written : probation_->cache().written()) {
    note_stored(static_cast<std::uint32_t>(written.payload), written.size_bytes);
  }
  const ReplayOutcome outcome = outcome_of(answer);
  if (!has_ended_warmup()) {
    return outcome;
  }
  counts_.add_request(request);
  const bool found = answer.found != cache::ProbationPlace::kNowhere;
  if (found && !answer.was_stale) {
    counts_.add_hit(request);
    if (answer.found == cache::ProbationPlace::kDisk) {
      ++counts_.disk_hits;
      counts_.disk_bytes_hit += request.size_bytes;
    }
  }
  counts_.validations += found && answer.was_stale ? 1U : 0U;
  counts_.bytes_from_origin += found ? 0 : request.size_bytes;
  counts_.not_stored_full += outcome == ReplayOutcome::kTooLarge ? 1U : 0U;
  const cache::VisitedLog::Counts& after = probation_->cache().log().counts();
  const std::uint64_t filled = after.fill_bytes - before.fill_bytes;
  counts_.disk_bytes_filled += filled;
  counts_.disk_bytes_admitted += after.first_bytes - before.first_bytes + filled;
  counts_.disk_bytes_moved += after.moved_bytes - before.moved_bytes;
  counts_.disk_objects_dropped += after.objects_dropped - before.objects_dropped;
  return outcome;
}

cache::KernelStatistics ReplayRun::probation_statistics() const {
  const cache::ProbationCache& cache = probation_->cache();
  cache::KernelStatistics statistics;
  statistics.objects = cache.objects();
  statistics.used_bytes = cache.probation().queue().bytes();
  statistics.capacity_bytes = cache.probation().memory_bytes();
  statistics.index_bytes = probation_->memory_bytes();
  statistics.disk.entries = cache.log().objects();
  cache::DiskStatistics::Disk disk;
  disk.segments = 1;  // to this model a disk is one log
  disk.segment_bytes = cache.log().size_bytes();
  disk.objects = cache.log().objects();
  disk.live_bytes = cache.log().live_bytes();
  disk.admitted_bytes = cache.log().counts().first_bytes + cache.log().counts().fill_bytes;
  disk.moved_bytes = cache.log().counts().moved_bytes;
  statistics.disk.disks.push_back(disk);
  return statistics;
}

cache::AdmissionStatistics ReplayRun::probation_keys() const {
  const filter::RotatingStatistics keys = probation_->cache().probation().keys().statistics(64);
  cache::AdmissionStatistics statistics;
  statistics.has_filter = true;
  statistics.generations = keys.generations;
  statistics.capacity = keys.generations.front().parameters.capacity;
  statistics.insertions = keys.insertions;
  statistics.refreshes = keys.refreshes;
  statistics.rotations = keys.rotations;
  statistics.fpr_theory = keys.fpr_theory;
  statistics.fpr_bits = keys.fpr_bits;
  statistics.memory_bytes = keys.memory_bytes;
  return statistics;
}

}  // namespace encore::sim
