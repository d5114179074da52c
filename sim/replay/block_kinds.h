// KindSubject: a filter of the block experiment that is neither a single one nor a pair: one that
// grows, one that counts, one in buckets. Takes keys by their hash. Thread-compatible.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/counting_filter.h"
#include "filter/fill_theory.h"
#include "filter/scalable_filter.h"
#include "filter/theory.h"

namespace encore::sim {

// single: one Bloom filter, or a rotating pair. bucketed: keys dealt by their hash to equal
// filters, as the shards of a cache are: a blocked filter (Putze et al. 2007) of large blocks.
enum class BlockKind : std::uint8_t { kSingle, kScalable, kGrowable, kCounting, kBucketed };

std::string_view to_string(BlockKind kind) noexcept;

// Options of the kinds in addition to a shape.
struct BlockKindOptions {
  BlockKind kind = BlockKind::kSingle;
  // scalable, growable: of the first slice, of all together or of each slice, s and r.
  std::uint64_t capacity = 1000;
  double fpr = 0.01;
  double growth = 2;
  double tightening = 0.85;
  std::uint64_t buckets = 16;
};

// The options with the kind of this name: "single" and "pair" are BlockKind::kSingle. Errors:
// another name; the message shows it and the accepted ones.
Result<BlockKindOptions> parse_block_kind(std::string_view name, BlockKindOptions options);
// Returns the filter's bits of memory with N keys. REQUIRES: a kind other than single; a growing
// one's numbers are in their ranges.
double memory_bits(const BlockKindOptions& options, const filter::FilterShape& shape, double keys);

class KindSubject {
 public:
  // `parameters`: layout, hash and seed; of counting and bucketed filters size, k and capacity as
  // well, the keys that theory is to reach. Errors: those of the filters; a hash that lists
  // indices; buckets of another layout than classic.
  static Result<KindSubject> create(const BlockKindOptions& options,
                                    const filter::FilterParameters& parameters);

  // True if the key was there already.
  bool test_and_set(const filter::Hash128& hash);
  double fpr_from_bits() const;
  // By theory: with what was inserted so far where the filter counts that, else with `keys`.
  double fpr_theory(std::uint64_t keys);

  std::uint64_t bits() const;
  std::uint32_t hashes() const;  // hashes of the last slice
  std::uint64_t slices() const;
  std::uint64_t memory_bytes() const;

 private:
  KindSubject() = default;
  double scalable_theory(const filter::ScalableFilter& scalable);

  std::variant<std::vector<filter::BloomFilter>, filter::ScalableFilter, filter::CountingFilter>
      filter_;
  filter::FilterParameters parameters_;
  // For a growing filter: the probability that its full slices do not answer; p of the last one by
  // its insertions.
  double misses_full_ = 1;
  std::size_t curve_of_ = 0;  // slices when the curve was made
  filter::FprCurve curve_;
  filter::FillTheory theory_;  // for counting filters and buckets
};

}  // namespace encore::sim
