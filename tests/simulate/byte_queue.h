// ByteQueue: bytes on their way in one direction, in one block that is used again.
// Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

namespace encore::simulate {

class ByteQueue {
 public:
  std::size_t size() const { return end_ - begin_; }
  void clear() { begin_ = end_ = 0; }

  void push(const void* bytes, std::size_t size) {
    if (size == 0) return;
    if (capacity_ - end_ < size) make_room(size);
    std::memcpy(room_.get() + end_, bytes, size);
    end_ += size;
  }
  // Takes `size` bytes off the front. REQUIRES: size <= size().
  void pop(void* into, std::size_t size) {
    if (size != 0) std::memcpy(into, room_.get() + begin_, size);
    drop(size);
  }
  void drop(std::size_t size) {
    begin_ += size;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Looks without taking. REQUIRES: size <= size().
  void peek(void* into, std::size_t size) const {
    if (size != 0) std::memcpy(into, room_.get() + begin_, size);
  }
  // Gives the last `size` bytes up. REQUIRES: size <= size().
  void drop_back(std::size_t size) { end_ -= size; }

 private:
  void make_room(std::size_t more) {
    const std::size_t used = size();
    if (capacity_ - used >= more && begin_ >= used) {
      std::memcpy(room_.get(), room_.get() + begin_, used);
    } else {
      const std::size_t capacity = std::max<std::size_t>(1024, 2 * (used + more));
      auto room = std::make_unique_for_overwrite<char[]>(capacity);
      if (used != 0) std::memcpy(room.get(), room_.get() + begin_, used);
      room_ = std::move(room);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = used;
  }

  std::unique_ptr<char[]> room_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace encore::simulate
