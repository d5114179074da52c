// AdaptSize admission: Berger, Sitaraman, Harchol-Balter: "AdaptSize: orchestrating the hot object
// memory cache in a content delivery network" (NSDI 2017). An object is admitted with probability
// exp(-size/c), and c is tuned to the traffic, to the most object hits that a model of the cache
// expects (see size_model.h). Hits count as requests of the model too.
#pragma once

#include <cmath>
#include <cstdint>

#include "cache/candidate.h"
#include "cache/size_model.h"

namespace encore::cache {

class AdaptSize {
 public:
  struct Settings {
    std::uint64_t cache_bytes = 0;  // this shard's share
    std::uint64_t interval = 0;     // requests between two tunings, hits included
  };
  explicit AdaptSize(const Settings& settings)
      : settings_(settings), model_(settings.cache_bytes) {}

  bool would_admit(const Candidate& candidate) const {
    const double p = std::exp(-static_cast<double>(candidate.size_bytes) / model_.best());
    return draw(candidate.key.hash, asked_) < p;
  }
  bool admit(const Candidate& candidate) {
    const bool yes = would_admit(candidate);
    ++asked_;
    count(candidate.key, candidate.size_bytes);
    if (model_.is_tuning()) {
      model_.step();
    }
    return yes;
  }
  void used(const Key& key) { count(key, 0); }
  void reconfigure(const Settings& settings) {
    settings_ = settings;
    model_.set_cache_bytes(settings.cache_bytes);
  }

  double c() const { return model_.best(); }
  std::uint64_t memory_bytes() const { return model_.memory_bytes(); }

 private:
  void count(const Key& key, std::uint64_t size_bytes) {
    model_.add(key.hash, size_bytes);
    if (++since_tuning_ >= settings_.interval && !model_.is_tuning()) {
      since_tuning_ = 0;
      model_.begin();
    }
  }

  Settings settings_;
  SizeModel model_;
  std::uint64_t asked_ = 0;
  std::uint64_t since_tuning_ = 0;
};

}  // namespace encore::cache
