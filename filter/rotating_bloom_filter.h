// RotatingBloomFilter: the memory of second-hit admission, a ring of G >= 2 Bloom filter
// generations (2: the pair). New keys go to the current one. When it has taken `capacity`
// insertions, or after `rotate_after`, the oldest generation is emptied and becomes the current
// one: every key is remembered for at least (G-1) c and at most G c later insertions.
//
// A key is in the filter only if all of its bits are set in ONE generation. A hit in an older
// generation re-inserts the key in the current one ("refresh") and counts there as an insertion.
//
// Generations of another ring may be adopted as older ones (adopted_generations.h). They are asked
// last, by the key's text, and leave as the ring rotates; while there are none they cost nothing.
//
// Thread-compatible: a cache shard owns one under its lock. Deterministic: it takes `now` and a
// seed. Nothing here pauses at a rotation: the emptied generation is cleared in steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "filter/adopted_generations.h"
#include "filter/generation_bits.h"
#include "filter/hash.h"
#include "filter/joint_bits.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"
#include "filter/ring_theory.h"
#include "filter/shadow.h"
#include "filter/theory.h"

namespace encore::filter {

struct SavedGeneration;

std::string_view to_string(Seen seen) noexcept;

struct RotatingOptions {
  FilterParameters parameters;  // parameters of one generation of this filter (of one shard, in a
                                // cache)
  std::uint32_t generations = 2;
  bool refresh = true;
  Nanoseconds rotate_after{0};  // 0: by count alone
  // Seed of the keys' identity hash (HashedKey). A generation with xxh3 and this very seed uses
  // the identity hash as it is; any other hashes the key's bytes itself.
  Seed identity_seed;
  std::uint32_t shadow_one_in = 256;  // see shadow.h; 0: nothing is measured
};

struct GenerationStatistics {
  FilterParameters parameters;
  std::uint64_t insertions = 0;
  std::uint64_t set_bits = 0;
  double fill = 0;  // set_bits / bits
  double fpr_theory = 0;
};

struct RotatingStatistics {
  std::vector<GenerationStatistics> generations;  // the current one first; never-used ones too
  std::uint64_t insertions = 0;                   // over all time, refreshes included
  std::uint64_t refreshes = 0;
  std::uint64_t rotations = 0;
  double fpr_theory = 0;      // rate of all generations, from the keys inserted and refreshed
  double fpr_bits = 0;        // by the bits, of a sample of the lines
  AdoptedStatistics adopted;  // fpr_theory and fpr_bits above are with them
  MeasuredFpr measured;
  std::uint64_t memory_bytes = 0;  // all generations, shadow and adopted ones excluded
  std::uint64_t shadow_bytes = 0;
};

class RotatingBloomFilter {
 public:
  // Errors: those of checked(), generations outside 2..kGenerationsMax, a negative rotate_after,
  // memory that cannot be had.
  static Result<RotatingBloomFilter> create(const RotatingOptions& options, MonotonicTime now);
  RotatingBloomFilter(RotatingBloomFilter&&) noexcept;
  RotatingBloomFilter& operator=(RotatingBloomFilter&&) noexcept;
  ~RotatingBloomFilter();

  // Was it there? It is now (kOlder without refresh: it stays where it is).
  Seen test_and_set(const HashedKey& key, MonotonicTime now);
  // Batched: the lines of the keys that follow are on their way while one is tested. The same
  // answers as one by one. REQUIRES: out is as long as keys.
  void test_and_set(std::span<const HashedKey> keys, MonotonicTime now, std::span<Seen> out);
  // test_and_set() for callers whose generations have a changing capacity: the current generation
  // is full with `capacity` insertions, at most those that its bits were planned for
  // (FilterParameters::capacity). A full one rotates before it takes another key, not after its
  // last one, so that it goes on filling where the capacity has grown in between. Returns what the
  // filter knew before the rotation.
  Seen test_and_set_within(const HashedKey& key, std::uint64_t capacity, MonotonicTime now);
  // With indices of the caller's own, the same in every generation. REQUIRES: classic layout, no
  // shadow, never reconfigured; each index below bits.
  Seen test_and_set_indices(std::span<const std::uint64_t> indices, MonotonicTime now);

  // Pure tests: nothing is learnt, not even by the shadow.
  Seen find(const HashedKey& key) const;
  bool test(const HashedKey& key) const { return find(key) != Seen::kNew; }
  void test(std::span<const HashedKey> keys, std::span<bool> out) const;

  // Asks for the lines that a decision on this identity hash will need.
  void prefetch(const Hash128& hash) const;

