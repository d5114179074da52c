// Vectorised search for the first byte of a class, 16 bytes a step where the target has SSE2, byte
// by byte elsewhere. Reads nothing outside [begin, end). Pure, thread-safe.
#pragma once

#include <bit>
#include <cstddef>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace encore::http::scan {

#if defined(__SSE2__)
inline __m128i splat(char c) noexcept { return _mm_set1_epi8(c); }
// Bytes 0x00 to 0x1f.
inline __m128i low(__m128i x) noexcept { return _mm_cmpeq_epi8(_mm_min_epu8(x, splat(0x1f)), x); }
#endif

// Control characters but HTAB: nothing that a field value may hold (RFC 9110 5.5).
struct Control {
  static constexpr bool matches(char c) noexcept {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && u != '\t') || u == 0x7f;
  }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    return _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(x, splat('\t')), low(x)),
                        _mm_cmpeq_epi8(x, splat(0x7f)));
  }
#endif
};

struct Colon {
  static constexpr bool matches(char c) noexcept { return c == ':'; }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept { return _mm_cmpeq_epi8(x, splat(':')); }
#endif
};

// The end of a field name: the colon, or any control character.
struct NameEnd {
  static constexpr bool matches(char c) noexcept { return c == ':' || Control::matches(c); }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    return _mm_or_si128(Control::matches(x), _mm_cmpeq_epi8(x, splat(':')));
  }
#endif
};

// The end of a request target: all but visible ASCII, and '#', which is not allowed there.
struct TargetEnd {
  static constexpr bool matches(char c) noexcept {
    const auto u = static_cast<unsigned char>(c);
    return u <= 0x20 || u >= 0x7f || u == '#';
  }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    // As signed bytes, 0x80 to 0xff are below 0x21 too.
    return _mm_or_si128(
        _mm_or_si128(_mm_cmplt_epi8(x, splat(0x21)), _mm_cmpeq_epi8(x, splat(0x7f))),
        _mm_cmpeq_epi8(x, splat('#')));
  }
#endif
};

// No entity tag has these between its quotes: controls, spaces and quotes (RFC 9110 8.8.3).
struct NotInEtag {
  static constexpr bool matches(char c) noexcept {
    return static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == 0x7f;
  }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    return _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(x, splat(0x20)), x),
                                     _mm_cmpeq_epi8(x, splat('"'))),
                        _mm_cmpeq_epi8(x, splat(0x7f)));
  }
#endif
};

// Bytes that may keep a path from being in normal form: '%', and '.', which may be part of a dot
// segment.
struct AmbiguousPathByte {
  static constexpr bool matches(char c) noexcept { return c == '%' || c == '.'; }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    return _mm_or_si128(_mm_cmpeq_epi8(x, splat('%')), _mm_cmpeq_epi8(x, splat('.')));
  }
#endif
};

// The first byte in [p, end) of the class, or end. `begin` is the start of the readable bytes.
// REQUIRES: begin <= p <= end.
template <typename Class>
inline const char* find(const char* begin, const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  while (end - p >= 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(Class::matches(x)));
    if (mask != 0) return p + std::countr_zero(mask);
    p += 16;
  }
  if (end - begin >= 16) {
    // The last 16 bytes, of which the first are behind p and shifted out.
    const auto behind = static_cast<unsigned>(16 - (end - p));
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(end - 16));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(Class::matches(x))) >> behind;
    return mask != 0 ? p + std::countr_zero(mask) : end;
  }
#endif
  static_cast<void>(begin);
  while (p != end && !Class::matches(*p)) ++p;
  return p;
}

}  // namespace encore::http::scan
