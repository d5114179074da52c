// SpatialSample: which objects a sampled simulation keeps (SHARDS; Waldspurger, Park, Garthwaite
// and Ahmad 2015). An object is kept if a hash of its key lies in the first R of all hashes, so
// that either all of its requests are in the sample or none. The hash is mixed anew from all 128
// bits of the key's: it knows nothing of shards, index places or a filter's bits. Deterministic;
// thread-compatible.
#pragma once

#include <cstdint>
#include <queue>

#include "filter/hash.h"

namespace encore::sim {

struct SampleOptions {
  double rate = 1;                // of the objects; 1: all of them
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
  std::uint64_t place(const filter::Hash128& key) const;

  std::uint64_t seed_;
  std::uint64_t objects_max_;
  std::uint64_t last_;                         // the largest hash that is kept
  std::priority_queue<std::uint64_t> places_;  // of the objects kept, where their number is limited
};

}  // namespace encore::sim
