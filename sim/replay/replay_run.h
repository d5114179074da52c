// ReplayRun: one cache of given size, eviction and admission, fed with the requests of a trace. It
// asks the proxy's own kernel (cache::Kernel) for every decision; there is no policy in here. A
// plain cache is asked directly instead (sim/replay/direct_cache.h), with the same decisions.
// Thread-compatible, deterministic.
//
// A request for a resident object that is fresh is a hit. One that is stale is validated: the
// object is taken to be unchanged, becomes fresh again, and counts as a validation, not as a hit.
// Else it is a miss: it is fetched, and stored if the admission policy says so. An object's charge
// is its size by the rule of its table (ObjectSize). When that changes while it is resident, its
// charge changes. It keeps its place in the order of eviction, and others are evicted for its
// growth (until its own turn comes: that ends it). It leaves if it has become larger than the
// largest that may be stored. The request with the change counts as before: as a hit, or as a
// validation.
//
// With a disk an object that is larger than the memory takes is on disk alone. An object longer
// than one record (cache/disk_parts.h) lies there in parts, which are placed before its head; if
// one of them has gone, the object has. A hit in memory does not need them.
//
// With a fleet (sim/replay/fleet.h) the run has the figures of all its caches together.
//
// With probation (cache/probation.h) the run asks that instead of a kernel: bodies alone count, on
// a disk without records, alignment and free segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "cache/kernel.h"
#include "cache/probation_samples.h"
#include "cache/probation_tuning.h"
#include "sim/replay/cache_group.h"
#include "sim/replay/disk_space.h"
#include "sim/replay/replay_options.h"
#include "sim/replay/warm_objects.h"
#include "sim/replay/working_set.h"

namespace encore::sim {

struct ReplayInterval {
  std::uint64_t from_request = 0;
  ReplayCounts counts;
  std::uint64_t resident_objects = 0;
  std::uint64_t used_bytes = 0;
  double filter_fill = 0;  // fill of the current generation
  double fpr_theory = 0;
  std::uint64_t rotations = 0;
  std::uint64_t objects_requested = 0;  // different ones, warm-up included: the working set
  std::uint64_t object_bytes = 0;       // sum of their largest sizes so far
};

class DirectCache;

class ReplayRun {
 public:
  ~ReplayRun();
  ReplayRun(const ReplayRun&) = delete;
  ReplayRun& operator=(const ReplayRun&) = delete;
  // `fleet` if and only if there is ReplayOptions::fleet: see create_replay(). Errors: the
  // kernel's; a policy of one's own in a cache that is not plain.
  static Result<std::unique_ptr<ReplayRun>> create(const ReplayOptions& options,
                                                   std::unique_ptr<CacheGroup> fleet = nullptr);

  // The next requests of the trace, in order.
  void feed(std::span<const ReplayRequest> requests);
  // Requests from here on count, whatever the length of the warm-up was to be.
  void end_warmup() {
    options_.warmup_requests = seen_;
    begin_counting();
  }
  // The next request; the same as to feed it. REQUIRES: the cache is not asked directly.
  ReplayOutcome ask(const ReplayRequest& request);
  // How long the object stays fresh that the last request found. REQUIRES: it was a hit.
  MonotonicTime fresh_until() const { return fresh_until_; }
  // The decision of the run's admission about a fetched object, which it does not store.
  cache::AdmitReason admit(const cache::Key& key, const cache::AdmitRequest& request,
                           MonotonicTime now) {
    return kernel_->admit(key, request, now);
  }
  // Call after the last one: ends the last interval.
  void finish();

  const ReplayCounts& counts() const { return counts_; }
  const std::vector<ReplayInterval>& intervals() const { return intervals_; }
  // Counters since the end of the warm-up, and the present objects, bytes and memory.
  cache::KernelStatistics kernel() const;
  cache::AdmissionStatistics admission() const;
  const ReplayOptions& options() const { return options_; }
  // Null without ReplayOptions::fleet.
  const CacheGroup* fleet() const { return fleet_.get(); }
  // Null without ReplayOptions::probation.
  const cache::TunedProbation* probation() const { return probation_ ? &*probation_ : nullptr; }
  // Use of the disk's bytes now. REQUIRES: a kernel and a disk.
  DiskSpace::Sums disk_space() const { return space_.sums(kernel_->statistics().disk); }
  // True if an object was ever stored.
  bool ever_stored(std::uint32_t object) const;
  // True for an object whose first request counted: the warm-up had none for it.
  bool came_after_warmup(std::uint32_t object) const { return !warm_objects_.contains(object); }
  // True if the cache has the object, or its policy of admission holds a response of it.
  // REQUIRES: no model of probation, no policy of one's own.
  bool holds(std::uint32_t object, const filter::Hash128& key) const;
  // Another object has the number from now on. REQUIRES: holds() is false; no intervals.
  void forget(std::uint32_t object);
  std::uint64_t most_objects() const { return most_objects_; }

