// Compression: what [compression] says, ready to be asked. Immutable, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "proxy/coding/coding.h"
#include "proxy/http/message.h"

namespace encore::server {

class Compression {
 public:
  explicit Compression(const config::Compression& settings);

  // In order of preference.
  std::span<const coding::Coding> offered() const { return offered_; }
  int level(coding::Coding coding) const { return levels_[coding::number_of(coding)]; }
  // The memory that all encoders together may take.
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  // True if a response may be sent in a coding to clients that accept one. Its type must be one
  // that is compressed, and its status one whose content is the requested one. It must not be
  // small, coded already or a part, and transformation must not be forbidden (RFC 9111 5.2.2.6).
  // `length` is that of the content, if it is known.
  bool covers(const http::ResponseHead& response, std::optional<std::uint64_t> length) const;

  // Returns a note for an object about the result of covers(): one of two numbers that are not 0,
  // and others after a reload that changes anything here.
  std::uint8_t note_of(bool is_covered) const {
    return static_cast<std::uint8_t>(number_ * 2 + (is_covered ? 1 : 0));
  }

 private:
  bool covers_type(std::string_view content_type) const;

  std::vector<coding::Coding> offered_;
  std::array<int, coding::kCodings> levels_{};
  std::vector<std::string> types_;
  std::uint64_t min_bytes_;
  std::uint64_t memory_bytes_;
  std::uint8_t number_;
};

}  // namespace encore::server
