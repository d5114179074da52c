#include "filter/split_line.h"

#include <array>
#include <bit>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace encore::filter {
namespace {

constexpr std::size_t kWords = 8;

std::uint64_t mask_of(std::uint64_t bits, std::size_t word) {
  return std::uint64_t{1} << (bits >> (6 * word) & 63U);
}

bool test_portable(const std::uint64_t* line, std::uint64_t bits) {
  std::uint64_t all = 1;
  for (std::size_t w = 0; w < kWords; ++w) {
    all &= line[w] >> (bits >> (6 * w) & 63U);
  }
  return (all & 1U) != 0;
}

std::uint32_t insert_portable(std::uint64_t* line, std::uint64_t bits) {
  std::uint32_t newly_set = 0;
  for (std::size_t w = 0; w < kWords; ++w) {
    const std::uint64_t mask = mask_of(bits, w);
    newly_set += (line[w] & mask) == 0 ? 1U : 0U;
    line[w] |= mask;
  }
  return newly_set;
}

PairAnswer pair_portable(std::uint64_t* current, const std::uint64_t* older, std::uint64_t bits,
                         bool refresh, std::uint64_t& set_bits) {
  if (test_portable(current, bits)) {
    return PairAnswer::kCurrent;
  }
  const bool in_older = test_portable(older, bits);
  if (!in_older || refresh) {
    set_bits += insert_portable(current, bits);
  }
  return in_older ? PairAnswer::kOlder : PairAnswer::kNone;
}

constexpr SplitKernel kPortable{test_portable, insert_portable, pair_portable};

#if defined(__x86_64__)

#define ENCORE_AVX2 __attribute__((target("avx2,popcnt")))

struct Masks {
  __m256i low;   // words 0..3
  __m256i high;  // words 4..7
};

ENCORE_AVX2 inline Masks masks_avx2(std::uint64_t bits) {
  const __m256i all = _mm256_set1_epi64x(static_cast<long long>(bits));
  const __m256i six = _mm256_set1_epi64x(63);
  const __m256i one = _mm256_set1_epi64x(1);
  const __m256i low = _mm256_srlv_epi64(all, _mm256_setr_epi64x(0, 6, 12, 18));
  const __m256i high = _mm256_srlv_epi64(all, _mm256_setr_epi64x(24, 30, 36, 42));
  return {_mm256_sllv_epi64(one, _mm256_and_si256(low, six)),
          _mm256_sllv_epi64(one, _mm256_and_si256(high, six))};
}

ENCORE_AVX2 inline __m256i load_avx2(const std::uint64_t* words) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(words));
}

ENCORE_AVX2 inline bool test_masks(const std::uint64_t* line, const Masks& masks) {
  // testc: every bit of the mask is in the line.
  return (_mm256_testc_si256(load_avx2(line), masks.low) &
          _mm256_testc_si256(load_avx2(line + 4), masks.high)) != 0;
}

ENCORE_AVX2 inline std::uint32_t insert_masks(std::uint64_t* line, const Masks& masks) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = load_avx2(line);
  const __m256i high = load_avx2(line + 4);
  const __m256i low_free = _mm256_cmpeq_epi64(_mm256_and_si256(low, masks.low), zero);
  const __m256i high_free = _mm256_cmpeq_epi64(_mm256_and_si256(high, masks.high), zero);
  _mm256_store_si256(reinterpret_cast<__m256i*>(line), _mm256_or_si256(low, masks.low));
  _mm256_store_si256(reinterpret_cast<__m256i*>(line + 4), _mm256_or_si256(high, masks.high));
  const int free = _mm256_movemask_pd(_mm256_castsi256_pd(low_free)) << 4 |
                   _mm256_movemask_pd(_mm256_castsi256_pd(high_free));
  return static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(free)));
}

ENCORE_AVX2 bool test_avx2(const std::uint64_t* line, std::uint64_t bits) {
  return test_masks(line, masks_avx2(bits));
}

