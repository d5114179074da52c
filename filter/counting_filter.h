// CountingFilter: a Bloom filter that can forget (Fan, Cao, Almeida, Broder 2000). Removing a key
// that was never added, but tests positive, lowers counters of other keys: they may be lost. Remove
// only keys that were added, once for each time that add() said they were new. Each position has a
// counter of four bits instead of a bit: four times the memory of a plain filter, and plain()
// returns such a filter. Any layout is possible. Thread-compatible. Movable, not copyable.
//
// A counter that has reached 15 stays there: how much more it has counted is not known, so it is
// never lowered again, and a key that needs it is never lost. Such counters cause false positives,
// in numbers that counting_theory.h gives: at half fill about 1e-15 of the counters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/counting_theory.h"
#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"
#include "filter/positions.h"

namespace encore::filter {

class CountingFilter {
 public:
  // `parameters.bits` is the number of counters. Errors: those of checked(), and memory that cannot
  // be had.
  static Result<CountingFilter> create(const FilterParameters& parameters);

  // Counts the key once more. True if it was new, which is when a counter of its was zero.
  bool add(std::string_view key);
  bool test(std::string_view key) const;
  // Counts the key once less. False if it is not there; nothing is changed then. A key that never
  // was added but tests positive takes away what belongs to others, who may then be missed: remove
  // only what was added.
  bool remove(std::string_view key);

  // The same by the key's hash. REQUIRES: the filter's hash is not one that lists indices.
  bool add(const Hash128& hash);
  bool test(const Hash128& hash) const;
  bool remove(const Hash128& hash);

  // Batched, see BloomFilter. REQUIRES: out is as long as keys.
  void test(std::span<const std::string_view> keys, std::span<bool> out) const;

  // The keys of both, each as often as in both together: counters are added up. Or those that both
  // have, as often as in the one that has it less often: the smaller counter of both.
  // Errors: as BloomFilter::merge.
  Result<void> merge(const CountingFilter& other);
  Result<void> intersect(const CountingFilter& other);

  // A plain filter of the same shape: a bit for each counter that is not zero.
  // Errors: memory that cannot be had.
  Result<BloomFilter> plain() const;

  const FilterParameters& parameters() const { return parameters_; }
  // Keys added less keys removed. After intersect(): as many as the smaller filter has at most.
  std::uint64_t keys() const { return keys_; }
  // Counters that are not zero.
  std::uint64_t set_bits() const { return set_bits_; }
  double fill() const;
  // Times that a counter was to be raised which was at its maximum.
  std::uint64_t overflows() const { return overflows_; }
  // REQUIRES: i < bits.
  std::uint32_t counter(std::uint64_t i) const {
    return static_cast<std::uint32_t>(memory_.words()[i / kInWord] >> shift(i)) & kCounterMax;
  }
  // As BloomFilter::fpr_from_bits(). Takes a plain filter's memory for a layout other than classic,
  // and by a hash of fields.
  Result<double> fpr_from_bits() const;

  // See saved_filter.h and BloomFilter.
  std::string save() const;
  static Result<CountingFilter> load(std::string_view bytes);

 private:
  static constexpr std::uint64_t kInWord = 16;  // counters in 64 bits
  static constexpr unsigned shift(std::uint64_t i) { return 4 * (i % kInWord); }

  CountingFilter(const FilterParameters& parameters, LineMemory memory);

  // The positions of a key, from its bytes or its hash, until `visit` says false.
  template <typename Visit>
  void for_each(std::string_view key, Visit visit) const;
  template <typename Visit>
  void for_each(const Hash128& hash, Visit visit) const;
  template <typename Key>
  bool count_in(const Key& key);
  template <typename Key>
  bool holds(const Key& key) const;
  template <typename Key>
  bool count_out(const Key& key);
  bool raise(std::uint64_t i);
  void lower(std::uint64_t i);
  void set_counter(std::uint64_t i, std::uint32_t value);
  // Words of the memory that hold counters.
  std::uint64_t words() const { return (parameters_.bits + kInWord - 1) / kInWord; }
  template <typename Combine>
  void combine(const CountingFilter& other, Combine combine);

  FilterParameters parameters_;
  KeyPositions positions_;
  LineMemory memory_;
  std::uint64_t keys_ = 0;
  std::uint64_t set_bits_ = 0;
  std::uint64_t overflows_ = 0;
};

}  // namespace encore::filter
