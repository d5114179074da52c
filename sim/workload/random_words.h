// RandomWords: streams of 32-bit random words that are the same on every machine for one seed.
// Deterministic; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace encore::sim {

class RandomWords {
 public:
  virtual ~RandomWords() = default;
  virtual std::uint32_t next() = 0;
};

// Agner Fog's Mother-of-All, 32 bit: a multiply-with-carry generator over the last four words, as
// J. Plank's CS494 block experiment uses it, with that program's seeding.
class MotherOfAllRng final : public RandomWords {
 public:
  explicit MotherOfAllRng(std::uint32_t seed);
  std::uint32_t next() override;

 private:
  std::array<std::uint32_t, 4> x_{};  // x_[0] is the latest
  std::uint32_t carry_ = 0;
};

// xoshiro256++ (Blackman and Vigna 2019), seeded with splitmix64; the upper halves of its words.
class Xoshiro final : public RandomWords {
 public:
  explicit Xoshiro(std::uint64_t seed);
  std::uint32_t next() override { return static_cast<std::uint32_t>(next64() >> 32U); }
  std::uint64_t next64();
  // In [0, 1), 53 bits.
  double next_real() { return static_cast<double>(next64() >> 11U) * 0x1p-53; }

 private:
  std::array<std::uint64_t, 4> s_{};
};

enum class Generator : std::uint8_t { kMotherOfAll, kXoshiro };

// "moa" or "xoshiro". Errors: anything else; the message shows it.
Result<Generator> parse_generator(std::string_view name);
std::unique_ptr<RandomWords> make_random_words(Generator generator, std::uint64_t seed);

}  // namespace encore::sim
