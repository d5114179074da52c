// Admission policies without memory.
//
// Always and Never: everything, nothing.
// Probability: every request is one draw that admits with probability p (the q-LRU of
// Garetto, Leonardi, Martina: "A unified approach to the performance analysis of caching systems",
// 2016): popular objects get in soon, objects that are asked for once seldom.
// SizeThreshold: objects up to a size (Abrams, Standridge, Abdulla, Williams, Fox: "Caching
// proxies: limitations and potentials", 1995, as LRU-threshold).
#pragma once

#include <cstdint>

#include "cache/candidate.h"

namespace encore::cache {

struct Always {
  static bool would_admit(const Candidate& /*candidate*/) { return true; }
  static bool admit(const Candidate& /*candidate*/) { return true; }
};

struct Never {
  static bool would_admit(const Candidate& /*candidate*/) { return false; }
  static bool admit(const Candidate& /*candidate*/) { return false; }
};

class Probability {
 public:
  explicit Probability(double probability) : probability_(probability) {}

  bool would_admit(const Candidate& candidate) const {
    return draw(candidate.key.hash, asked_) < probability_;
  }
  bool admit(const Candidate& candidate) {
    const bool yes = would_admit(candidate);
    ++asked_;
    return yes;
  }
  void reconfigure(double probability) { probability_ = probability; }

 private:
  double probability_;
  std::uint64_t asked_ = 0;
};

class SizeThreshold {
 public:
  explicit SizeThreshold(std::uint64_t threshold_bytes) : threshold_bytes_(threshold_bytes) {}

  bool takes(std::uint64_t size_bytes) const { return size_bytes <= threshold_bytes_; }
  bool would_admit(const Candidate& candidate) const { return takes(candidate.size_bytes); }
  bool admit(const Candidate& candidate) const { return would_admit(candidate); }
  void reconfigure(std::uint64_t threshold_bytes) { threshold_bytes_ = threshold_bytes; }

 private:
  std::uint64_t threshold_bytes_;
};

}  // namespace encore::cache
