// Bounds on the least misses of any cache of a size, whatever its policy knows, evicts and admits:
// Berger, Beckmann, Harchol-Balter: "Practical bounds on optimal caching with variable object
// sizes" (SIGMETRICS 2018). A hit costs room from one request for an object to the next one: its
// charge at every moment between them (ReuseInterval). A cache is a choice of such intervals whose
// charges sum up to no more than its size at any moment; OPT is the best choice, which is NP-hard.
//
// PFOO-L  asks that of the mean over all moments only, and takes the cheapest intervals for what
//         they give. So its miss ratio is a lower bound on OPT's.
// PFOO-U  takes intervals in the same order, each that has room at all of its moments. So it is a
//         cache that could be, and its miss ratio an upper bound on OPT's. The paper decides on
//         segments of intervals together, by a min-cost flow; here a segment is a single interval,
//         for which the flow is a yes or a no.
//
// Both for the object and for the byte miss ratio: an interval then gives one hit, or the bytes of
// the answer. Nothing becomes stale here, which no cache can better. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cli/monitor.h"
#include "cache/options.h"
#include "filter/hash.h"
#include "sim/replay/replay_run.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {

enum class BoundGoal : std::uint8_t { kObjects, kBytes };

// Moment i lies between the requests i and i + 1.
struct ReuseInterval {
  std::uint32_t from = 0;  // the first moment at which it takes room
  std::uint32_t to = 0;    // the request that is a hit by it: behind its last moment
  std::uint64_t charge_bytes = 0;
  std::uint64_t size_bytes = 0;  // size of the hit's response
};

// The intervals of a trace that a cache could take. 16 bytes an object.
class ReuseFinder {
 public:
  static constexpr std::uint64_t kRequestsMax = UINT32_MAX;

  // Hits before the request `first_counted` give nothing, and time before it costs nothing.
  ReuseFinder(const cache::KernelOptions& cache, std::uint64_t first_counted);

  // The next request of the trace, up to kRequestsMax of them; the interval that ends with it.
  std::optional<ReuseInterval> next(const ReplayRequest& request);

  std::uint64_t counted_requests() const { return counted_requests_; }
  std::uint64_t counted_bytes() const { return counted_bytes_; }
  // From the first that costs something to the last.
  std::uint64_t moments() const;

 private:
  struct Last {
    std::uint64_t number = 0;  // number of the request, from 1; 0: there was none
    std::uint64_t charge_bytes = 0;
  };
  std::uint64_t overhead_bytes_;
  std::uint64_t charge_max_;
  std::uint64_t first_counted_;
  std::uint64_t requests_ = 0;
  std::uint64_t counted_requests_ = 0;
  std::uint64_t counted_bytes_ = 0;
  std::vector<Last> last_;  // by object
};

// PFOO-L, in constant memory: intervals with nearly the same cost for what they give are taken
// together, the last ones all at the price of their cheapest.
class PfooLower {
 public:
  explicit PfooLower(BoundGoal goal);
  void add(const ReuseInterval& interval);
  // The most hits, or bytes hit, of a cache of so many bytes at so many moments.
  std::uint64_t most(std::uint64_t capacity_bytes, std::uint64_t moments) const;

 private:
  struct Bucket {
    std::uint64_t gives = 0;
    filter::Wide costs = 0;  // byte-moments
  };
  BoundGoal goal_;
  std::vector<Bucket> buckets_;
};

// Returns the hits, or bytes hit, that PFOO-U takes. Memory: 12 bytes a moment in addition to the
// intervals. An interrupt ends it early, with the sum so far. REQUIRES: fewer than 2^32 intervals.
std::uint64_t pfoo_upper(std::span<const ReuseInterval> intervals, BoundGoal goal,
                         std::uint64_t capacity_bytes, Monitor& monitor);

}  // namespace encore::sim
