// Input: a buffer over a ByteSource, from which readers take lines or records of fixed size.
// Confined to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/trace/byte_source.h"

namespace encore::sim {

class Input {
 public:
  // `monitor`, where there is one, is borrowed: where it stops the reading, that is the end, and
  // what is left of a line or record is dropped.
  explicit Input(std::unique_ptr<ByteSource> source, Monitor* monitor = nullptr);

  // The next line without its end (\n or \r\n), valid until the next call; false at the end. A line
  // above kLineMax comes in pieces of that size.
  Result<bool> next_line(std::string_view& line);
  // The number of the line that next_line() gave last, from 1.
  std::uint64_t line_number() const { return line_number_; }
  // The next `size` bytes, valid until the next call; fewer only at the end.
  // REQUIRES: size <= kLineMax.
  Result<std::string_view> next_bytes(std::size_t size);
  // Up to `size` bytes ahead, not taken. REQUIRES: size <= kLineMax.
  Result<std::string_view> peek(std::size_t size);

  // True if an interrupt ended the input early.
  bool interrupted() const { return interrupted_; }

  static constexpr std::size_t kLineMax = 1U << 20U;

 private:
  // Reads more behind what is there; false at the end.
  Result<bool> fill();
  std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }

  std::unique_ptr<ByteSource> source_;
  Monitor* monitor_;
  bool interrupted_ = false;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t line_number_ = 0;
  bool within_line_ = false;  // the last piece did not end its line
};

}  // namespace encore::sim
