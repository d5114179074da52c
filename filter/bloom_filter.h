// BloomFilter: one filter of any layout, and the primitive test-and-set: "was it there? it is now".
// Thread-compatible. Movable, not copyable.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/generation_bits.h"
#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"

namespace encore::filter {

// Where indices come from that are not cut from a Hash128: fills `out` with indices below `bits`.
template <typename T>
concept IndexSource = requires(const T& source, std::uint64_t bits, std::span<std::uint64_t> out) {
  source.indices(bits, out);
};

// MD5(counter byte || key) and its like, see digest_indices.
struct DigestIndices {
  HashFamily family = HashFamily::kMd5;
  std::string_view key;
  void indices(std::uint64_t bits, std::span<std::uint64_t> out) const noexcept {
    digest_indices(family, key, bits, out);
  }
};

class BloomFilter {
 public:
  // Errors: those of checked(), and memory that cannot be had.
  static Result<BloomFilter> create(const FilterParameters& parameters);

  // True if the key was there already (or is a false positive). It is there now.
  bool test_and_set(const Hash128& hash);
  bool test(const Hash128& hash) const;
  // Batched: every line is on its way from memory before the first is looked at.
  // REQUIRES: out is as long as hashes.
  void test_and_set(std::span<const Hash128> hashes, std::span<bool> out);
  void test(std::span<const Hash128> hashes, std::span<bool> out) const;

  // With indices of the caller's own. REQUIRES: layout is classic; each index < bits.
  bool test_and_set_indices(std::span<const std::uint64_t> indices);
  bool test_indices(std::span<const std::uint64_t> indices) const;
  bool test_and_set_from(const IndexSource auto& source) {
    std::array<std::uint64_t, kHashesMax> indices;
    const std::span<std::uint64_t> list(indices.data(), parameters_.hashes);
    source.indices(parameters_.bits, list);
    return test_and_set_indices(list);
  }

  // ORs the other filter in. `insertions` becomes the sum. Errors: other parameters (capacity
  // aside) or another seed; the message names what differs.
  Result<void> merge(const BloomFilter& other);

  const FilterParameters& parameters() const { return parameters_; }
  // Keys that were judged new and inserted.
  std::uint64_t insertions() const { return insertions_; }
  std::uint64_t set_bits() const { return bits_.set_bits(); }
  double fill() const;
  // Bit i of a classic or partitioned filter. REQUIRES: i < bits.
  bool bit(std::uint64_t i) const { return bits_.bit(i); }
  // FPR by the bits: fill^k for classic, the product over the slices for partitioned, the mean over
  // the lines for blocked and split. Reads the whole filter.
  double fpr_from_bits() const;

  // Versioned and checksummed bytes, which hold the seed; load() refuses anything damaged and
  // allocates no more than the size of `bytes` justifies.
  std::string save() const;
  static Result<BloomFilter> load(std::string_view bytes);

 private:
  BloomFilter(const FilterParameters& parameters, LineMemory memory);

  FilterParameters parameters_;
  LineMemory memory_;
  GenerationBits bits_;
  std::uint64_t insertions_ = 0;
};

}  // namespace encore::filter
