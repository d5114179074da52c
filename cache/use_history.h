// UseHistory: an object's uses, as the features of LRB: size, number of uses, time since the last
// one, times between the last ones, and counters that fade with half-lives of 2^9 to 2^18 requests.
// A value.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace encore::cache {

class UseHistory {
 public:
  static constexpr std::size_t kGaps = 31;  // with the time since the last use 32, as in the paper
  static constexpr std::size_t kCounters = 10;
  static constexpr std::size_t kFeatures = 3 + kGaps + kCounters;

  UseHistory() { gaps_.fill(std::numeric_limits<float>::quiet_NaN()); }

  std::uint64_t last() const { return last_; }

  // The object is used; time is the number of requests, from 1.
  void use(std::uint64_t now, std::uint64_t size) {
    size_ = static_cast<float>(size);
    if (uses_ != 0) {
      const auto gap = static_cast<float>(now - last_);
      std::copy_backward(gaps_.begin(), gaps_.end() - 1, gaps_.end());
      gaps_.front() = gap;
      for (std::size_t i = 0; i < kCounters; ++i) {
        counters_[i] = faded(i, gap);
      }
    }
    for (float& counter : counters_) {
      counter += 1;
    }
    ++uses_;
    last_ = now;
  }
  // Writes kFeatures.
  void write(std::uint64_t now, float* row) const {
    const auto age = static_cast<float>(now - last_);
    row[0] = size_;
    row[1] = static_cast<float>(uses_);
    row[2] = age;
    std::ranges::copy(gaps_, row + 3);
    for (std::size_t i = 0; i < kCounters; ++i) {
      row[3 + kGaps + i] = faded(i, age);
    }
  }

 private:
  float faded(std::size_t i, float time) const {
    return counters_[i] * std::exp2(-time / static_cast<float>(512U << i));
  }

  std::uint64_t last_ = 0;
  std::uint32_t uses_ = 0;
  float size_ = 0;
  std::array<float, kGaps> gaps_;  // the last one first; NaN: there was none
  std::array<float, kCounters> counters_{};
};

}  // namespace encore::cache
