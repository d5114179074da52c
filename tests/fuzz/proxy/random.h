// Streams of random numbers: each actor of the fuzzer has one of its own, drawn from the seed, its
// kind and its number, so that what one does never shifts what another decides.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace encore::proxyfuzz {

// SplitMix64's finaliser (Steele, Lea and Flood 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  Random(std::uint64_t seed, std::uint64_t kind, std::uint64_t number)
      : state_(mix(mix(mix(seed) ^ kind) ^ number)) {}

  std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15); }
  // 0 .. bound - 1. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept {
    return low + below(high - low + 1);
  }
  bool percent(double chance) noexcept {
    return static_cast<double>(below(100000)) < chance * 1000;
  }
  template <typename T>
  T pick(std::initializer_list<T> of) noexcept {
    return of.begin()[below(of.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace encore::proxyfuzz
