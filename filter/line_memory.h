// LineMemory: zeroed memory in 64-byte lines, aligned to 128 bytes; huge pages are asked for where
// it is large. Pages of a large one cost nothing until they are written. Move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace encore::filter {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLineWords = 8;

class LineMemory {
 public:
  // Errors: memory that cannot be had; the message says how much was asked for.
  static Result<LineMemory> create(std::uint64_t lines);
  // A mapping that is there already, and is unmapped at the end; words() are at base + words_at.
  struct Mapping {
    void* base = nullptr;
    std::uint64_t size_bytes = 0;
    std::size_t words_at = 0;  // a multiple of 64
  };
  static LineMemory adopt(const Mapping& mapping);
  LineMemory() = default;
  LineMemory(LineMemory&& other) noexcept { swap(other); }
  LineMemory& operator=(LineMemory&& other) noexcept {
    LineMemory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~LineMemory();

  std::uint64_t* words() const { return words_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  void swap(LineMemory& other) noexcept {
    std::swap(words_, other.words_);
    std::swap(base_, other.base_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(mapped_, other.mapped_);
  }
  std::uint64_t* words_ = nullptr;
  void* base_ = nullptr;  // address of the allocation or mapping
  std::uint64_t size_bytes_ = 0;
  bool mapped_ = false;
};

}  // namespace encore::filter
