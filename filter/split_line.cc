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

inline Seen decide_portable(std::uint64_t* current, const std::uint64_t* older, std::uint64_t bits,
                            bool refresh, std::uint64_t& set_bits) {
  if (test_portable(current, bits)) {
    return Seen::kCurrent;
  }
  const bool in_older = test_portable(older, bits);
  if (!in_older || refresh) {
    set_bits += insert_portable(current, bits);
  }
  return in_older ? Seen::kOlder : Seen::kNew;
}

// pair() and pairs() for one instruction set, `target` its attribute: the loop has to be compiled
// for it as well, for the decision to be inlined. decide_NAME(line of the current generation, line
// of the older one, bits, refresh, set_bits)
#define ENCORE_PAIR_FUNCTIONS(name, target)                                                        \
  target Seen pair_##name(const PairLines& lines, const Hash128& hash) {                           \
    std::uint64_t* current = lines.line_of(hash);                                                  \
    return decide_##name(current, current + lines.older, hash.hi, lines.refresh, *lines.set_bits); \
  }                                                                                                \
  target PairCounts pairs_##name(const PairLines& lines, std::span<const HashedKey> keys,          \
                                 std::size_t count, Seen* out) {                                   \
    const PairLines local = lines;                                                                 \
    std::uint64_t set_bits = 0;                                                                    \
    PairCounts counts;                                                                             \
    for (std::size_t i = 0; i < count; ++i) {                                                      \
      if (i + kAheadMax < keys.size()) local.prefetch(keys[i + kAheadMax].hash);                   \
      std::uint64_t* current = local.line_of(keys[i].hash);                                        \
      out[i] =                                                                                     \
          decide_##name(current, current + local.older, keys[i].hash.hi, local.refresh, set_bits); \
      counts.fresh += out[i] == Seen::kNew ? 1U : 0U;                                              \
      counts.older += out[i] == Seen::kOlder ? 1U : 0U;                                            \
    }                                                                                              \
    *lines.set_bits += set_bits;                                                                   \
    return counts;                                                                                 \
  }

ENCORE_PAIR_FUNCTIONS(portable, )

constexpr SplitKernel kPortable{test_portable, insert_portable, pair_portable, pairs_portable};

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

struct Line {
  __m256i low;
  __m256i high;
};

ENCORE_AVX2 inline Line line_avx2(const std::uint64_t* words) {
  return {load_avx2(words), load_avx2(words + 4)};
}

// The bits of the masks that the line lacks.
ENCORE_AVX2 inline Masks missing_avx2(const Line& line, const Masks& masks) {
  return {_mm256_andnot_si256(line.low, masks.low), _mm256_andnot_si256(line.high, masks.high)};
}

ENCORE_AVX2 inline bool none_avx2(const Masks& missing) {
  const __m256i any = _mm256_or_si256(missing.low, missing.high);
  return _mm256_testz_si256(any, any) != 0;
}

// Sets the masks in the line at `words`; how many of them were `missing`.
ENCORE_AVX2 inline std::uint32_t set_avx2(std::uint64_t* words, const Line& line,
                                          const Masks& masks, const Masks& missing) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), _mm256_or_si256(line.low, masks.low));
  _mm256_store_si256(reinterpret_cast<__m256i*>(words + 4), _mm256_or_si256(line.high, masks.high));
  // All ones for a word whose mask is missing; packed, a word is half as wide.
  const __m256i newly = _mm256_packs_epi32(_mm256_cmpeq_epi64(missing.low, masks.low),
                                           _mm256_cmpeq_epi64(missing.high, masks.high));
  const int words_set = _mm256_movemask_ps(_mm256_castsi256_ps(newly));
  return static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(words_set)));
}

ENCORE_AVX2 bool test_avx2(const std::uint64_t* line, std::uint64_t bits) {
  return none_avx2(missing_avx2(line_avx2(line), masks_avx2(bits)));
}

ENCORE_AVX2 std::uint32_t insert_avx2(std::uint64_t* words, std::uint64_t bits) {
  const Masks masks = masks_avx2(bits);
  const Line line = line_avx2(words);
  return set_avx2(words, line, masks, missing_avx2(line, masks));
}

[[gnu::always_inline]] ENCORE_AVX2 inline Seen decide_avx2(std::uint64_t* current,
                                                           const std::uint64_t* older,
                                                           std::uint64_t bits, bool refresh,
                                                           std::uint64_t& set_bits) {
  const Masks masks = masks_avx2(bits);
  const Line line = line_avx2(current);
  const Masks missing = missing_avx2(line, masks);
  if (none_avx2(missing)) {
    return Seen::kCurrent;
  }
  Seen answer = Seen::kNew;
  if (none_avx2(missing_avx2(line_avx2(older), masks))) [[unlikely]] {
    answer = Seen::kOlder;
    if (!refresh) {
      return answer;
    }
  }
  set_bits += set_avx2(current, line, masks, missing);
  return answer;
}

ENCORE_PAIR_FUNCTIONS(avx2, ENCORE_AVX2)

constexpr SplitKernel kAvx2{test_avx2, insert_avx2, pair_avx2, pairs_avx2};

// The whole line in one register. The number of instructions matters less than the number that wait
// for memory: those fill the scheduler and so bound how many decisions overlap.
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

[[gnu::always_inline]] ENCORE_AVX512 inline Seen decide_avx512(std::uint64_t* current,
                                                               const std::uint64_t* older,
                                                               std::uint64_t bits, bool refresh,
                                                               std::uint64_t& set_bits) {
  const __m512i masks = masks_avx512(bits);
  const __m512i words = _mm512_load_si512(current);
  const unsigned missing = missing_avx512(words, masks);
  if (missing == 0) {
    return Seen::kCurrent;
  }
  const unsigned missing_in_older = missing_avx512(_mm512_load_si512(older), masks);
  if (missing_in_older == 0 && !refresh) [[unlikely]] {
    return Seen::kOlder;
  }
  _mm512_store_si512(current, _mm512_or_si512(words, masks));
  set_bits += static_cast<std::uint32_t>(std::popcount(missing));
  if (missing_in_older == 0) [[unlikely]] {
    return Seen::kOlder;
  }
  return Seen::kNew;
}

ENCORE_PAIR_FUNCTIONS(avx512, ENCORE_AVX512)

constexpr SplitKernel kAvx512{test_avx512, insert_avx512, pair_avx512, pairs_avx512};

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
