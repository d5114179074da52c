// BloomFilter: one filter of any layout, and the primitive test-and-set: "was it there? it is now".
// Thread-compatible. Movable, not copyable.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "filter/generation_bits.h"
#include "filter/hash.h"
#include "filter/line_memory.h"
#include "filter/parameters.h"

namespace encore::filter {

// A source of indices that are not cut from a Hash128: fills `out` with indices below `bits`.
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

struct SavedGeneration;

class BloomFilter {
 public:
  // Errors: those of checked(), and memory that cannot be had.
  static Result<BloomFilter> create(const FilterParameters& parameters);
  // A filter of bits that come from elsewhere: read(i, words) fills the eight words of line i with
  // bits 512 i .. 512 i + 511. Errors: as create(), a bit beyond the last one.
  using ReadLine = std::function<void(std::uint64_t i, std::uint64_t* words)>;
  static Result<BloomFilter> from_lines(const FilterParameters& parameters,
                                        std::uint64_t insertions, const ReadLine& read);

  // Errors: memory that cannot be had.
  Result<BloomFilter> copy() const;

  // True if the key was there already (or is a false positive). It is there now.
  bool test_and_set(const Hash128& hash);
  bool test(const Hash128& hash) const;
  // Batched: every line is on its way from memory before the first is read. REQUIRES: out is as
  // long as hashes; for a list of hashes as for one, the filter's hash is not one that lists
  // indices.
  void test_and_set(std::span<const Hash128> hashes, std::span<bool> out);
  void test(std::span<const Hash128> hashes, std::span<bool> out) const;

  // By the key's bytes, with the filter's own hash and seed. add: true if the key was new.
  bool add(std::string_view key);
  bool test(std::string_view key) const;
  void test(std::span<const std::string_view> keys, std::span<bool> out) const;

  // With indices of the caller's own. REQUIRES: layout is classic; each index < bits.
  bool test_and_set_indices(std::span<const std::uint64_t> indices);
  bool test_indices(std::span<const std::uint64_t> indices) const;
  bool test_and_set_from(const IndexSource auto& source) {
    std::array<std::uint64_t, kHashesMax> indices;
    const std::span<std::uint64_t> list(indices.data(), parameters_.hashes);
    source.indices(parameters_.bits, list);
    return test_and_set_indices(list);
  }

  // ORs the other filter in, or ANDs it. `insertions` is estimated from the bits then
  // (key_estimate.h).
  // An OR is the filter of the keys of both. An AND holds every key that is in both, and answers
  // for a key of one of them as often as the other does. Errors: other parameters (capacity aside)
  // or another seed; the message names what differs.
  Result<void> merge(const BloomFilter& other);
  Result<void> intersect(const BloomFilter& other);

  const FilterParameters& parameters() const { return parameters_; }
  // Keys that were judged new and inserted.
  std::uint64_t insertions() const { return insertions_; }
  std::uint64_t set_bits() const { return bits_.set_bits(); }
  double fill() const;
  // Bit i of a classic or partitioned filter. REQUIRES: i < bits.
  bool bit(std::uint64_t i) const { return bits_.bit(i); }
  // A copy of line i: bits 512 i .. 512 i + 511 in eight words. REQUIRES: 512 i < bits.
  void read_line(std::uint64_t i, std::uint64_t* words) const { bits_.read_line(i, words); }
  // FPR by the bits: fill^k for classic, the product over the slices for partitioned, the mean over
  // the lines for blocked and split. Reads the whole filter. By a hash of fields, which of w bits
  // mod m reach the first 2^w mod m positions more often than the others, each position counts as
  // often as it is reached.
  double fpr_from_bits() const;

  // The bits alone, ceil(bits / 8) bytes: bit i in byte i / 8, worth 2^(i mod 8); of blocked and
  // split filters line after line. from_raw_bits: `insertions` is what insertions() says of them.
  // Errors: those of create(), checked before anything is taken for the bits; a size that is not
  // that of the parameters, a bit beyond the last one, more insertions than set bits.
  std::string raw_bits() const;
  static Result<BloomFilter> from_raw_bits(const FilterParameters& parameters, std::string_view raw,
                                           std::uint64_t insertions);

  // Versioned and checksummed bytes, which hold the seed; load() refuses anything damaged and
  // allocates no more than the size of `bytes` justifies.
  std::string save() const;
  static Result<BloomFilter> load(std::string_view bytes);
  // The same, without holding more of the bytes than some: read(to) fills the span with the next of
  // them, or fails. `size` is of all: it must be what the head states before memory is taken.
  using ReadBytes = std::function<Result<void>(std::span<char> to)>;
  static Result<BloomFilter> load(const ReadBytes& read, std::uint64_t size);
  // Over lines of memory that hold the generation's bits already, as the counts say.
  static BloomFilter over(const SavedGeneration& saved, LineMemory memory);
  // From a decoded generation. Errors: a bit beyond the filter's size, a wrong count, memory.
  static Result<BloomFilter> from_saved(const SavedGeneration& saved);

 private:
  BloomFilter(const FilterParameters& parameters, LineMemory memory);
  Hash128 hash_of(std::string_view key) const {
    return hash_key(parameters_.hash, parameters_.seed, key);
  }
  double share_reached_by_fields() const;
  // The key's indices, in `room`, if the hash lists them.
  std::span<const std::uint64_t> list_of(std::string_view key,
                                         std::span<std::uint64_t, kHashesMax> room) const;

  FilterParameters parameters_;
  LineMemory memory_;
  GenerationBits bits_;
  std::uint64_t insertions_ = 0;
};

}  // namespace encore::filter
