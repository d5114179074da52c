// Second-hit admission on a rotating pair of Bloom filters (Maggs, Sitaraman: "Algorithmic nuggets
// in content delivery", 2015): an object is stored when it is asked for a second time.
#pragma once

#include "cache/candidate.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

class SecondHit {
 public:
  explicit SecondHit(filter::RotatingBloomFilter filter) : filter_(std::move(filter)) {}

  bool would_admit(const Candidate& candidate) const { return filter_.test(candidate.key); }
  // True if it was asked for before. It is remembered now.
  bool admit(const Candidate& candidate) {
    return filter_.test_and_set(candidate.key, candidate.now) != filter::Seen::kNew;
  }

  filter::RotatingBloomFilter& filter() { return filter_; }
  const filter::RotatingBloomFilter& filter() const { return filter_; }

 private:
  filter::RotatingBloomFilter filter_;
};

}  // namespace encore::cache
