// ShadowCaches: what other policies would do with the requests of all workers
// (cache/shadow_cache.h), on a thread of its own that runs where there are any. Workers gather what
// they saw of the sample and hand it over now and then (ShadowTap), so that a request that is not
// in it costs a hash. Thread-safe but for what says otherwise. Why a sample, and why told at a
// request's end: docs/decisions/0270.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/probation_samples.h"
#include "cache/probation_tuning.h"
#include "cache/shadow_cache.h"
#include "cache/spatial_sample.h"
#include "proxy/observe/stats.h"

namespace encore::server {

// Result of one of its samples since they were taken.
struct TriedReport {
  std::string_view rule;
  double cost = 0;  // in bytes, the latest most
  bool followed = false;
  std::uint64_t judgements = 0;  // after which it was followed
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t bytes_requested = 0;
  std::uint64_t bytes_missed = 0;
  std::uint64_t bytes_written = 0;
  double weight = 1;  // relative to the others' cost
};
struct TuningReport {
  double rate = 0;
  double write_cost = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<TriedReport> tried;
  // The rule that would be followed at another write cost; null: nothing was asked yet.
  const TriedReport* best_at(double price) const;
};

// Simulated result of one policy.
struct ShadowReport {
  std::string name;
  std::string admission;
  std::string eviction;
  std::uint64_t capacity_bytes = 0;  // size of the whole cache
  cache::ShadowCounts sampled;
  cache::ShadowCounts estimated;  // counts of all requests
  cache::ShadowCounts in_force;   // results of the cache itself with the same requests
  cache::ShadowShare object_hit_ratio;
  cache::ShadowShare byte_hit_ratio;
  std::uint64_t objects = 0;  // in the sample's cache
  std::uint64_t memory_bytes = 0;
  Nanoseconds since{};  // for how long it has run
};
struct ShadowReports {
  std::uint32_t sample = 0;  // one key in so many; 0: nothing is simulated
  std::vector<ShadowReport> policies;
  std::optional<TuningReport> tuning;
  std::uint64_t dropped = 0;  // requests that were not simulated, for the thread was behind
};

class ShadowCaches {
 public:
  // Maximum of requests that wait for the thread, in parts that a worker hands over in one call.
  static constexpr std::size_t kPartRequests = 512;
  static constexpr std::size_t kPartsMax = 256;

  ShadowCaches() = default;
  ~ShadowCaches();
  ShadowCaches(const ShadowCaches&) = delete;
  ShadowCaches& operator=(const ShadowCaches&) = delete;

  struct Policy {
    std::string name;
    cache::KernelOptions whole;  // were all keys in the sample
  };
  struct Wanted {
    std::vector<Policy> policies;
    std::uint32_t sample = 64;
  };
  // All that adopt() needs, made beforehand. Those that are there under the same name, with the
  // same options and sample, are to go on. Errors: a kernel's. Main thread, as adopt().
  class Prepared {
    friend class ShadowCaches;
    struct Entry {
      std::string name;
      std::unique_ptr<cache::ShadowCache> made;  // null: the present one goes on
    };
    std::vector<Entry> entries_;
    std::uint32_t sample_ = 0;
  };
  Result<Prepared> prepare(const Wanted& wanted, MonotonicTime now) const;
  void adopt(Prepared prepared, MonotonicTime now);

  // Takes samples for probation from now on, or others than before; the rule that was followed
  // stays until they know better. Nothing: none. Errors: those of ProbationSamples::create(), as it
  // was is how it goes on then. Main thread.
  Result<void> tune(const std::optional<cache::ProbationTuning>& tuning, MonotonicTime now);
  // The cheapest rule by the samples; empty if there are none.
  std::optional<cache::ProbationRule> rule() const;

  // By which workers choose, and under which number what they hand over is taken.
  struct Settings {
    std::uint64_t number = 0;
    double rate = 0;  // share of the keys; 0: no sample
  };
  Settings settings() const;

  struct Part {
    std::uint64_t number = 0;  // number of the settings that it was gathered under
    cache::ShadowCounts all;   // counts of the worker's requests, including the sample
    std::vector<cache::ShadowRequest> requests;  // requests of the sample
  };
  // Drops a part of other settings than the present ones, or if too much is waiting.
  void take(Part part);

  ShadowReports report(MonotonicTime now) const;

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<cache::ShadowCache> cache;
    cache::ShadowCounts before;  // all requests until it began
    MonotonicTime began{};
  };
  // A part of the traffic's keys for probation.
  struct Tuner {
    cache::ProbationTuning tuning;
    cache::SpatialSample sample;
    cache::ProbationSamples samples;
  };
  void run();
  void simulate(const Part& part);
  void set_settings(std::uint64_t number, double rate) ENCORE_EXCLUDES(mutex_);
  double rate() const ENCORE_REQUIRES(caches_mutex_);
  std::optional<TuningReport> report_tuning() const ENCORE_REQUIRES(caches_mutex_);

  // The thread holds it for a part of a worker's.
  mutable Mutex caches_mutex_;
  std::vector<Entry> caches_ ENCORE_GUARDED_BY(caches_mutex_);
  std::uint32_t sample_ ENCORE_GUARDED_BY(caches_mutex_) = 0;
  std::optional<Tuner> tuner_ ENCORE_GUARDED_BY(caches_mutex_);
  std::uint64_t simulated_ ENCORE_GUARDED_BY(caches_mutex_) = 0;  // number of the settings
  cache::ShadowCounts all_ ENCORE_GUARDED_BY(caches_mutex_);

  mutable Mutex mutex_;
  std::condition_variable_any wake_;
  Settings settings_ ENCORE_GUARDED_BY(mutex_);
  std::deque<Part> waiting_ ENCORE_GUARDED_BY(mutex_);
  std::uint64_t dropped_ ENCORE_GUARDED_BY(mutex_) = 0;
  bool stop_ ENCORE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // not joinable: none was needed yet
};

// Samples of one worker. Confined to it.
class ShadowTap {
 public:
  // Both are borrowed; `caches` may be null: nothing is wanted.
  ShadowTap(ShadowCaches* caches, const WorkerStats& stats) : caches_(caches), stats_(stats) {}

  bool is_on() const { return sample_.has_value(); }
  // Takes the present settings of the caches. Requests gathered under others are handed over first.
  void follow();

  enum class Served : std::uint8_t { kFresh, kValidated, kMissed };
  struct Seen {
    Served served = Served::kMissed;
    std::uint64_t sent_bytes = 0;
  };
  // Counts a request. True if its key is in the sample: then pass it to add(). REQUIRES: is_on().
  bool count(const filter::Hash128& key, const Seen& seen) {
    ++part_.all.requests;
    part_.all.bytes_requested += seen.sent_bytes;
    part_.all.hits += seen.served == Served::kFresh ? 1U : 0U;
    part_.all.bytes_hit += seen.served == Served::kFresh ? seen.sent_bytes : 0;
    part_.all.validations += seen.served == Served::kValidated ? 1U : 0U;
    return sample_->contains(key);
  }
  void add(const cache::ShadowRequest& request) {
    part_.requests.push_back(request);
    if (part_.requests.size() >= ShadowCaches::kPartRequests) hand_over();
  }
  // Hands over what was gathered, if there is any.
  void hand_over();

 private:
  void begin_part();

  ShadowCaches* caches_;
  const WorkerStats& stats_;
  std::optional<cache::SpatialSample> sample_;  // nothing: nothing is wanted
  ShadowCaches::Settings settings_;
  ShadowCaches::Part part_;
  std::uint64_t stored_ = 0;  // as the stats had it when the part began
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace encore::server
