// JsonLine: one JSON object behind what a text has already, written at the cost of copying: most
// values are short, and hold nothing that must be escaped. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "proxy/observe/field_limit.h"

namespace encore::server {

class JsonLine {
 public:
  // `out` is borrowed, and nobody else's until finish().
  explicit JsonLine(std::string& out);
  JsonLine(const JsonLine&) = delete;
  JsonLine& operator=(const JsonLine&) = delete;

  // As it is.
  void raw(std::string_view text) {
    need(text.size());
    put(text);
  }
  // `name` is all that stands before the value, as R"(,"url":")", with the quote that opens it.
  // Bytes above ASCII are shown as the code points of their values: field values are octets.
  // A longer one than a field may be is cut (field_limit.h).
  void text(std::string_view name, std::string_view value) {
    if (value.size() > kFieldBytesMax / kEscapedBytes) [[unlikely]] {
      return long_text(name, value);
    }
    need(name.size() + kEscapedBytes * value.size() + 1);
    put(name);
    put_value(value);
    *at_++ = '"';
  }
  void text_if_any(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void number(std::string_view name, std::uint64_t value);
  // Microseconds. REQUIRES: not below 0.
  void time(std::string_view name, Nanoseconds value) {
    number(name, static_cast<std::uint64_t>(value.count()) / 1000);
  }
  // A time below 0 is none.
  void time_if_any(std::string_view name, Nanoseconds value) {
    if (value.count() >= 0) time(name, value);
  }
  // Completes the text; nothing may follow.
  void finish();

 private:
  static constexpr std::size_t kEscapedBytes = 6;  // "\u00e4"

  void need(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]]
      grow(bytes);
  }
  void grow(std::size_t bytes);
  // REQUIRES: there is room.
  void put(std::string_view text) {
    text.copy(at_, text.size());
    at_ += text.size();
  }
  void long_text(std::string_view name, std::string_view value);
  void put_value(std::string_view value);
  void put_escaped(std::string_view value);

  std::string& out_;
  char* at_ = nullptr;   // in what `out` has room for
  char* end_ = nullptr;  // end of that
};

}  // namespace encore::server