  // Rotates if rotate_after has passed; test_and_set does so itself, an idle timer may. However
  // long ago that was, it is one rotation: what came in before is as old as what came in last.
  void rotate_if_due(MonotonicTime now) {
    if (options_.rotate_after.count() != 0 && now - started_ >= options_.rotate_after) {
      rotate(now);
    }
  }
  void rotate(MonotonicTime now);

  // From now on the current generation has these parameters: the old current one becomes the
  // newest of the older ones and the oldest is dropped; nothing else is forgotten. Parameters equal
  // to the current ones change nothing. Errors: as create(); the filter is unchanged then.
  Result<void> reconfigure(const FilterParameters& parameters, MonotonicTime now);
  void set_refresh(bool refresh);
  void set_rotate_after(Nanoseconds rotate_after);

  // The memory's generations are older ones of this ring from now on, as many of them as it
  // returns; its own generations stay. Keys must come with their text while the adopted ones are
  // there. They are not saved. The shadow measures again when they and the keys that they answered
  // for are gone. Errors: as AdoptedGenerations::add().
  Result<std::uint32_t> adopt(std::shared_ptr<const AdoptedMemory> memory);

  // Options as in force; `parameters` are the current generation's, rounded as checked() does.
  const RotatingOptions& options() const { return options_; }
  // `lines_max` bounds the work for fpr_bits, in lines a generation.
  RotatingStatistics statistics(std::uint64_t lines_max = 4096) const;
  // p of all generations together. By theory: expected of generations that share the keys that were
  // refreshed (ring_theory.h); by the bits: joint_bits.h. Generations with other parameters than
  // the adjacent ones, or more than kJointMax apart, count as independent of them.
  double fpr_theory() const;
  double fpr_from_bits(std::uint64_t lines_max = 4096) const;
  // The same in parts, for callers that read it at every request. The parts are p of the older
  // generations, the share of the current one's p that they answer as well, which moves slowly, and
  // p of the current one alone, which is cheap for classic. Together: older + (1 - shared) current.
  struct BitsReading {
    double older = 0;
    double shared = 0;
  };
  BitsReading read_bits(std::uint64_t lines_max = 4096) const;
  double current_fpr_from_bits(std::uint64_t lines_max = 4096) const;
  // fpr_theory() for callers that ask for every request: what the generations share is worked out
  // every 32nd of a cycle, and only the fill is of this moment.
  double follow_theory();
  std::uint64_t rotations() const { return rotations_; }
  // Insertions into the current generation.
  std::uint64_t current_insertions() const { return generations_.front().insertions; }

  // Versioned and checksummed bytes with parameters, seeds, fill and bits of every generation (not
  // the shadow). They hold the seed: a file of them is for its owner alone.
  std::string save(MonotonicTime now) const;
  // The members of RotatingOptions that are not saved: refresh, rotate_after, shadow_one_in.
  // Errors: damaged data, of another version, or above `bits_max` for one generation. Never
  // allocates more than a small multiple of the size of `bytes`. The shadow starts to measure when
  // the loaded generations are gone.
  struct LoadOptions {
    bool refresh = true;
    Nanoseconds rotate_after{0};
    std::uint32_t shadow_one_in = 256;
    std::uint64_t bits_max = kBitsMax;
  };
  static Result<RotatingBloomFilter> load(std::string_view bytes, const LoadOptions& options,
                                          MonotonicTime now);

 private:
  // Memory for all generations of one make, side by side, and theory's curve for them.
  struct Bank {
    std::shared_ptr<const LineMemory> memory;
    std::shared_ptr<const FprCurve> curve;
  };
  struct Generation {
    FilterParameters parameters;
    Bank bank;
    std::uint32_t place = 0;  // which of the adjacent lines
    GenerationBits bits;
    bool identity = true;  // takes the identity hash as it is
    std::uint64_t insertions = 0;

    // The key's hash as this generation takes it: the identity hash, or `own`, made now.
    const Hash128& hash_of(const HashedKey& key, Hash128& own) const;
  };
  // All that a decision reads where it is one pass over two adjacent lines: two split generations
  // side by side that take the identity hash, nothing dirty, no rotation by time. `pair` is null
  // where it is not. Few instructions a decision are what lets many overlap.
  struct FastPath {
    decltype(SplitKernel::pair) pair = nullptr;
    decltype(SplitKernel::pairs) pairs = nullptr;
    PairLines lines;
    std::uint64_t* insertions = nullptr;  // the current generation's
    std::uint64_t capacity = 0;
    std::uint32_t sample_below = kEverySample;  // keys with sample_of() below go the slow way
  };
  struct Decision {
    Seen seen = Seen::kNew;
    std::uint32_t held_in = 0;  // the generation that holds the key now
    bool inserted = false;
    bool adopted = false;  // only an adopted generation had it

