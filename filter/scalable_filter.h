// ScalableFilter: a filter for a number of keys that nobody knows beforehand: a list of Bloom
// filters (slices), of which the last takes the keys and each next one is larger and tighter
// (scalable_theory.h). A key is there if one slice has all of its bits. Thread-compatible. Movable,
// not copyable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "filter/bloom_filter.h"
#include "filter/hash.h"
#include "filter/scalable_theory.h"

namespace encore::filter {

class ScalableFilter {
 public:
  // With its first slice. Errors: check(options), a first slice too large, memory.
  static Result<ScalableFilter> create(const ScalableOptions& options);

  // True if the key was new. It is there now. If no further slice is possible, for lack of memory
  // or because there are kSlicesMax, the last one takes more than its capacity, and overfull() says
  // so: no key is lost, and the rate rises.
  bool add(std::string_view key);
  bool test(std::string_view key) const;
  bool add(const Hash128& hash);
  bool test(const Hash128& hash) const;
  // Batched, see BloomFilter. REQUIRES: out is as long as keys.
  void test(std::span<const std::string_view> keys, std::span<bool> out) const;

  // ORs slice by slice: the keys of both, in slices that may hold more than their capacity then.
  // Errors: other options; memory.
  Result<void> merge(const ScalableFilter& other);
  // Always an error: a key may be in one slice here and in another there, so an AND slice by slice
  // would lose it.
  Result<void> intersect(const ScalableFilter& other);

  const ScalableOptions& options() const { return options_; }
  // The oldest first. By hash: slice i knows a key by slice_hash(hash, i).
  std::span<const BloomFilter> slices() const { return slices_; }
  std::uint64_t insertions() const;
  std::uint64_t set_bits() const;
  std::uint64_t bits() const;
  std::uint64_t capacity() const;  // sum of the existing slices
  bool overfull() const;
  // The compound rate by the bits of each slice. Reads the whole filter.
  double fpr_from_bits() const;

  // See saved_filter.h and BloomFilter.
  std::string save() const;
  static Result<ScalableFilter> load(std::string_view bytes);

 private:
  explicit ScalableFilter(const ScalableOptions& options) : options_(options) {}
  Result<void> grow();
  bool full() const;

  ScalableOptions options_;
  std::vector<BloomFilter> slices_;
  bool cannot_grow_ = false;
};

}  // namespace encore::filter
