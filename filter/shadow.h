// Shadow: exact generations next to a rotating filter, slaved to its rotations. It receives every
// key that the filter receives, on a sample of the keys. A key that the filter calls seen and the
// shadow does not know is a false positive: so the filter's own false-positive rate is measured
// under real traffic. Thread-compatible, confined to its filter.
//
// Memory: a table of 16-byte hashes a generation, with at least twice as many slots as sampled keys
// are expected in a cycle; a fixed size from the start, pages untouched until used. At 1 in 256
// that is between 0.125 and 0.25 bytes a key of capacity and generation, and at least 8 KiB. A
// generation that would overflow stops being complete, and measuring pauses until it is gone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/theory.h"

namespace encore::filter {

struct ShadowOptions {
  std::uint32_t one_in = 256;  // a power of two up to 65536; 0: no shadow; 1: every key
  std::uint32_t generations = 2;
  std::uint64_t capacity = 0;  // capacity of one generation of the filter
};

// The measured rate. `expected` is the sum of theory's p at the moment of each test, so that
// false_positives - expected has the variance of sum p (1-p).
struct MeasuredFpr {
  std::uint64_t asked = 0;            // true negatives that the filter was asked for
  std::uint64_t false_positives = 0;  // those among them that the filter called seen
  std::uint64_t false_negatives = 0;  // must stay 0: true members called new
  double expected = 0;
  double rate() const {
    return asked == 0 ? 0.0 : static_cast<double>(false_positives) / static_cast<double>(asked);
  }
  // Wilson, 95 %.
  Interval interval() const { return wilson_interval({false_positives, asked}); }
};

// A set of hashes of fixed capacity. Internal to Shadow.
class ExactGeneration {
 public:
  static Result<ExactGeneration> create(std::uint64_t keys_max);
  bool contains(const Hash128& hash) const;
  // False if the set is full and the hash is not in it.
  bool insert(const Hash128& hash);
  std::uint64_t size() const { return size_; }
  std::uint64_t memory_bytes() const { return memory_.size_bytes(); }

 private:
  explicit ExactGeneration(LineMemory memory);
  Hash128* find(const Hash128& hash) const;

  LineMemory memory_;
  std::uint64_t slots_ = 0;
  std::uint64_t size_ = 0;
  bool has_zero_ = false;  // the hash {0, 0} marks an empty slot and is kept apart
};

class Shadow {
 public:
  // Errors: memory that cannot be had, one_in not a power of two.
  static Result<Shadow> create(const ShadowOptions& options);

  // True if the shadow wants to hear of this key.
  bool samples(const Hash128& hash) const { return sample_of(hash) < sample_below_; }
  // For callers that keep the bound at hand: it never changes.
  std::uint32_t sample_below() const { return sample_below_; }

  // The filter's decision about a sampled key: whether it called it seen, which generation holds it
  // now (0: the current one), and theory's p at that moment.
  struct Answer {
    bool seen = false;
    std::uint32_t held_in = 0;
    double fpr_theory = 0;
  };
  void told(const Hash128& hash, const Answer& answer);

  // The filter rotated.
  void rotate();
  // The filter's generations hold keys that the shadow was not told: measuring starts when they
  // are gone.
  void forget_all();
  // The capacity of the generations from now on.
  void set_capacity(std::uint64_t capacity) { options_.capacity = capacity; }

  const MeasuredFpr& measured() const { return measured_; }
  std::uint64_t memory_bytes() const;

 private:
  struct Slot {
    ExactGeneration keys;
    bool complete = true;
  };
  explicit Shadow(const ShadowOptions& options);
  bool complete() const;
  std::uint64_t keys_max() const;

  ShadowOptions options_;
  std::uint32_t sample_below_ = 0;
  std::vector<Slot> slots_;  // current first
  MeasuredFpr measured_;
};

}  // namespace encore::filter
