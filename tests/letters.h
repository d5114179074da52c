// Content for bodies.
#pragma once

#include <cstddef>
#include <string>

namespace encore {

// Differs from place to place, so that shifted bytes show.
inline std::string letters(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return text;
}

}  // namespace encore
