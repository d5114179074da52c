// Counter: a number that one thread writes and anybody reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace encore::server {

// A counter with one writer. Reading from other threads sees a recent value.
class Counter {
 public:
  void add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void subtract(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - amount, std::memory_order_relaxed);
  }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

}  // namespace encore::server
