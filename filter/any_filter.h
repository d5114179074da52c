// AnyFilter: a filter whose kind is chosen at run time, by key bytes. Tools and resources use it;
// the hot path of the proxy has its own (RotatingBloomFilter). Thread-compatible. Movable, not
// copyable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/counting_filter.h"
#include "filter/parameters.h"
#include "filter/scalable_filter.h"

namespace encore::filter {

// plain: one Bloom filter, of a fixed size (BloomFilter). scalable: larger and tighter slices, one
// after the other, for any number of keys (ScalableFilter). growable: equal slices, for comparison.
// counting: one that can forget, for four times the memory (CountingFilter).
enum class FilterKind : std::uint8_t { kPlain, kScalable, kGrowable, kCounting };

std::string_view to_string(FilterKind kind) noexcept;
// Errors: an unknown name; the message shows it and the accepted ones.
Result<FilterKind> parse_kind(std::string_view name);

struct AnyFilterOptions {
  FilterKind kind = FilterKind::kPlain;
  // bits 0: the size that `capacity` and `fpr` need; hashes 0: the number that is best for it.
  // capacity 0, with bits: where half of them are set. With scalable and growable: bits 0, and
  // hashes 0 or 8 with split, for each slice has its own; capacity is the first slice's.
  FilterParameters parameters;
  // 0 < fpr < 1 with bits 0; not looked at with bits. scalable: never exceeded, at any size;
  // growable: of each slice.
  double fpr = 0;
  double growth = 2;                   // scalable: of the slices' capacities, 1 to kGrowthMax
  double tightening = 0.85;            // scalable: of their rates, above 0, below 1
  std::uint64_t memory_bytes_max = 0;  // limit for the filter as it is made; 0: the memory that
                                       // there is
};

struct AnyFilterInfo {
  FilterKind kind = FilterKind::kPlain;
  FilterParameters parameters;  // with slices: the last one's, with the bits of all
  std::uint64_t capacity = 0;   // keys that it is made for; of slices: of those that there are
  std::uint64_t set_bits = 0;
  double fill = 0;            // set_bits / bits
  std::uint64_t keys = 0;     // counted as they were added; of a union or intersection estimated
  double keys_estimated = 0;  // by the set bits; infinite: they are all set, and say nothing
  double keys_error = 0;      // its standard error
  double fpr_now = 0;         // by the bits
  double fpr_capacity = 0;    // predicted at `capacity` keys; scalable: what it never exceeds
  std::uint64_t slices = 1;
  std::uint64_t overflows = 0;  // counting: times that a counter was to be raised above its maximum
};

class AnyFilter {
 public:
  // Errors: options that give no size, those of checked(), memory that cannot be had.
  static Result<AnyFilter> create(const AnyFilterOptions& options);

  // True if the key was new. It is there now.
  bool add(std::string_view key);
  bool test(std::string_view key) const;
  // Batched: memory is on its way before the first key is tested. REQUIRES: out is as long as keys.
  void test(std::span<const std::string_view> keys, std::span<bool> out) const;
  // True if the key was there; false leaves the filter as it is. Errors: a kind without removal.
  Result<bool> remove(std::string_view key);

  // The keys of both, or those that both have. Errors: kinds, shapes, hashes or seeds that differ;
  // the message says which.
  Result<void> unite(const AnyFilter& other);
  Result<void> intersect(const AnyFilter& other);

  FilterKind kind() const;
  // Returns the bytes of its bits or counters.
  std::uint64_t memory_bytes() const;
  // Reads the whole filter.
  AnyFilterInfo info() const;

  // The saved form of the kind (saved_filter.h), which holds the seed. load() takes every kind but
  // a ring, refuses what is damaged, and allocates no more than the size of `bytes` justifies.
  std::string save() const;
  static Result<AnyFilter> load(std::string_view bytes);

  explicit AnyFilter(BloomFilter filter) : filter_(std::move(filter)) {}
  explicit AnyFilter(ScalableFilter filter) : filter_(std::move(filter)) {}
  explicit AnyFilter(CountingFilter filter) : filter_(std::move(filter)) {}
  // The filter itself where it is plain, else nullptr.
  const BloomFilter* plain() const { return std::get_if<BloomFilter>(&filter_); }
  // A plain filter that answers as this one does: a copy, or of a counting filter its bits.
  // Errors: a filter of several slices; memory that cannot be had.
  Result<BloomFilter> to_plain() const;

 private:
  std::variant<BloomFilter, ScalableFilter, CountingFilter> filter_;
};

}  // namespace encore::filter
