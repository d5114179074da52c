#include "sim/replay/spatial_sample.h"

namespace encore::sim {
namespace {

// The finalizer of splitmix64 (Steele, Lea and Flood 2014): every bit depends on every bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

SpatialSample::SpatialSample(const SampleOptions& options)
    : seed_(mix(options.seed + 0x9e3779b97f4a7c15U)),
      objects_max_(options.objects_max),
      last_(options.rate >= 1 ? UINT64_MAX : static_cast<std::uint64_t>(options.rate * 0x1p64)) {}

std::uint64_t SpatialSample::place(const filter::Hash128& key) const {
  return mix(mix(key.lo ^ seed_) + key.hi);
}

void SpatialSample::add(const filter::Hash128& key) {
  if (objects_max_ == 0) {
    return;
  }
  places_.push(place(key));
  if (places_.size() > objects_max_) {
    last_ = places_.top() - 1;
    places_.pop();
  }
}

}  // namespace encore::sim
