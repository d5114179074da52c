// The inner loops of the split layout: eight words, one bit in each, chosen by 6 bits of a hash
// each (bits 0..47). Plain C++, AVX2 and AVX-512, the best for this machine chosen once. Pure
// functions on lines of eight words, aligned to 64 bytes; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "filter/hash.h"

namespace encore::filter {

// The place of a key: nowhere, in the current generation, in an older one.
enum class Seen : std::uint8_t { kNew, kCurrent, kOlder };

// Two generations whose lines lie side by side: line i of the current one is at
// current + 16 i, that of the older one `older` words on.
struct PairLines {
  std::uint64_t* current = nullptr;
  std::ptrdiff_t older = 0;
  std::uint64_t lines = 0;            // lines of each generation
  std::uint64_t* set_bits = nullptr;  // the current generation's count, kept up
  bool refresh = true;                // bits that only the older one has are set in the current one
                                      // too

  std::uint64_t* line_of(const Hash128& hash) const {
    return current + scaled(hash.lo, lines) * 16;
  }
  // (Inline by order: GCC takes a function that only prefetches for one without effect, and drops
  // the call.)
  [[gnu::always_inline]] void prefetch(const Hash128& hash) const {
    const std::uint64_t* line = line_of(hash);
    __builtin_prefetch(line);
    __builtin_prefetch(line + older);
  }
};

// Keys whose lines are on their way while one is tested: enough to hide memory, few enough for a
// core's buffers.
inline constexpr std::size_t kAheadMax = 12;

// A filter up to this size stays in a core's own cache. There, computing each place of a key
// beforehand, to prefetch it, costs more than reading it. (A test of an absent key reads two
// places.)
inline constexpr std::uint64_t kInCacheBytes = std::uint64_t{1} << 20U;

// Calls visit(i) for 0 .. count - 1, and prefetch(i) for those that follow.
template <typename Prefetch, typename Visit>
void look_ahead(std::size_t count, Prefetch prefetch, Visit visit) {
  for (std::size_t i = 0; i < kAheadMax && i < count; ++i) {
    prefetch(i);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAheadMax < count) {
      prefetch(i + kAheadMax);
    }
    visit(i);
  }
}

// How many of a run's answers were kNew and kOlder.
struct PairCounts {
  std::size_t fresh = 0;
  std::size_t older = 0;
};

struct SplitKernel {
  // True if all eight bits are set.
  bool (*test)(const std::uint64_t* line, std::uint64_t bits);
  // Sets them; how many were not set before.
  std::uint32_t (*insert)(std::uint64_t* line, std::uint64_t bits);
  // Test-and-set on a rotating pair in one pass: sets the bits in the current generation unless
  // they are there, or are all in the older one and `refresh` is false.
  // (An answer in branches, not in computed values: decisions overlap only as far as what waits
  // for their lines fits the processor's scheduler.)
  Seen (*pair)(const PairLines& lines, const Hash128& hash);
  // The same for the first `count` keys, one after the other; asks for the lines of the keys that
  // follow, also behind those. REQUIRES: the first kAheadMax keys, or all, were asked for.
  PairCounts (*pairs)(const PairLines& lines, std::span<const HashedKey> keys, std::size_t count,
                      Seen* out);
};

// All that this machine can run, the plain one first, the best one last.
std::span<const SplitKernel* const> split_kernels() noexcept;
const SplitKernel& split_kernel() noexcept;  // the best one

}  // namespace encore::filter
