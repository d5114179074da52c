// ChunkedVector: a vector that grows by one chunk at a time and never moves what it holds, so that
// no push is a pause. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace encore::cache {

template <typename T>
class ChunkedVector {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // REQUIRES: i < size().
  T& operator[](std::size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }

  // Held for elements, there or to come.
  std::size_t memory_bytes() const { return chunks_.size() * kChunk * sizeof(T); }

  void push_back(const T& value) {
    if (size_ == chunks_.size() * kChunk) {
      chunks_.push_back(std::make_unique<T[]>(kChunk));
    }
    (*this)[size_++] = value;
  }
  // Gives a chunk back when a whole one is empty behind the last element's.
  void pop_back() {
    --size_;
    if (size_ + 2 * kChunk <= chunks_.size() * kChunk) {
      chunks_.pop_back();
    }
  }

 private:
  static constexpr std::size_t kChunk = 4096;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace encore::cache
