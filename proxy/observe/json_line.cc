#include "proxy/observe/json_line.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "proxy/http/scan.h"

namespace encore::server {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// Matches bytes that a JSON string cannot contain unescaped: all but visible ASCII and spaces, and
// '"' and '\'.
struct Unsafe {
  static constexpr bool matches(char c) noexcept {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20 || u >= 0x7f || c == '"' || c == '\\';
  }
#if defined(__SSE2__)
  static __m128i matches(__m128i x) noexcept {
    using http::scan::splat;
    // As signed bytes, 0x80 to 0xff are below 0x20 too.
    const __m128i unseen =
        _mm_or_si128(_mm_cmplt_epi8(x, splat(0x20)), _mm_cmpeq_epi8(x, splat(0x7f)));
    return _mm_or_si128(
        unseen, _mm_or_si128(_mm_cmpeq_epi8(x, splat('"')), _mm_cmpeq_epi8(x, splat('\\'))));
  }
#endif
};

// True if none of eight bytes is Unsafe. Each of the differences has the highest bit of a byte
// where one is zero, or below 0x20; what borrows may set one more, and never one alone.
bool is_safe(std::uint64_t bytes) {
  constexpr auto each = [](unsigned byte) { return 0x0101010101010101U * byte; };
  const auto zeros = [&](std::uint64_t x) { return (x - each(1)) & ~x; };
  const std::uint64_t unsafe = bytes | ((bytes - each(0x20)) & ~bytes) | zeros(bytes ^ each(0x7f)) |
                               zeros(bytes ^ each('"')) | zeros(bytes ^ each('\\'));
  return (unsafe & each(0x80)) == 0;
}

template <typename Word>
Word load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}
template <typename Word>
void store(char* to, Word word) {
  std::memcpy(to, &word, sizeof(word));
}

// The two ends of a text, which overlap where it is short. False: something has to be escaped, and
// what was written does not count.
template <typename Word>
bool put_ends(char* to, const char* from, std::size_t bytes) {
  const std::size_t last = bytes - sizeof(Word);
  const auto begin = load<Word>(from);
  const auto end = load<Word>(from + last);
  store(to, begin);
  store(to + last, end);
  if constexpr (sizeof(Word) == sizeof(std::uint64_t)) return is_safe(begin) && is_safe(end);
  return is_safe(std::uint64_t{begin} | std::uint64_t{end} << 32U);
}

// Up to three bytes: the first, one in the middle and the last are all.
bool put_few(char* to, const char* from, std::size_t bytes) {
  std::uint64_t all = 0x2020202020202020U;
  for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
    to[at] = from[at];
    all = all << 8U | static_cast<unsigned char>(from[at]);
  }
  return is_safe(all);
}

// As they are. False: something has to be escaped, and what was written does not count.
bool put_safe(char* to, std::string_view text) {
  constexpr std::size_t kWide = 16;
  const char* const from = text.data();
  const std::size_t bytes = text.size();
  if (bytes >= kWide) {
    if (http::scan::find<Unsafe>(from, from, from + bytes) != from + bytes) return false;
    std::memcpy(to, from, bytes);
    return true;
  }
  if (bytes >= 8) return put_ends<std::uint64_t>(to, from, bytes);
  if (bytes >= 4) return put_ends<std::uint32_t>(to, from, bytes);
  return bytes == 0 || put_few(to, from, bytes);
}

}  // namespace

JsonLine::JsonLine(std::string& out) : out_(out) {
  at_ = out_.data() + out_.size();
  end_ = at_;
}

void JsonLine::grow(std::size_t bytes) {
  constexpr std::size_t kAtOnce = 1024;  // most lines
  const auto used = static_cast<std::size_t>(at_ - out_.data());
  out_.resize_and_overwrite(std::max(out_.capacity(), used + std::max(bytes, kAtOnce)),
                            [](const char*, std::size_t size) { return size; });
  at_ = out_.data() + used;
  end_ = out_.data() + out_.size();
}

void JsonLine::finish() { out_.resize(static_cast<std::size_t>(at_ - out_.data())); }

void JsonLine::number(std::string_view name, std::uint64_t value) {
  constexpr std::size_t kDigitsMax = 20;
  need(name.size() + kDigitsMax);
  put(name);
  at_ = std::to_chars(at_, at_ + kDigitsMax, value).ptr;
}

void JsonLine::long_text(std::string_view name, std::string_view value) {
  const std::string_view kept = fitting(value, [](unsigned char byte) {
    return Unsafe::matches(static_cast<char>(byte)) ? kEscapedBytes : 1;
  });
  need(name.size() + kFieldBytesMax + kFieldCut.size() + kEscapedBytes);
  put(name);
  put_value(kept);
  if (kept.size() != value.size()) put(kFieldCut);
  *at_++ = '"';
}

void JsonLine::put_value(std::string_view value) {
  if (!put_safe(at_, value)) [[unlikely]]
    return put_escaped(value);
  at_ += value.size();
}

void JsonLine::put_escaped(std::string_view value) {
  for (const char c : value) {
    if (!Unsafe::matches(c)) {
      *at_++ = c;
    } else if (c == '"' || c == '\\') {
      *at_++ = '\\';
      *at_++ = c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      put("\\u00");
      *at_++ = kHexDigits[byte >> 4U];
      *at_++ = kHexDigits[byte & 15U];
    }
  }
}

}  // namespace encore::server
