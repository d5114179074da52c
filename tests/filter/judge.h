// The one checker of the statistical tests: measured against predicted, 4.5 standard deviations.
// The planted defects are put before the same functions, and must fail them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::filter::testing {

inline constexpr double kSigmas = 4.5;

inline constexpr std::array kLayouts{Layout::kClassic, Layout::kPartitioned, Layout::kBlocked,
                                     Layout::kSplit};
inline constexpr Seed kSeed{0x5eed, 0xf00d};

inline double mean(const std::vector<double>& sample) {
  double sum = 0;
  for (const double x : sample) sum += x;
  return sum / static_cast<double>(sample.size());
}

// Keys 0, 1, 2, ... of a stream, eight bytes each; streams do not share keys.
class Key {
 public:
  Key(std::uint32_t stream, std::uint32_t number) {
    const std::uint64_t id = std::uint64_t{stream} << 32U | number;
    std::memcpy(bytes_, &id, sizeof id);
  }
  std::string_view bytes() const { return {bytes_, sizeof bytes_}; }

 private:
  char bytes_[8];
};

// How many of keys first .. last - 1 of stream 0 a batch answers otherwise than they are answered
// one by one, or than they must be, where they were added: those below `added`. And how many it
// says are there.
struct Batch {
  std::uint32_t wrong = 0;
  std::uint32_t there = 0;
};
template <typename Filter>
Batch ask_in_batch(const Filter& filter, std::uint32_t first, std::uint32_t last,
                   std::uint32_t added) {
  std::vector<Key> storage;
  for (std::uint32_t i = first; i < last; ++i) storage.emplace_back(0, i);
  std::vector<std::string_view> keys;
  for (const Key& key : storage) keys.push_back(key.bytes());
  const auto answers = std::make_unique<bool[]>(keys.size());
  filter.test(keys, std::span(answers.get(), keys.size()));
  Batch batch;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool there = answers[i];
    batch.there += there ? 1U : 0U;
    batch.wrong += there != filter.test(keys[i]) || (!there && first + i < added) ? 1U : 0U;
  }
  return batch;
}

// How far `hits` of `trials` lies from a probability, in standard deviations.
inline double deviation(std::uint64_t hits, std::uint64_t trials, double p) {
  const double n = static_cast<double>(trials);
  return (static_cast<double>(hits) - n * p) / std::sqrt(n * p * (1 - p));
}

// Asks for `probes` keys that were never inserted; the deviation of the answers from p.
template <typename Test>
double false_positive_deviation(std::uint32_t probes, double p, Test test) {
  constexpr std::uint32_t kProbeStream = 0xffffffffU;
  std::uint64_t positives = 0;
  for (std::uint32_t i = 0; i < probes; ++i) {
    positives += test(Key(kProbeStream, i).bytes()) ? 1U : 0U;
  }
  return deviation(positives, probes, p);
}

// The deviation of a sample's mean from what was expected, by the sample's own spread.
inline double mean_deviation(const std::vector<double>& sample, double expected) {
  const double n = static_cast<double>(sample.size());
  double mean = 0;
  for (const double x : sample) {
    mean += x / n;
  }
  double variance = 0;
  for (const double x : sample) {
    variance += (x - mean) * (x - mean) / (n - 1);
  }
  return (mean - expected) / std::sqrt(variance / n);
}

}  // namespace encore::filter::testing
