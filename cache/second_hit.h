// Second-hit admission on a rotating pair of Bloom filters (Maggs, Sitaraman: "Algorithmic nuggets
// in content delivery", 2015): an object is stored when it is asked for a second time.
#pragma once

#include "cache/types.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

class SecondHit {
 public:
  explicit SecondHit(filter::RotatingBloomFilter filter) : filter_(std::move(filter)) {}

  bool would_admit(const Key& key, MonotonicTime /*now*/) const { return filter_.test(key); }
  // True if it was asked for before. It is remembered now.
  bool admit(const Key& key, MonotonicTime now) {
    return filter_.test_and_set(key, now) != filter::Seen::kNew;
  }

  filter::RotatingBloomFilter& filter() { return filter_; }
  const filter::RotatingBloomFilter& filter() const { return filter_; }

 private:
  filter::RotatingBloomFilter filter_;
};

}  // namespace encore::cache
