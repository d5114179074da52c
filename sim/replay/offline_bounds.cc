#include "sim/replay/offline_bounds.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/replay/occupancy.h"

namespace encore::sim {
namespace {

std::uint64_t given_by(const ReuseInterval& interval, BoundGoal goal) {
  return goal == BoundGoal::kObjects ? 1 : interval.size_bytes;
}
filter::Wide cost_of(const ReuseInterval& interval) {
  return static_cast<filter::Wide>(interval.charge_bytes) * (interval.to - interval.from);
}

// Prices (cost for what it gives) fall into buckets, 256 an octave: their doubles' exponent and the
// first eight bits behind it. A charge has 41 bits, a time 32, a size up to 63.
constexpr int kExponentMin = -64;
constexpr int kExponentMax = 80;
constexpr std::uint32_t kAnOctave = 256;
constexpr std::uint32_t kBuckets = (kExponentMax - kExponentMin) * kAnOctave;
constexpr std::uint32_t kMantissaShift = 52 - 8;
constexpr std::uint64_t kFirst = static_cast<std::uint64_t>(1023 + kExponentMin) * kAnOctave;

// REQUIRES: it gives something.
std::uint32_t bucket_of(const ReuseInterval& interval, BoundGoal goal) {
  const double price =
      static_cast<double>(cost_of(interval)) / static_cast<double>(given_by(interval, goal));
  const std::uint64_t at = std::bit_cast<std::uint64_t>(price) >> kMantissaShift;
  return static_cast<std::uint32_t>(std::clamp(at, kFirst, kFirst + kBuckets - 1) - kFirst);
}
// No price in the bucket is lower, what was rounded included.
double lowest_price(std::uint32_t bucket) {
  return bucket == 0 ? 0
                     : std::bit_cast<double>((kFirst + bucket) << kMantissaShift) * (1 - 0x1p-50);
}

// Intervals processed between two checks of the monitor.
constexpr std::uint64_t kAStep = 4096;

// The numbers of the intervals that give something, cheapest first; none if the monitor stops it.
std::vector<std::uint32_t> by_price(std::span<const ReuseInterval> intervals, BoundGoal goal,
                                    Monitor& monitor) {
  std::vector<std::uint64_t> begins(kBuckets + 1);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (given_by(intervals[i], goal) != 0) {
      ++begins[bucket_of(intervals[i], goal) + 1];
    }
    if (i % kAStep == 0 && monitor.stopped()) {
      return {};
    }
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> order(begins.back());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (given_by(intervals[i], goal) != 0) {
      order[begins[bucket_of(intervals[i], goal)]++] = static_cast<std::uint32_t>(i);
    }
    if (i % kAStep == 0 && monitor.stopped()) {
      return {};
    }
  }
  return order;
}

}  // namespace

ReuseFinder::ReuseFinder(const cache::KernelOptions& cache, std::uint64_t first_counted)
    : overhead_bytes_(cache.entry_overhead_bytes),
      charge_max_(cache::effective_max_object(cache::reload_options(cache))),
      first_counted_(first_counted) {}

std::optional<ReuseInterval> ReuseFinder::next(const ReplayRequest& request) {
  const std::uint64_t number = requests_++;
  if (request.object >= last_.size()) {
    last_.resize(std::max<std::size_t>(request.object + std::size_t{1}, last_.size() * 2));
  }
  Last& last = last_[request.object];
  const Last before = last;
  last = {number + 1, charge_of(request) + overhead_bytes_};
  if (number < first_counted_) {
    return std::nullopt;
  }
  ++counted_requests_;
  counted_bytes_ += request.size_bytes;
  if (before.number == 0 || before.charge_bytes > charge_max_) {
    return std::nullopt;
  }
  // All intervals that begin earlier hold room at the moment before the first request that counts.
  const std::uint64_t begin = first_counted_ == 0 ? 0 : first_counted_ - 1;
  return ReuseInterval{
      .from = static_cast<std::uint32_t>(std::max(before.number - 1, begin) - begin),
      .to = static_cast<std::uint32_t>(number - begin),
      .charge_bytes = before.charge_bytes,
      .size_bytes = request.size_bytes};
}

std::uint64_t ReuseFinder::moments() const {
  return first_counted_ == 0 && requests_ != 0 ? requests_ - 1 : counted_requests_;
}

PfooLower::PfooLower(BoundGoal goal) : goal_(goal), buckets_(kBuckets) {}

void PfooLower::add(const ReuseInterval& interval) {
  if (const std::uint64_t gives = given_by(interval, goal_); gives != 0) {
    Bucket& bucket = buckets_[bucket_of(interval, goal_)];
    bucket.gives += gives;
    bucket.costs += cost_of(interval);
  }
}

std::uint64_t PfooLower::most(std::uint64_t capacity_bytes, std::uint64_t moments) const {
  filter::Wide left = static_cast<filter::Wide>(capacity_bytes) * moments;
  std::uint64_t gives = 0;
  for (std::uint32_t i = 0; i < kBuckets; ++i) {
    const Bucket& bucket = buckets_[i];
    if (bucket.costs > left) {
      const double price = lowest_price(i);
      const double part = price > 0 ? static_cast<double>(left) / price : 0x1p63;
      return gives + (part < static_cast<double>(bucket.gives) ? static_cast<std::uint64_t>(part)
                                                               : bucket.gives);
    }
    left -= bucket.costs;
    gives += bucket.gives;
  }
  return gives;
}

std::uint64_t pfoo_upper(std::span<const ReuseInterval> intervals, BoundGoal goal,
                         std::uint64_t capacity_bytes, Monitor& monitor) {
  std::uint64_t moments = 0;
  for (const ReuseInterval& interval : intervals) {
    moments = std::max<std::uint64_t>(moments, interval.to);
  }
  Occupancy occupancy(moments);
  std::uint64_t gives = 0;
  std::uint64_t done = 0;
  for (const std::uint32_t number : by_price(intervals, goal, monitor)) {
    const ReuseInterval& interval = intervals[number];
    const Moments during{interval.from, interval.to};
    if (interval.charge_bytes <= capacity_bytes &&
        occupancy.is_below(during, capacity_bytes - interval.charge_bytes)) {
      occupancy.add(during, interval.charge_bytes);
      gives += given_by(interval, goal);
    }
    if (++done % kAStep == 0 && !monitor.advance(kAStep)) {
      break;
    }
  }
  return gives;
}

}  // namespace encore::sim
