// The inner loops of the split layout: eight words, one bit in each, chosen by 6 bits of a hash
// each (bits 0..47). Plain C++, AVX2 and AVX-512, the best for this machine chosen once. Pure
// functions on lines of eight words, aligned to 64 bytes; thread-compatible.
#pragma once

#include <cstdint>
#include <span>

namespace encore::filter {

// Which of a pair's two lines has all bits of a key.
enum class PairAnswer : std::uint8_t { kNone, kCurrent, kOlder };

struct SplitKernel {
  // True if all eight bits are set.
  bool (*test)(const std::uint64_t* line, std::uint64_t bits);
  // Sets them; how many were not set before.
  std::uint32_t (*insert)(std::uint64_t* line, std::uint64_t bits);
  // Test-and-set on a rotating pair in one pass: sets the bits in `current` unless they are there,
  // or are all in `older` and `refresh` is false. Adds the number of newly set bits to `set_bits`.
  // (An answer in branches, not in computed values: decisions overlap only as far as what waits
  // for their lines fits the processor's scheduler.)
  PairAnswer (*pair)(std::uint64_t* current, const std::uint64_t* older, std::uint64_t bits,
                     bool refresh, std::uint64_t& set_bits);
};

// All that this machine can run, the plain one first, the best one last.
std::span<const SplitKernel* const> split_kernels() noexcept;
const SplitKernel& split_kernel() noexcept;  // the best one

}  // namespace encore::filter
