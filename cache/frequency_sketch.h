// FrequencySketch: how often keys were asked for lately, in four bits a counter. A count-min sketch
// with four rows that halves all counters after ten increments a counted key (the aging of
// Einziger, Friedman, Manes: "TinyLFU", 2017). Thread-compatible.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "filter/hash.h"

namespace encore::cache {

class FrequencySketch {
 public:
  // Makes room for so many keys; grows by doubling, and forgets then.
  void reserve(std::uint64_t keys) {
    const std::uint64_t wanted = std::bit_ceil(std::max<std::uint64_t>(keys, kKeysMin));
    if (wanted > words_.size()) {
      words_.assign(wanted, 0);
      additions_ = 0;
    }
  }
  void increment(const filter::Hash128& key) {
    bool added = false;
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const Place place = place_of(key, row);
      std::uint64_t& word = words_[place.word];
      if ((word >> place.shift & kCounterMax) != kCounterMax) {
        word += std::uint64_t{1} << place.shift;
        added = true;
      }
    }
    if (added && ++additions_ >= kAdditionsAKey * words_.size()) {
      halve();
    }
  }
  // Of itself after ten increments a word; the owner may at moments of its own before that.
  void halve() {
    for (std::uint64_t& word : words_) {
      word = word >> 1U & 0x7777777777777777U;
    }
    additions_ /= 2;
  }
  std::uint32_t frequency(const filter::Hash128& key) const {
    std::uint64_t least = kCounterMax;
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const Place place = place_of(key, row);
      least = std::min(least, words_[place.word] >> place.shift & kCounterMax);
    }
    return static_cast<std::uint32_t>(least);
  }
  std::uint64_t memory_bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  static constexpr std::uint32_t kRows = 4;
  static constexpr std::uint64_t kCounterMax = 15;
  static constexpr std::uint64_t kAdditionsAKey = 10;
  static constexpr std::uint64_t kKeysMin = 1024;
  struct Place {
    std::size_t word;
    std::uint32_t shift;
  };
  // Sixteen counters a word; a row has four of them to itself.
  Place place_of(const filter::Hash128& key, std::uint32_t row) const {
    const std::uint64_t h =
        std::rotl(key.lo + row * key.hi, static_cast<int>(17 * row)) * 0x9e3779b97f4a7c15U;
    return {(h >> 20U) & (words_.size() - 1), 4 * (4 * row + static_cast<std::uint32_t>(h >> 62U))};
  }
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kKeysMin);
  std::uint64_t additions_ = 0;
};

}  // namespace encore::cache