    // An insertion as theory counts it: a key that was adopted is as good as new to our own.
    Seen known() const { return adopted ? Seen::kNew : seen; }
  };
  // The state of the current generation that theory has received, and its result.
  struct Followed {
    std::uint64_t insertions = 0;
    std::uint64_t refreshes = 0;
    double older = 0;   // p of the older generations
    double shared = 0;  // the share of the current one's p that the older ones answer as well
  };

  RotatingBloomFilter(const RotatingOptions& options, MonotonicTime now);
  Result<Bank> make_bank(const FilterParameters& parameters) const;
  Generation make_generation(const FilterParameters& parameters, const Bank& bank,
                             std::uint32_t place) const;
  std::uint32_t free_place(const Bank& bank) const;
  Result<void> restore_generation(const SavedGeneration& saved, std::size_t i);
  Decision decide(const HashedKey& key);
  bool is_adopted(const HashedKey& key) const { return !adopted_.empty() && adopted_.test(key); }
  void prefetch_each(const Hash128& hash) const;
  // Decides and reports the decision to the shadow.
  Seen decide_watched(const HashedKey& key, MonotonicTime now);
  Seen decide_slowly(const HashedKey& key, MonotonicTime now);
  void tell_shadow(const HashedKey& key, const Decision& decision, double expected);
  void count_insertion(Seen seen, MonotonicTime now);
  // Generations side by side, newest first, that are taken together.
  std::uint32_t joint(std::uint32_t first) const;
  // Rings of more than a pair: counts an insertion for which older generations from `held_in` on
  // answered. `answers(generation)` tests the key.
  template <typename Answers>
  void count_answers(std::uint32_t held_in, Answers answers);
  void restart_theory();
  void resume_theory(const std::vector<double>& positions);
  void follow();
  std::vector<double> untold() const;
  RingTheory theory_now() const;
  double with_independent(double fpr) const;
  double fpr_from_bits(std::uint32_t first, std::uint32_t end, std::uint64_t lines_max) const;
  std::size_t decide_run(std::span<const HashedKey> keys, MonotonicTime now, std::span<Seen> out);
  // The newest generation that has the key; the number of generations if none has.
  std::uint32_t locate(const HashedKey& key) const;
  void sweep();
  void refresh_fast_path();

  FastPath fast_;
  RotatingOptions options_;
  std::vector<Generation> generations_;   // current first
  MonotonicTime started_;                 // start of the current generation
  bool dirty_ = false;                    // some generation is being cleared
  std::uint64_t earlier_insertions_ = 0;  // insertions into generations that are no longer current
  std::uint64_t refreshes_ = 0;
  std::uint64_t rotations_ = 0;
  RingTheory theory_;  // theory of the generations with the current parameters
  Followed followed_;
  std::vector<double> answered_;  // by the older generations that answered, since theory was last
                                  // updated
  std::optional<Shadow> shadow_;
  AdoptedGenerations adopted_;
  std::uint64_t adopted_answers_ = 0;
};

template <typename Answers>
void RotatingBloomFilter::count_answers(std::uint32_t held_in, Answers answers) {
  if (answered_.empty()) {
    return;
  }
  std::size_t set = 0;
  for (std::uint32_t i = held_in; i < joint(0); ++i) {
    if (i == held_in || answers(generations_[i])) {
      set |= std::size_t{1} << (i - 1);
    }
  }
  ++answered_[set];
}

inline void RotatingBloomFilter::count_insertion(Seen seen, MonotonicTime now) {
  Generation& current = generations_.front();
  if (seen == Seen::kOlder) {
    ++refreshes_;
  }
  if (++current.insertions >= current.parameters.capacity) [[unlikely]] {
    rotate(now);
  }
}

[[gnu::always_inline]] inline void RotatingBloomFilter::prefetch(const Hash128& hash) const {
  if (fast_.pair == nullptr) {
    prefetch_each(hash);
    return;
  }
  fast_.lines.prefetch(hash);
}

// Inline, for the same reason as FastPath: every instruction saved lets more decisions overlap.
inline Seen RotatingBloomFilter::test_and_set(const HashedKey& key, MonotonicTime now) {
  if (sample_of(key.hash) < fast_.sample_below) [[unlikely]] {
    return decide_slowly(key, now);
  }
  const Seen seen = fast_.pair(fast_.lines, key.hash);
  if (seen == Seen::kNew) [[likely]] {
    if (++*fast_.insertions >= fast_.capacity) [[unlikely]] {
      rotate(now);
    }
  } else if (seen == Seen::kOlder && fast_.lines.refresh) {
    count_insertion(seen, now);
  }
  return seen;
}

}  // namespace encore::filter
