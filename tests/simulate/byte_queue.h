// ByteQueue: bytes on their way in one direction, in blocks of a pool that all directions share.
// Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

namespace encore::simulate {

// Blocks that are used again. Outlives the queues.
class BytePool {
 public:
  struct Block {
    Block* next = nullptr;
    std::array<char, 8192> bytes;
  };
  Block* take() {
    if (free_ == nullptr) {
      all_.push_back(std::make_unique_for_overwrite<Block>());
      free_ = all_.back().get();
      free_->next = nullptr;
    }
    Block* taken = std::exchange(free_, free_->next);
    taken->next = nullptr;
    return taken;
  }
  void give(Block* block) {
    block->next = free_;
    free_ = block;
  }

 private:
  std::vector<std::unique_ptr<Block>> all_;
  Block* free_ = nullptr;
};

class ByteQueue {
 public:
  explicit ByteQueue(BytePool& pool) : pool_(&pool) {}
  ~ByteQueue() { clear(); }
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  std::size_t size() const { return size_; }
  void clear() { drop(size_); }

  void push(const void* bytes, std::size_t size) {
    const auto* from = static_cast<const char*>(bytes);
    size_ += size;
    while (size != 0) {
      if (last_ == nullptr || end_ == kBlock) grow();
      const std::size_t part = std::min(size, kBlock - end_);
      std::memcpy(last_->bytes.data() + end_, from, part);
      end_ += part;
      from += part;
      size -= part;
    }
  }
  // Takes `size` bytes off the front. REQUIRES: size <= size().
  void pop(void* into, std::size_t size) {
    peek(into, size);
    drop(size);
  }
  void drop(std::size_t size) {
    ENCORE_CHECK(size <= size_, "no more is taken than there is");
    size_ -= size;
    begin_ += size;
    while (first_ != nullptr && (begin_ >= kBlock || size_ == 0)) {
      begin_ = size_ == 0 ? 0 : begin_ - kBlock;
      pool_->give(std::exchange(first_, first_->next));
    }
    if (first_ == nullptr) last_ = nullptr;
  }
  // Looks without taking. REQUIRES: size <= size().
  void peek(void* into, std::size_t size) const {
    ENCORE_CHECK(size <= size_, "no more is seen than there is");
    auto* to = static_cast<char*>(into);
    std::size_t from = begin_;
    for (const BytePool::Block* at = first_; size != 0; at = at->next) {
      const std::size_t part = std::min(size, kBlock - from);
      std::memcpy(to, at->bytes.data() + from, part);
      to += part;
      size -= part;
      from = 0;
    }
  }
  // Gives the last `size` bytes up. REQUIRES: size <= size().
  void drop_back(std::size_t size) {
    const std::size_t left = size_ - size;
    if (left == 0) return clear();
    size_ = left;
    // Place of the last byte that stays.
    std::size_t at = begin_ + left;
    last_ = first_;
    for (; at > kBlock; at -= kBlock) last_ = last_->next;
    end_ = at;
    while (BytePool::Block* gone = last_->next) {
      last_->next = gone->next;
      pool_->give(gone);
    }
  }

 private:
  static constexpr std::size_t kBlock = std::tuple_size_v<decltype(BytePool::Block::bytes)>;

  void grow() {
    BytePool::Block* more = pool_->take();
    (last_ == nullptr ? first_ : last_->next) = more;
    last_ = more;
    end_ = 0;
  }

  BytePool* pool_;
  BytePool::Block* first_ = nullptr;
  BytePool::Block* last_ = nullptr;
  std::size_t size_ = 0;
  std::size_t begin_ = 0;  // within the first
  std::size_t end_ = 0;    // within the last
};

}  // namespace encore::simulate
