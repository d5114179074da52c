// CodingMemory: what all encoders of the process take, which is bounded. Thread-safe; a Share is
// confined to its owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace encore::server {

class CodingMemory {
 public:
  // Given back when it ends.
  class Share {
   public:
    Share(Share&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (memory_ != nullptr) memory_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
    }
    std::uint64_t bytes() const { return bytes_; }

   private:
    friend class CodingMemory;
    Share(CodingMemory& memory, std::uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
    CodingMemory* memory_;
    std::uint64_t bytes_;
  };

  // Nothing where all together would take more than `limit`.
  std::optional<Share> take(std::uint64_t bytes, std::uint64_t limit) {
    const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    Share share(*this, bytes);
    if (before + bytes > limit) return std::nullopt;
    return share;
  }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> used_ = 0;
};

}  // namespace encore::server
