// TinyLFU admission: Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission
// policy" (2017). While there is room everything is stored; then only what was asked for more often
// lately than the entry that would be evicted for it. How often is estimated by a count-min sketch
// of four bits a counter behind a doorkeeper, a Bloom filter that takes the first request for each
// key; after every W requests all counts are halved and the doorkeeper is emptied. W is what the
// options say (the paper: ten times the entries that the cache has room for); it does not follow
// the entries that are held, and nothing is rounded to a power of two.
//
// Hits count as requests too. would_admit(), which may not ask for a victim, compares with the
// last one that was compared with.
#pragma once

#include "base/error.h"
#include "cache/candidate.h"
#include "cache/frequency_sketch.h"
#include "filter/bloom_filter.h"

namespace encore::cache {

class TinyLfu {
 public:
  // W is the capacity of `doorkeeper`. Errors: what the filter refuses, memory that cannot be had.
  static Result<TinyLfu> create(const filter::FilterParameters& doorkeeper);

  bool would_admit(const Candidate& candidate) const;
  bool admit(const Candidate& candidate);
  void used(const Key& key) { count(key.hash); }
  // How often the key was asked for lately, as far as the sketch can tell.
  std::uint32_t frequency(const filter::Hash128& key) const {
    return sketch_.frequency(key) + (doorkeeper_.test(key) ? 1U : 0U);
  }

  std::uint64_t memory_bytes() const;
  std::uint64_t resets() const { return resets_; }

 private:
  TinyLfu(filter::BloomFilter doorkeeper, std::uint64_t window);
  void count(const filter::Hash128& key);

  filter::BloomFilter doorkeeper_;
  FrequencySketch sketch_;
  std::uint64_t window_;  // W
  std::uint64_t counted_ = 0;
  std::uint64_t resets_ = 0;
  bool compared_ = false;
  filter::Hash128 last_victim_{};
};

}  // namespace encore::cache
