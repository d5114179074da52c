// Coding: the content codings that responses can be sent in (RFC 9110 8.4.1; RFC 7932, RFC 8878).
// Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace encore::coding {

enum class Coding : std::uint8_t { kZstd, kBrotli, kGzip };
inline constexpr std::size_t kCodings = 3;

constexpr std::size_t number_of(Coding coding) noexcept { return static_cast<std::size_t>(coding); }

// As Content-Encoding has it: "zstd", "br", "gzip".
constexpr std::string_view to_string(Coding coding) noexcept {
  constexpr std::string_view kNames[] = {"zstd", "br", "gzip"};
  return kNames[number_of(coding)];
}

}  // namespace encore::coding
