// How long a field of an access record may be, escapes included: escaping makes up to six times of
// what a client sends. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace encore::server {

// A longer field is cut, and kFieldCut stands behind what is left of it.
inline constexpr std::size_t kFieldBytesMax = 8192;
inline constexpr std::string_view kFieldCut = "...[cut]";

// The front of `text` that fits, where `bytes_of` says what each byte takes.
template <typename BytesOf>
std::string_view fitting(std::string_view text, BytesOf bytes_of) {
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    written += bytes_of(static_cast<unsigned char>(text[i]));
    if (written > kFieldBytesMax) return text.substr(0, i);
  }
  return text;
}

}  // namespace encore::server
