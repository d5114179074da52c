// Numbers as bytes for the journal and the saved state: little-endian of fixed width, LEB128 of
// variable length, zigzag for signed ones. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace encore::cache {

// Times as they are written.
inline std::uint64_t ticks(MonotonicTime time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}
inline MonotonicTime time_of(std::uint64_t ticks) {
  return MonotonicTime(Nanoseconds(static_cast<std::int64_t>(ticks)));
}

class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void fixed(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      out_.push_back(static_cast<char>(value >> (8 * i)));
    }
  }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      out_.push_back(static_cast<char>(value | 0x80U));
    }
    out_.push_back(static_cast<char>(value));
  }
  void difference(std::uint64_t to, std::uint64_t from) {
    const std::uint64_t apart = to - from;
    number((apart << 1U) ^ (0 - (apart >> 63U)));
  }
  void text(std::string_view bytes) {
    number(bytes.size());
    out_ += bytes;
  }

 private:
  std::string& out_;
};

// Reads what ByteWriter wrote from a source with `int next()`: a byte, or -1 at the end. After an
// error (the end too early, a number too long) every further answer is 0 and ok() is false.
template <typename Source>
class ByteReader {
 public:
  explicit ByteReader(Source& source) : source_(source) {}

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }

  std::uint64_t byte() {
    const int value = ok_ ? source_.next() : -1;
    ok_ = value >= 0;
    return ok_ ? static_cast<std::uint64_t>(value) : 0;
  }
  std::uint64_t fixed(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= byte() << (8 * i);
    }
    return ok_ ? value : 0;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t part = byte();
      value |= (part & 0x7fU) << shift;
      if ((part & 0x80U) == 0) {
        return ok_ ? value : 0;
      }
    }
    ok_ = false;
    return 0;
  }
  std::uint64_t difference(std::uint64_t from) {
    const std::uint64_t folded = number();
    return from + ((folded >> 1U) ^ (0 - (folded & 1U)));
  }
  // Reads bytes one by one, so that a wrong length allocates no more than is there.
  std::string text(std::uint64_t size_max) {
    const std::uint64_t size = number();
    ok_ = ok_ && size <= size_max;
    std::string bytes;
    for (std::uint64_t i = 0; ok_ && i < size; ++i) {
      bytes.push_back(static_cast<char>(byte()));
    }
    return bytes;
  }

 private:
  Source& source_;
  bool ok_ = true;
};

// Bytes in memory as a source.
class ByteView {
 public:
  explicit ByteView(std::string_view bytes) : rest_(bytes) {}
  int next() {
    if (rest_.empty()) {
      return -1;
    }
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view rest() const { return rest_; }
  void skip(std::size_t bytes) { rest_.remove_prefix(bytes); }

 private:
  std::string_view rest_;
};

}  // namespace encore::cache
