// ProbationSamples: which rule suits the traffic. Small samples of the keys go through caches of
// the same design, as much smaller and without bytes, each by another rule; the one whose misses
// and writes cost least is followed. The window that is best differs by a factor of four from one
// workload to the next and changes with it, so that no default would do.
// Thread-compatible, deterministic.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "cache/probation_cache.h"
#include "cache/spatial_sample.h"

namespace encore::cache {

// The rules that samples try. `handicap`: its cost counts as so much more.
//  enumerator   name       window  all    chance    handicap
#define ENCORE_PROBATION_SAMPLES(X)              \
  X(kQuarter, "w 0.25", .25, false, 1.0, 0.0)    \
  X(kHalf, "w 0.5", .5, false, 1.0, 0.0)         \
  X(kOne, "w 1", 1.0, false, 1.0, 0.0)           \
  X(kTwo, "w 2", 2.0, false, 1.0, 0.0)           \
  X(kSeldom, "seldom", 2.0, false, 1.0 / 8, 0.0) \
  X(kAll, "all", 1.0, true, 1.0, 0.2)

#define ENCORE_ENUMERATOR(id, ...) id,
#define ENCORE_NAME(id, name, ...) std::string_view(name),
enum class ProbationSample : std::uint8_t { ENCORE_PROBATION_SAMPLES(ENCORE_ENUMERATOR) };
inline constexpr std::array kProbationSampleNames = {ENCORE_PROBATION_SAMPLES(ENCORE_NAME)};
#undef ENCORE_NAME
#undef ENCORE_ENUMERATOR
inline constexpr std::size_t kProbationSampleCount = kProbationSampleNames.size();
constexpr std::string_view to_string(ProbationSample sample) noexcept {
  return kProbationSampleNames[static_cast<std::size_t>(sample)];
}
ProbationRule rule_of(ProbationSample sample) noexcept;
double handicap_of(ProbationSample sample) noexcept;

class ProbationSamples {
 public:
  static constexpr double kRateMax = 0.25;
  static constexpr double kObjects = 1024;  // that a sample's cache holds about
  static constexpr double kWriteCostMax = 100;

  struct Settings {
    ProbationCacheSettings whole{};
    double rate = kRateMax;                            // share of the keys
    double write_cost = 0.3;                           // cost of a byte written, in bytes fetched
    ProbationSample followed = ProbationSample::kOne;  // at the start
  };
  // The rate for a cache that holds so many objects when full.
  static double rate_for(double objects);

  // Errors: a rate outside (0, kRateMax], a write cost outside [0, kWriteCostMax], those of
  // ProbationCache::create().
  static Result<ProbationSamples> create(const Settings& settings, MonotonicTime now);

  // Every request, of which a sample is taken. True: another rule is followed from now on.
  bool request(const ProbationRequest& request);
  // The same for a request that is in a sample of the caller's, who takes as many of the keys.
  bool take(const ProbationRequest& request);

  ProbationSample followed() const { return followed_; }
  double rate() const { return settings_.rate; }
  // A sample's state, for inspection.
  struct State {
    double cost = 0;               // in bytes, the latest ones most; without the handicap
    std::uint64_t judgements = 0;  // after which it was followed
    ProbationCounts counts;
    VisitedLog::Counts log;
  };
  State state(ProbationSample sample) const;
  std::uint64_t memory_bytes() const;

 private:
  struct Tried {
    ProbationCache cache;
    double cost = 0;
    double charged = 0;  // all that its cache ever missed and wrote
    std::uint64_t judgements = 0;
  };
  explicit ProbationSamples(const Settings& settings);
  void judge();
  double weighed(std::size_t sample) const;

  Settings settings_;
  SpatialSample sample_;
  std::vector<Tried> tried_;  // by ProbationSample
  ProbationSample followed_;
  double turn_bytes_;       // size of a sample's cache
  double asked_bytes_ = 0;  // since the last judgement
};

// A ProbationCache that follows samples of its own traffic.
class TunedProbation {
 public:
  // write_cost: nothing is tuned without one; the settings' rule is followed then. Errors: those of
  // ProbationCache::create() and ProbationSamples::create().
  static Result<TunedProbation> create(const ProbationCacheSettings& settings,
                                       std::optional<double> write_cost, MonotonicTime now);

  ProbationAnswer request(const ProbationRequest& request);
  const ProbationCache& cache() const { return cache_; }
  // Null while nothing is known of the objects' sizes, and where nothing is tuned.
  const ProbationSamples* samples() const { return samples_ ? &*samples_ : nullptr; }
  std::uint64_t memory_bytes() const;

 private:
  // So many misses tell how many objects the cache will hold, to a factor of two.
  static constexpr std::uint64_t kFetchedMin = 256;

  TunedProbation(const ProbationCacheSettings& settings, std::optional<double> write_cost,
                 ProbationCache cache)
      : settings_(settings), write_cost_(write_cost), cache_(std::move(cache)) {}
  // Takes samples, or others where the cache holds twice as many objects as they were made for, or
  // half as many.
  void choose_rate(MonotonicTime now);

  ProbationCacheSettings settings_;
  std::optional<double> write_cost_;
  ProbationCache cache_;
  std::optional<ProbationSamples> samples_;
  std::uint64_t requests_ = 0;
};

}  // namespace encore::cache
