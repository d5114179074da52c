#include "sim/workload/random_words.h"

#include <bit>
#include <string>

namespace encore::sim {

MotherOfAllRng::MotherOfAllRng(std::uint32_t seed) {
  // The published seeding, constants and the 19 dropped outputs included.
  std::uint32_t s = seed;
  const auto step = [&s] { return s = s * 29943829U - 1U; };
  for (std::uint32_t& word : x_) {
    word = step();
  }
  carry_ = step();
  for (int i = 0; i < 19; ++i) {
    next();
  }
}

std::uint32_t MotherOfAllRng::next() {
  const std::uint64_t sum =
      2111111111ULL * x_[3] + 1492ULL * x_[2] + 1776ULL * x_[1] + 5115ULL * x_[0] + carry_;
  x_ = {static_cast<std::uint32_t>(sum), x_[0], x_[1], x_[2]};
  carry_ = static_cast<std::uint32_t>(sum >> 32U);
  return x_[0];
}

Xoshiro::Xoshiro(std::uint64_t seed) {
  for (std::uint64_t& word : s_) {
    seed += 0x9e3779b97f4a7c15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    word = z ^ (z >> 31U);
  }
}

std::uint64_t Xoshiro::next64() {
  const std::uint64_t result = std::rotl(s_[0] + s_[3], 23) + s_[0];
  const std::uint64_t t = s_[1] << 17U;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = std::rotl(s_[3], 45);
  return result;
}

Result<Generator> parse_generator(std::string_view name) {
  if (name == "moa") {
    return Generator::kMotherOfAll;
  }
  if (name == "xoshiro") {
    return Generator::kXoshiro;
  }
  return fail("unknown generator \"" + std::string(name) + "\", accepted: moa, xoshiro");
}

std::unique_ptr<RandomWords> make_random_words(Generator generator, std::uint64_t seed) {
  if (generator == Generator::kXoshiro) {
    return std::make_unique<Xoshiro>(seed);
  }
  return std::make_unique<MotherOfAllRng>(static_cast<std::uint32_t>(seed));
}

}  // namespace encore::sim
