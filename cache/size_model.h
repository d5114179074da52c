// SizeModel: which parameter c of the admission probability exp(-size/c) gives the most hits? It
// uses a sample of the requested objects, with sizes and numbers of requests, and the model of
// Berger, Sitaraman, Harchol-Balter: "AdaptSize" (NSDI 2017). Requests for an object are a Poisson
// process of rate r. So an LRU cache of characteristic time T holds it with probability P = p
// (e^(rT) - 1) / (1 + p (e^(rT) - 1)), where p is its admission probability and T is such that the
// sum of P * size is the cache's size; hits are the sum of r * P. (Any eviction policy is taken for
// LRU.)
//
// The sample is bounded, and a tuning is done in steps of one pass over it, so that no request
// waits for the whole. Deterministic. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "filter/hash.h"

namespace encore::cache {

class SizeModel {
 public:
  // Objects of the sample at most: one step is some 10 us.
  static constexpr std::size_t kObjectsMax = 512;
  // Candidates for c: 2^6 bytes and on, half an octave apart.
  static constexpr std::uint32_t kFirstExponent = 12;  // in half octaves
  static double candidate(std::uint32_t number);

  explicit SizeModel(std::uint64_t cache_bytes) : cache_bytes_(cache_bytes) {}
  void set_cache_bytes(std::uint64_t bytes) { cache_bytes_ = bytes; }

  // A request for an object, where the sample takes it. Size 0: as known before; an object whose
  // size is not known is left out.
  void add(const filter::Hash128& key, std::uint64_t size_bytes);

  // Begins a tuning on what was added until now, which fades by half.
  void begin();
  bool is_tuning() const { return !frozen_.empty(); }
  // One pass over the sample. True: the tuning is finished, best() is new.
  // REQUIRES: is_tuning().
  bool step();
  double best() const { return best_; }

  // The expected hits of the frozen sample for c, all passes in one call. REQUIRES: is_tuning().
  double hits(double c) const;

  std::size_t objects() const { return objects_.size(); }
  std::uint64_t memory_bytes() const;

 private:
  struct Object {
    std::uint64_t id;  // sorted by it
    double requests;
    double size_bytes;
  };
  struct Frozen {
    double requests;
    double size_bytes;
    double admitted;  // the probability under the candidate that is tried
  };
  static constexpr int kPasses = 16;  // towards T
  static std::uint64_t id_of(const filter::Hash128& key);
  void thin_out();
  double budget() const;
  static void prepare(std::vector<Frozen>& objects, double c);
  static double next_time(const std::vector<Frozen>& objects, double time, double bytes);
  static double hits_at(const std::vector<Frozen>& objects, double time);

  std::vector<Object> objects_;
  std::uint64_t cache_bytes_;
  std::uint32_t sampled_shift_ = 0;  // one key in 2^this
  std::vector<Frozen> frozen_;
  double frozen_budget_ = 0;  // the sample's share of the cache
  std::uint32_t trying_ = 0;  // which candidate
  int pass_ = 0;
  double time_ = 0;
  double most_hits_ = -1;
  double found_ = 0;
  double best_ = 32768;  // before the first tuning, as the authors' code has it
};

}  // namespace encore::cache
