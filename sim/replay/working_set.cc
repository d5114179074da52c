#include "sim/replay/working_set.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace encore::sim {

void WorkingSet::add(std::uint64_t requests, std::uint64_t bytes) {
  Sums& sums = sums_[static_cast<std::size_t>(std::bit_width(requests - 1))];
  const auto distance = static_cast<double>(requests);
  const auto size = static_cast<double>(bytes);
  sums.count += 1;
  sums.distance += distance;
  sums.bytes += size;
  sums.bytes_distance += size * distance;
}

// The request is the object's last one in min(distance, window) of the windows.
WorkingSet::Mean WorkingSet::mean(unsigned exponent, std::uint64_t requests) const {
  if (requests == 0) {
    return {};
  }
  const double window = std::ldexp(1.0, static_cast<int>(exponent));
  Mean mean;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Sums& sums = sums_[i];
    mean.objects += i <= exponent ? sums.distance : window * sums.count;
    mean.bytes += i <= exponent ? sums.bytes_distance : window * sums.bytes;
  }
  mean.objects /= static_cast<double>(requests);
  mean.bytes /= static_cast<double>(requests);
  return mean;
}

void IntervalWorkingSet::add(std::uint32_t object, std::uint64_t bytes) {
  if (object >= last_.size()) {
    last_.resize(std::max<std::size_t>(object + std::size_t{1}, last_.size() * 2));
  }
  Last& last = last_[object];
  if (last.interval != interval_) {
    last = {.bytes = 0, .interval = interval_};
    ++objects_;
  }
  bytes_ += bytes - last.bytes;
  last.bytes = bytes;
}

void IntervalWorkingSet::next_interval() {
  ++interval_;
  objects_ = 0;
  bytes_ = 0;
}

}  // namespace encore::sim
