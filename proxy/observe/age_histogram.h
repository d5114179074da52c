// AgeHistogram: how old things were, in buckets of powers of two seconds. Thread-safe, relaxed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace encore::server {

// Bucket 0 holds less than a second, bucket b less than 2^b seconds; the last is open.
inline constexpr std::size_t kAgeBuckets = 32;

class AgeHistogram {
 public:
  void record(Nanoseconds age) noexcept {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(age).count();
    const auto whole = static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
    const auto bucket = std::min(static_cast<std::size_t>(std::bit_width(whole)), kAgeBuckets - 1);
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_seconds_.fetch_add(whole, std::memory_order_relaxed);
  }
  std::uint64_t bucket(std::size_t index) const {
    return buckets_.at(index).load(std::memory_order_relaxed);
  }
  std::uint64_t sum_seconds() const { return sum_seconds_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kAgeBuckets> buckets_{};
  std::atomic<std::uint64_t> sum_seconds_ = 0;
};

}  // namespace encore::server
