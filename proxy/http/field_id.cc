#include "proxy/http/field_id.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace encore::http {
namespace {

constexpr std::size_t kIds = static_cast<std::size_t>(FieldId::kCount_);
constexpr std::size_t kNameBytes = 32;

constexpr std::array<std::string_view, kIds> kNames = {std::string_view{},
#define ENCORE_HTTP_FIELD(id, name) name,
                                                       ENCORE_HTTP_FIELDS(ENCORE_HTTP_FIELD)
#undef ENCORE_HTTP_FIELD
};

// A name with the bits that bring any case of it to lower case: 0x20 for letters, 0 for others, so
// that equality after OR is exact.
struct Pattern {
  std::array<char, kNameBytes> lower{};
  std::array<char, kNameBytes> fold{};
};

consteval std::array<Pattern, kIds> make_patterns() {
  std::array<Pattern, kIds> patterns{};
  for (std::size_t id = 0; id < kIds; ++id) {
    for (std::size_t i = 0; i < kNames[id].size(); ++i) {
      const char c = kNames[id][i];
      patterns[id].lower[i] = c;
      patterns[id].fold[i] = c >= 'a' && c <= 'z' ? 0x20 : 0;
    }
  }
  return patterns;
}
constexpr std::array<Pattern, kIds> kPatterns = make_patterns();

// Length, first, middle and last character tell all names in the table apart; a multiplicative
// hash of them without collisions is searched for at compile time.
constexpr std::size_t kSlots = 512;

constexpr std::uint32_t feature(const char* name, std::size_t size) noexcept {
  const auto at = [name](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(name[i]) | 0x20U);
  };
  return static_cast<std::uint32_t>(size) | at(0) << 8 | at(size / 2) << 16 | at(size - 1) << 24;
}
constexpr std::size_t slot(std::uint32_t key, std::uint32_t multiplier) noexcept {
  return (key * multiplier) >> 23;  // the upper 9 bits: 512 slots
}

struct Index {
  std::uint32_t multiplier = 0;
  std::array<std::uint8_t, kSlots> ids{};
};

consteval Index make_index() {
  std::uint32_t multiplier = 0x9e3779b1;
  while (true) {
    Index index;
    index.multiplier = multiplier;
    bool free = true;
    for (std::size_t id = 1; id < kIds && free; ++id) {
      auto& entry = index.ids[slot(feature(kNames[id].data(), kNames[id].size()), multiplier)];
      free = entry == 0;
      entry = static_cast<std::uint8_t>(id);
    }
    if (free) return index;
    multiplier = (multiplier * 1664525U + 1013904223U) | 1U;
  }
}
constexpr Index kIndex = make_index();

constexpr std::size_t kNameMin = 2;
constexpr std::size_t kNameMax =
    std::ranges::max(kNames, {}, [](std::string_view name) { return name.size(); }).size();
static_assert(kNameMax <= kNameBytes);

template <typename Word>
bool word_matches(const char* name, const Pattern& pattern, std::size_t at) noexcept {
  Word text;
  Word lower;
  Word fold;
  std::memcpy(&text, name + at, sizeof text);
  std::memcpy(&lower, pattern.lower.data() + at, sizeof lower);
  std::memcpy(&fold, pattern.fold.data() + at, sizeof fold);
  return static_cast<Word>(text | fold) == lower;
}

// Compares in words that overlap at the end. REQUIRES: size >= sizeof(Word).
template <typename Word>
bool matches(const char* name, const Pattern& pattern, std::size_t size) noexcept {
  for (std::size_t at = 0; at + sizeof(Word) < size; at += sizeof(Word)) {
    if (!word_matches<Word>(name, pattern, at)) return false;
  }
  return word_matches<Word>(name, pattern, size - sizeof(Word));
}

}  // namespace

FieldId classify_field(std::string_view name) noexcept {
  const std::size_t size = name.size();
  if (size < kNameMin || size > kNameMax) return FieldId::kOther;
  const std::uint8_t id = kIndex.ids[slot(feature(name.data(), size), kIndex.multiplier)];
  if (id == 0 || kNames[id].size() != size) return FieldId::kOther;
  const Pattern& pattern = kPatterns[id];
  const bool same = size >= 8   ? matches<std::uint64_t>(name.data(), pattern, size)
                    : size >= 4 ? matches<std::uint32_t>(name.data(), pattern, size)
                                : matches<std::uint16_t>(name.data(), pattern, size);
  return same ? static_cast<FieldId>(id) : FieldId::kOther;
}

std::string_view field_name(FieldId id) noexcept { return kNames[static_cast<std::size_t>(id)]; }

}  // namespace encore::http