 private:
  explicit ReplayRun(const ReplayOptions& options);
  bool has_ended_warmup() const { return seen_ >= options_.warmup_requests; }
  // Keeps the kernel's figures as they are at the end of the warm-up.
  void begin_counting();
  ReplayOutcome ask_kernel(const ReplayRequest& request);
  // Asks whom a miss or a validation goes to.
  Upstream::Fetched fetch(const ReplayRequest& request) const;
  cache::Stored stored_as(const ReplayRequest& request, std::uint32_t ttl_seconds) const;
  ReplayOutcome miss(const ReplayRequest& request, const cache::Key& key);
  // Counts an object that was stored.
  void note_stored(std::uint32_t object, std::uint64_t bytes);
  // Reserves and commits, in memory, on disk or both.
  bool store(const ReplayRequest& request, const cache::Key& key, cache::Stored& stored,
             bool is_for_disk);
  // --- the disk (replay_run_disk.cc)
  bool is_for_disk_only(std::uint64_t charge_bytes) const;
  // Writes a body longer than a record in parts. Returns the size still to be written: the whole,
  // or a head; 0 if a part found no place.
  std::uint64_t write_body(const ReplayRequest& request, const cache::Key& key,
                           const cache::Stored& stored);
  // A hit on disk of which a part has gone is a miss.
  void look_for_parts(const ReplayRequest& request, const cache::Key& key,
                      const cache::DiskView& on_disk, cache::LookupResult& found);
  // Disks take no time here: placed records are written immediately, and due segments reclaimed.
  // False if it was not placed.
  bool write(const cache::Key& key, const cache::DiskDecision& decision, std::uint64_t body_bytes);
  void reclaim();
  // Stored in memory, from disk.
  void promote(const ReplayRequest& request, const cache::Key& key,
               const cache::LookupResult& found, const cache::DiskView& view);
  // --- probation (replay_run_probation.cc)
  Result<void> make_probation();
  ReplayOutcome ask_probation(const ReplayRequest& request);
  // Lets the kernel follow the rule, or the samples.
  void tune_kernel(const ReplayRequest& request);
  void take_samples();
  cache::KernelStatistics probation_statistics() const;
  cache::AdmissionStatistics probation_keys() const;
  // --- figures of now, of the kernel or the probation
  cache::KernelStatistics present() const;
  cache::AdmissionStatistics present_admission(std::uint64_t lines_max = 4096) const;
  // New times and charge for the resident object of the key.
  void freshen(const cache::Key& key, const cache::Stored& stored);
  void end_interval();

  ReplayOptions options_;
  std::unique_ptr<CacheGroup> fleet_;      // does all of the work; null: there is one cache
  std::unique_ptr<cache::Kernel> kernel_;  // null with fleet_ or probation_
  std::unique_ptr<DirectCache> direct_;    // asked instead of the kernel; null: the kernel is
  std::optional<cache::TunedProbation> probation_;
  std::optional<cache::ProbationSamples> samples_;  // that the kernel follows
  std::optional<cache::ProbationTuning> sampled_;   // by which they were taken
  ReplayCounts counts_;
  std::uint64_t seen_ = 0;  // requests, warm-up included
  WarmObjects warm_objects_;
  cache::KernelStatistics warm_kernel_;
  cache::AdmissionStatistics warm_admission_;
  MonotonicTime now_{};
  MonotonicTime fresh_until_{};
  std::vector<bool> stored_;  // by object
  struct Body {
    std::uint64_t number = 0;
    std::uint64_t parts = 0;
  };
  std::unordered_map<std::uint32_t, Body> bodies_;  // the latest, of objects in parts
  std::uint64_t last_body_ = 0;
  DiskSpace space_;
  std::vector<ReplayInterval> intervals_;
  ReplayCounts interval_start_;
  IntervalWorkingSet working_set_;  // if there are intervals
  std::uint64_t most_objects_ = 0;
};

}  // namespace encore::sim
