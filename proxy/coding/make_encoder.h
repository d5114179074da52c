// The encoders of all codings, and what each may take. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "proxy/coding/coding.h"
#include "proxy/coding/encoder.h"

namespace encore::coding {

// The levels of each that keep up with a network, and bound what a piece costs. Above them brotli
// and zstd are for what is compressed once and kept for ever.
struct Levels {
  int min = 0;
  int max = 0;
  int usual = 0;
};
constexpr Levels levels_of(Coding coding) noexcept {
  constexpr Levels kLevels[] = {{1, 9, 3}, {0, 6, 4}, {1, 9, 6}};
  return kLevels[number_of(coding)];
}

// Null where there is no memory. REQUIRES: a level in levels_of(coding).
std::unique_ptr<Encoder> make_encoder(Coding coding, int level);

// Returns the maximum memory of an encoder of this level.
constexpr std::size_t encoder_bytes_max(Coding coding, int level) noexcept {
  constexpr std::size_t kKiB = 1024;
  switch (coding) {
    case Coding::kZstd:
      return 2560 * kKiB;
    case Coding::kBrotli:
      return (level <= 1 ? 512 : level <= 3 ? 1536 : 6144) * kKiB;
    case Coding::kGzip:
      break;
  }
  return 384 * kKiB;
}

}  // namespace encore::coding
