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
  // What all encoders may take at a time.
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  // Whether a response may be sent in a coding, to those who take one: it is of a type that is
  // compressed, of a status whose content is what was asked for, not small, not coded already, not
  // a part, and nobody has forbidden to transform it (RFC 9111 5.2.2.6). `length` is that of the
  // content, where it is known.
  bool covers(const http::ResponseHead& response, std::optional<std::uint64_t> length) const;

  // What of an object may be remembered of covers(): one of two numbers that are not 0, and others
  // after a reload that changes anything here.
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
