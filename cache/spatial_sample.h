// SpatialSample: which objects a sampled simulation keeps (SHARDS; Waldspurger, Park, Garthwaite
// and Ahmad 2015). An object is kept if a hash of its key lies in the first R of all hashes, so
// that either all of its requests are in the sample or none. The hash is mixed anew from all 128
// bits of the key's: it knows nothing of shards, index places or a filter's bits. Deterministic;
// thread-compatible.
#pragma once

#include <cstdint>
#include <queue>

#include "cache/options.h"
#include "filter/hash.h"

namespace encore::cache {

struct SampleOptions {
  double rate = 1;                // share of the objects; 1: all of them
  std::uint64_t objects_max = 0;  // not 0: the rate falls until no more objects than this are kept
  std::uint64_t seed = 1;         // another seed, another sample
};

class SpatialSample {
 public:
  // Disjoint samples that a sample falls into, each a sample of an eighth of the rate.
  static constexpr std::uint32_t kParts = 8;

  // REQUIRES: 0 < rate <= 1.
  explicit SpatialSample(const SampleOptions& options);

  bool contains(const filter::Hash128& key) const { return place(key) <= last_; }
  std::uint32_t part_of(const filter::Hash128& key) const {
    return static_cast<std::uint32_t>(place(key) % kParts);
  }
  // Says that a new object is kept: above objects_max the one with the largest hash, and with it
  // the rate, goes. REQUIRES: contains(key).
  void add(const filter::Hash128& key);
  double rate() const { return (static_cast<double>(last_) + 1) * 0x1p-64; }

 private:
  // The finalizer of splitmix64 (Steele, Lea and Flood 2014): every bit depends on every bit.
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }
  std::uint64_t place(const filter::Hash128& key) const {
    return mix(mix(key.lo ^ seed_) + key.hi);
  }

  std::uint64_t seed_;
  std::uint64_t objects_max_;
  std::uint64_t last_;                         // the largest hash that is kept
  std::priority_queue<std::uint64_t> places_;  // hashes of the sampled objects, if their number is
                                               // limited
};

// The kernel for a sample of that rate: it is so much smaller, and so are its filters and the
// windows of these. REQUIRES: 0 < rate <= 1.
KernelOptions scaled_kernel(const KernelOptions& whole, double rate);

// 97.5 % quantile of Student's t for the parts of a sample: 7 degrees of freedom.
inline constexpr double kStudent = 2.365;

}  // namespace encore::cache
