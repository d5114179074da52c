// A key under further names: nth-hit admission counts requests by them. Name 1 is the key itself;
// name n has the key's text with a line feed, which is in no URI, and n as a byte behind it, and
// the key's identity hash mixed with n. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "filter/hash.h"

namespace encore::filter {

// REQUIRES: 1 <= number <= 255.
constexpr Hash128 alias_hash(const Hash128& key, std::uint32_t number) noexcept {
  if (number == 1) {
    return key;
  }
  const std::uint64_t step = number * 0x9e3779b97f4a7c15U;
  return {scrambled(key.lo ^ step), scrambled(key.hi + step)};
}

inline constexpr char kAliasMark = '\n';

// A name and whose it is.
struct Alias {
  std::string_view key;
  std::uint32_t number = 1;
};
constexpr Alias read_alias(std::string_view text) noexcept {
  if (text.size() < 2 || text[text.size() - 2] != kAliasMark) {
    return {.key = text};
  }
  return {.key = text.substr(0, text.size() - 2),
          .number = static_cast<unsigned char>(text.back())};
}

}  // namespace encore::filter