ENCORE_AVX2 std::uint32_t insert_avx2(std::uint64_t* line, std::uint64_t bits) {
  return insert_masks(line, masks_avx2(bits));
}

ENCORE_AVX2 PairAnswer pair_avx2(std::uint64_t* current, const std::uint64_t* older,
                                 std::uint64_t bits, bool refresh, std::uint64_t& set_bits) {
  const Masks masks = masks_avx2(bits);
  if (test_masks(current, masks)) {
    return PairAnswer::kCurrent;
  }
  if (test_masks(older, masks)) [[unlikely]] {
    set_bits += refresh ? insert_masks(current, masks) : 0;
    return PairAnswer::kOlder;
  }
  set_bits += insert_masks(current, masks);
  return PairAnswer::kNone;
}

constexpr SplitKernel kAvx2{test_avx2, insert_avx2, pair_avx2};

// The whole line in one register. What counts is less the number of instructions than how few of
// them wait for memory: those fill the scheduler and so bound how many decisions overlap.
#define ENCORE_AVX512 __attribute__((target("avx512f,popcnt")))

// GCC 12 warns about its own shift intrinsics here; its vector type shifts without them.
using Words = std::uint64_t __attribute__((vector_size(64)));

ENCORE_AVX512 inline __m512i masks_avx512(std::uint64_t bits) {
  const Words shifts{0, 6, 12, 18, 24, 30, 36, 42};
  const Words all = Words{} + bits;
  return reinterpret_cast<__m512i>((Words{} + 1) << (all >> shifts & 63));
}

// A bit for each word that lacks its bit.
ENCORE_AVX512 inline unsigned missing_avx512(__m512i line, __m512i masks) {
  return _mm512_testn_epi64_mask(line, masks);
}

ENCORE_AVX512 bool test_avx512(const std::uint64_t* line, std::uint64_t bits) {
  return missing_avx512(_mm512_load_si512(line), masks_avx512(bits)) == 0;
}

ENCORE_AVX512 std::uint32_t insert_avx512(std::uint64_t* line, std::uint64_t bits) {
  const __m512i masks = masks_avx512(bits);
  const __m512i words = _mm512_load_si512(line);
  _mm512_store_si512(line, _mm512_or_si512(words, masks));
  return static_cast<std::uint32_t>(std::popcount(missing_avx512(words, masks)));
}

ENCORE_AVX512 PairAnswer pair_avx512(std::uint64_t* current, const std::uint64_t* older,
                                     std::uint64_t bits, bool refresh, std::uint64_t& set_bits) {
  const __m512i masks = masks_avx512(bits);
  const __m512i words = _mm512_load_si512(current);
  const unsigned missing = missing_avx512(words, masks);
  if (missing == 0) {
    return PairAnswer::kCurrent;
  }
  const unsigned missing_in_older = missing_avx512(_mm512_load_si512(older), masks);
  if (missing_in_older == 0 && !refresh) [[unlikely]] {
    return PairAnswer::kOlder;
  }
  _mm512_store_si512(current, _mm512_or_si512(words, masks));
  set_bits += static_cast<std::uint32_t>(std::popcount(missing));
  if (missing_in_older == 0) [[unlikely]] {
    return PairAnswer::kOlder;
  }
  return PairAnswer::kNone;
}

constexpr SplitKernel kAvx512{test_avx512, insert_avx512, pair_avx512};

#endif

}  // namespace

std::span<const SplitKernel* const> split_kernels() noexcept {
  static const auto kernels = [] {
    struct {
      std::array<const SplitKernel*, 3> list{&kPortable};
      std::size_t size = 1;
    } found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt") != 0 && __builtin_cpu_supports("avx2") != 0) {
      found.list[found.size++] = &kAvx2;
      if (__builtin_cpu_supports("avx512f") != 0) {
        found.list[found.size++] = &kAvx512;
      }
    }
#endif
    return found;
  }();
  return std::span(kernels.list).first(kernels.size);
}

const SplitKernel& split_kernel() noexcept { return *split_kernels().back(); }

}  // namespace encore::filter
