#include "cache/spatial_sample.h"

#include <algorithm>
#include <cmath>

namespace encore::cache {
namespace {

std::uint64_t scaled(std::uint64_t value, double rate) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, std::llround(static_cast<double>(value) * rate)));
}

}  // namespace

SpatialSample::SpatialSample(const SampleOptions& options)
    : seed_(mix(options.seed + 0x9e3779b97f4a7c15U)),
      objects_max_(options.objects_max),
      last_(options.rate >= 1 ? UINT64_MAX : static_cast<std::uint64_t>(options.rate * 0x1p64)) {}

void SpatialSample::add(const filter::Hash128& key) {
  if (objects_max_ == 0) {
    return;
  }
  places_.push(place(key));
  if (places_.size() > objects_max_) {
    // The highest place leaves and takes all above with it: the sample is one of a lower rate from
    // here on.
    last_ = places_.top() - 1;
    places_.pop();
  }
}

KernelOptions scaled_kernel(const KernelOptions& whole, double rate) {
  KernelOptions sample = whole;
  if (rate < 1) {
    sample.capacity_bytes = scaled(whole.capacity_bytes, rate);
    sample.admission.filter.capacity = scaled(whole.admission.filter.capacity, rate);
    // A filter of slices needs a bit for each.
    sample.admission.filter.bits = std::max<std::uint64_t>(
        scaled(whole.admission.filter.bits, rate), whole.admission.filter.hashes);
  }
  return sample;
}

}  // namespace encore::cache
