// Memory for reads and writes: it begins at a multiple of kIoAlign and is as long as one.
// Move-only, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "proxy/disk/file.h"

namespace encore::disk {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // At least so many bytes, of any value.
  explicit AlignedBuffer(std::size_t bytes)
      : size_((bytes + kIoAlign - 1) / kIoAlign * kIoAlign),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kIoAlign, size_))) {
    if (memory_ == nullptr && size_ != 0) throw std::bad_alloc();
  }

  std::size_t size() const { return size_; }
  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::span<std::byte> first(std::size_t bytes) { return {memory_.get(), bytes}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace encore::disk
