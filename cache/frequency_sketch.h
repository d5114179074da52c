// FrequencySketch: how often keys were asked for lately, in four bits a counter: a count-min sketch
// with four rows, whose owner says when all counters are halved (the aging of Einziger, Friedman,
// Manes: "TinyLFU", 2017). 16 bytes a key. Thread-compatible.
//
// Its width follows the keys it is made for and is no power of two: as many counters a key at every
// size of a cache, so that one entry more or less makes no other policy of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "filter/hash.h"

namespace encore::cache {

class FrequencySketch {
 public:
  // Resizes to counters for N keys. Counts stay: no frequency falls by it, but some may rise to
  // that of another key with the same counter; if the number of words doubles none does.
  void resize(std::uint64_t keys) {
    const std::uint64_t wanted = std::max(keys * kWordsAKey, kWordsMin);
    if (wanted == words_.size()) {
      return;
    }
    std::vector<std::uint64_t> resized(wanted);
    // The hashes of a new word lay in the old ones from `old` + part/wanted on.
    std::size_t old = 0;
    std::uint64_t part = 0;
    for (std::uint64_t& word : resized) {
      word = words_[old];
      part += words_.size();
      for (; part > wanted; part -= wanted) {
        word = larger_counters(word, words_[++old]);
      }
      if (part == wanted) {
        part = 0;
        ++old;
      }
    }
    words_ = std::move(resized);
  }
  // How many keys it has counters for.
  std::uint64_t keys() const { return words_.size() / kWordsAKey; }

  void increment(const filter::Hash128& key) {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const Place place = place_of(key, row);
      std::uint64_t& word = words_[place.word];
      if ((word >> place.shift & kCounterMax) != kCounterMax) {
        word += std::uint64_t{1} << place.shift;
      }
    }
  }
  void halve() {
    for (std::uint64_t& word : words_) {
      word = word >> 1U & 0x7777777777777777U;
    }
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
  static constexpr std::uint32_t kCounterBits = 4;
  static constexpr std::uint64_t kCounterMax = 15;
  // Two words are 32 counters, eight of each row.
  static constexpr std::uint64_t kWordsAKey = 2;
  static constexpr std::uint64_t kWordsMin = 1024;
  struct Place {
    std::size_t word;
    std::uint32_t shift;
  };
  // Sixteen counters a word; a row has four of them to itself. The hash's high bits choose the
  // word, so that after a change of the width a word has the hashes of adjacent words before.
  Place place_of(const filter::Hash128& key, std::uint32_t row) const {
    const std::uint64_t h =
        std::rotl(key.lo + row * key.hi, static_cast<int>(17 * row)) * 0x9e3779b97f4a7c15U;
    return {static_cast<std::size_t>(filter::scaled(h, words_.size())),
            kCounterBits * (kRows * row + static_cast<std::uint32_t>(h & 3U))};
  }
  static std::uint64_t larger_counters(std::uint64_t a, std::uint64_t b) {
    std::uint64_t larger = 0;
    for (const std::uint32_t shift : {0U, kCounterBits}) {  // every other counter, so that sums
                                                            // have space
      const std::uint64_t x = a >> shift & 0x0f0f0f0f0f0f0f0fU;
      const std::uint64_t y = b >> shift & 0x0f0f0f0f0f0f0f0fU;
      const std::uint64_t not_less = ((x | 0x1010101010101010U) - y) & 0x1010101010101010U;
      const std::uint64_t take_x = not_less - (not_less >> 4U);
      larger |= ((x & take_x) | (y & ~take_x)) << shift;
    }
    return larger;
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kWordsMin);
};

}  // namespace encore::cache
